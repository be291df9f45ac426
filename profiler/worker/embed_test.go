package worker

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/pacer-ml/pacer/perfmodel/spec/spectest"
)

// sameAsEmbedded checks that dir contains the program.
func sameAsEmbedded(t *testing.T, dir string) {
	t.Helper()
	files, _, err := read(program)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"__main__.py", "__init__.py", "measure.py"} {
		if files[name] == nil {
			t.Errorf("%s is not embedded", name)
		}
	}
	for name, want := range files {
		if got, err := os.ReadFile(filepath.Join(dir, name)); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s: %d bytes, %v; want %d", name, len(got), err, len(want))
		}
	}
}

func TestExtractConcurrently(t *testing.T) {
	base := t.TempDir()
	var wg sync.WaitGroup
	for range 16 {
		wg.Go(func() {
			dir, err := Extract(base)
			if err != nil {
				t.Error(err)
				return
			}
			sameAsEmbedded(t, dir)
		})
	}
	wg.Wait()
	dir, err := Extract(base)
	if err != nil {
		t.Fatal(err)
	}
	if entries, _ := os.ReadDir(base); len(entries) != 1 {
		t.Errorf("%d directories, want 1", len(entries))
	}
	// Files that a crash left incomplete, or that were changed, are restored.
	spectest.WriteFile(t, filepath.Join(dir, "measure.py"), []byte("import"), 0o600)
	if err := os.Remove(filepath.Join(dir, "__main__.py")); err != nil {
		t.Fatal(err)
	}
	if _, err := Extract(base); err != nil {
		t.Fatal(err)
	}
	sameAsEmbedded(t, dir)
	if left, _ := filepath.Glob(filepath.Join(dir, ".*")); len(left) > 0 {
		t.Errorf("left over: %v", left)
	}
}

// TestExtractVersions: each content has its own directory, so that two versions can run at once.
func TestExtractVersions(t *testing.T) {
	base := t.TempDir()
	one, err := extract(base, map[string][]byte{"a.py": []byte("1")}, "one")
	if err != nil {
		t.Fatal(err)
	}
	two, err := extract(base, map[string][]byte{"a.py": []byte("2")}, "two")
	if err != nil || one == two {
		t.Errorf("%s and %s, %v", one, two, err)
	}
}

func TestExtractWithoutCache(t *testing.T) {
	tmp := t.TempDir()
	file := filepath.Join(tmp, "file")
	spectest.WriteFile(t, file, nil, 0o600)
	t.Setenv("XDG_CACHE_HOME", file) // not a directory
	t.Setenv("HOME", file)
	t.Setenv("TMPDIR", tmp)
	left := filepath.Join(tmp, "pacer-worker-left") // left by a process that has ended: its lock is free
	if err := os.Mkdir(left, 0o700); err != nil {
		t.Fatal(err)
	}
	spectest.WriteFile(t, filepath.Join(left, "owner"), nil, 0o600)
	dir, err := Extract("")
	if err != nil || !strings.HasPrefix(dir, tmp) {
		t.Fatalf("extracted to %s, %v", dir, err)
	}
	sameAsEmbedded(t, dir)
	if _, err := os.Stat(left); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("what an ended process left is still there: %v", err)
	}
	t.Setenv("TMPDIR", file)
	if _, err := Extract(""); err == nil || !strings.HasPrefix(err.Error(), "worker: ") {
		t.Errorf("nowhere to write: %v", err)
	}
	if _, err := Extract(file); err == nil {
		t.Error("extracted into a file")
	}
}
