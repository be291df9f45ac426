package atomicfile

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
)

// pendingFile replaces renameio.PendingFile, which does not support Windows: there a rename replaces a file,
// but not atomically in all cases.
type pendingFile struct {
	*os.File
	path string
	done bool
}

func newPendingFile(path string) (*pendingFile, error) {
	name := fmt.Sprintf(".%s%019d", filepath.Base(path), rand.Int64())
	f, err := os.OpenFile(filepath.Join(filepath.Dir(path), name), os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, err
	}
	return &pendingFile{File: f, path: path}, nil
}

// CloseAtomicallyReplace does what renameio.PendingFile.CloseAtomicallyReplace does.
func (f *pendingFile) CloseAtomicallyReplace() error {
	if err := errors.Join(f.Sync(), f.Close()); err != nil {
		return err
	}
	err := os.Rename(f.Name(), f.path)
	f.done = err == nil
	return err
}

// Cleanup does what renameio.PendingFile.Cleanup does.
func (f *pendingFile) Cleanup() error {
	if f.done {
		return nil
	}
	f.done = true
	if err := f.Close(); err != nil && !errors.Is(err, os.ErrClosed) {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return os.Remove(f.Name())
}
