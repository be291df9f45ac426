package atomicfile

import (
	"bufio"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"time"
)

// File is a file that is being written under a temporary name in the directory
// of its path. It is not safe for concurrent use.
type File struct{ *pendingFile }

// temporary matches the temporary names: a dot, the file's name, and a random
// number below 2⁶³, of which shorter ones are too rare to matter. Names that end
// in .new are of earlier versions of this package.
var temporary = regexp.MustCompile(`^\..*([0-9]{12,19}|\.new)$`)

// Create begins the file that is to be at path. The present file stays until
// Commit. The caller must call Commit or Discard.
func Create(path string) (*File, error) {
	f, err := newPendingFile(path)
	if err != nil {
		return nil, err
	}
	return &File{f}, nil
}

// Commit closes the file and gives it its mode and its path, unless writing it
// ended with err. On failure the temporary file is removed.
func (f *File) Commit(mode fs.FileMode, err error) error {
	if err == nil {
		err = f.Chmod(mode)
	}
	if err == nil {
		err = f.CloseAtomicallyReplace()
	}
	if err != nil {
		err = errors.Join(err, f.Cleanup())
	}
	return err
}

// Discard removes the temporary file. It does nothing after Commit.
func (f *File) Discard() error { return f.Cleanup() }

// Write calls write to fill the file at path, and returns once the file and its
// name are durable. An error of write leaves the present file.
func Write(path string, mode fs.FileMode, write func(io.Writer) error) error {
	f, err := Create(path)
	if err != nil {
		return err
	}
	w := bufio.NewWriterSize(f, 1<<16)
	if err := f.Commit(mode, errors.Join(write(w), w.Flush())); err != nil {
		return err
	}
	return SyncDir(filepath.Dir(path))
}

// WriteBytes is Write of b.
func WriteBytes(path string, mode fs.FileMode, b []byte) error {
	return Write(path, mode, func(w io.Writer) error {
		_, err := w.Write(b)
		return err
	})
}

// SyncDir makes names created, renamed or removed in dir durable.
func SyncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// Sweep removes temporary files of dir that nothing was written to for so long:
// their processes were killed. It leaves those it cannot remove.
func Sweep(dir string, age time.Duration) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return
	}
	for _, e := range entries {
		info, err := e.Info()
		if err == nil && info.Mode().IsRegular() && temporary.MatchString(e.Name()) && time.Since(info.ModTime()) >= age {
			_ = os.Remove(filepath.Join(dir, e.Name()))
		}
	}
}
