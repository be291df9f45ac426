package atomicfile_test

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/pacer-ml/pacer/perfmodel/atomicfile"
)

// filesOf returns the names in a directory.
func filesOf(t *testing.T, dir string) (names []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

func contentOf(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// TestWrite: the existing file stays until the new one is complete, and when writing fails.
func TestWrite(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "a")
	if err := atomicfile.WriteBytes(path, 0o600, []byte("old")); err != nil {
		t.Fatal(err)
	}
	full := errors.New("full")
	err := atomicfile.Write(path, 0o644, func(w io.Writer) error {
		_, err := w.Write(make([]byte, 1<<20))
		return errors.Join(err, full)
	})
	if got := contentOf(t, path); !errors.Is(err, full) || got != "old" || len(filesOf(t, dir)) != 1 {
		t.Errorf("error %v, %q in the file, files %v; want %v, the old text, and nothing beside it", err, got, filesOf(t, dir), full)
	}
	err = atomicfile.Write(path, 0o640, func(w io.Writer) error {
		if got := contentOf(t, path); got != "old" {
			t.Errorf("%q in the file while the new is written", got)
		}
		_, err := io.WriteString(w, "new")
		return err
	})
	st, serr := os.Stat(path)
	if err := errors.Join(err, serr); err != nil {
		t.Fatal(err)
	}
	if got := contentOf(t, path); got != "new" || st.Mode().Perm() != 0o640 || len(filesOf(t, dir)) != 1 {
		t.Errorf("%q of mode %v in the file, files %v; want new of mode 0640 alone", got, st.Mode(), filesOf(t, dir))
	}
	if err := atomicfile.WriteBytes(filepath.Join(dir, "no", "a"), 0o644, nil); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("no directory: error %v", err)
	}
	if err := atomicfile.WriteBytes(dir, 0o644, nil); err == nil || len(filesOf(t, filepath.Dir(dir))) != 1 {
		t.Errorf("in place of a directory: error %v, files %v", err, filesOf(t, filepath.Dir(dir)))
	}
}

// TestDiscard: a discarded file leaves nothing; a committed one stays.
func TestDiscard(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"dropped", "kept"} {
		f, err := atomicfile.Create(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		if name == "kept" {
			err = f.Commit(0o644, nil)
		}
		if err := errors.Join(err, f.Discard(), f.Discard()); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if got := filesOf(t, dir); !slices.Equal(got, []string{"kept"}) {
		t.Errorf("files %v, want kept", got)
	}
}

// TestSweep: old temporary files of killed processes are removed; all other files stay.
func TestSweep(t *testing.T) {
	dir := t.TempDir()
	left := func(name string, age time.Duration) string {
		f, err := atomicfile.Create(filepath.Join(dir, name))
		if err == nil {
			at := time.Now().Add(-age)
			err = errors.Join(f.Close(), os.Chtimes(f.Name(), at, at))
		}
		if err != nil {
			t.Fatal(err)
		}
		return filepath.Base(f.Name())
	}
	left("old", 2*time.Hour)
	want := []string{left("young", time.Minute)}
	for _, name := range []string{".hidden", ".hidden20260102", "a123456789012345678"} {
		file, at := filepath.Join(dir, name), time.Now().Add(-2*time.Hour)
		if err := errors.Join(os.WriteFile(file, nil, 0o600), os.Chtimes(file, at, at)); err != nil {
			t.Fatal(err)
		}
		want = append(want, name)
	}
	slices.Sort(want)
	atomicfile.Sweep(dir)
	if got := filesOf(t, dir); !slices.Equal(got, want) {
		t.Errorf("files %v, want %v", got, want)
	}
	atomicfile.Sweep(filepath.Join(dir, "nowhere"))
}
