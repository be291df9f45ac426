//go:build !nokubernetes

package schedule

import (
	"bytes"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pacer-ml/pacer/perfmodel/spec/spectest"
)

// TestKubectlFiles: files are bounded together, not each.
func TestKubectlFiles(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"a.yaml", "b.yaml"} {
		spectest.WriteFile(t, filepath.Join(dir, name), bytes.Repeat([]byte("#"), maxSubmission/2+1), 0o600)
	}
	for file, want := range map[string]string{filepath.Join(dir, "a.yaml"): "", dir: "the files have more than"} {
		k, err := parseKubectl([]string{"apply", "-f", file})
		if err != nil {
			t.Fatal(err)
		}
		text, err := k.read(nil)
		if want == "" && (err != nil || len(text) != maxSubmission/2+2) || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %d bytes, %v, want %q", file, len(text), err, want)
		}
	}
}
