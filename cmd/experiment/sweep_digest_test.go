package experiment

import (
	"crypto/sha256"
	"os"
	"path/filepath"
	"testing"

	"github.com/pacer-ml/pacer/perfmodel/spec/spectest"
)

// TestHashTree: content and names below count, through a link too, and where the
// tree is does not.
func TestHashTree(t *testing.T) {
	top := t.TempDir()
	write := func(name, text string) {
		t.Helper()
		path := filepath.Join(top, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		spectest.WriteFile(t, path, []byte(text), 0o600)
	}
	write("a/x/table.csv", "1\n")
	write("same/x/table.csv", "1\n")
	write("renamed/y/table.csv", "1\n")
	write("changed/x/table.csv", "2\n")
	if err := os.Symlink("a", filepath.Join(top, "link")); err != nil {
		t.Fatal(err)
	}
	digest := func(root string) string {
		t.Helper()
		h := sha256.New()
		if err := hashTree(h, filepath.Join(top, root)); err != nil {
			t.Fatal(err)
		}
		return string(h.Sum(nil))
	}
	for root, same := range map[string]bool{"same": true, "link": true, "renamed": false, "changed": false} {
		if got := digest(root) == digest("a"); got != same {
			t.Errorf("%s has the digest of a: %v, want %v", root, got, same)
		}
	}
	if err := hashTree(sha256.New(), filepath.Join(top, "nowhere")); err == nil {
		t.Error("what is not there has a digest")
	}
}
