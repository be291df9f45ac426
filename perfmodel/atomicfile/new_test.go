package atomicfile

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
)

// Of those that write the same new file at the same time one succeeds, and its content stays. No temporary file is left.
func TestWriteNewConcurrently(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "new")
	var won atomic.Int32
	var content atomic.Pointer[string]
	var wg sync.WaitGroup
	for i := range 16 {
		wg.Go(func() {
			text := string(rune('a' + i))
			switch err := WriteNew(path, 0o600, []byte(text)); {
			case err == nil:
				won.Add(1)
				content.Store(&text)
			case !errors.Is(err, fs.ErrExist):
				t.Error(err)
			}
		})
	}
	wg.Wait()
	got, err := os.ReadFile(path)
	if err != nil || won.Load() != 1 || string(got) != *content.Load() {
		t.Errorf("%d succeeded, the content is %q: %v", won.Load(), got, err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 1 {
		t.Errorf("%d files are left: %v", len(left), err)
	}
}
