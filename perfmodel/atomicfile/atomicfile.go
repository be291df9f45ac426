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

// File is a file being written under a temporary name in the directory of its path. It is not safe for
// concurrent use.
type File struct{ *pendingFile }

// temporary matches the temporary names: a dot, the file's name, and a random number below 2⁶³. Random numbers
// of fewer than 12 digits are too rare to matter. Earlier versions of this package used names that end in .new.
var temporary = regexp.MustCompile(`^\..*([0-9]{12,19}|\.new)$`)

// Create begins a new file for path. An existing file there stays until Commit. The caller must call Commit or
// Discard. Errors are those of the file system.
func Create(path string) (*File, error) {
	f, err := newPendingFile(path)
	if err != nil {
		return nil, err
	}
	return &File{f}, nil
}

// Commit closes the file and moves it to its path with the given mode. A non-nil err says that writing failed:
// Commit then removes the temporary file and returns err. If Commit itself fails, it removes the temporary file
// too.
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

// Write calls write to fill the file at path, and returns once the file and its name are on stable storage. If
// write fails, an existing file stays as it is.
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

// WriteBytes is Write with the content b.
func WriteBytes(path string, mode fs.FileMode, b []byte) error {
	return Write(path, mode, func(w io.Writer) error {
		_, err := w.Write(b)
		return err
	})
}

// SyncDir brings names that were created, renamed or removed in dir to stable storage.
func SyncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// AbandonedAge is the age from which Sweep removes a temporary file.
const AbandonedAge = time.Hour

// Sweep removes temporary files of dir that were last written an AbandonedAge ago or earlier: their processes were
// killed. It ignores files that it cannot remove.
func Sweep(dir string) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return
	}
	for _, e := range entries {
		info, err := e.Info()
		if err == nil && info.Mode().IsRegular() && temporary.MatchString(e.Name()) && time.Since(info.ModTime()) >= AbandonedAge {
			_ = os.Remove(filepath.Join(dir, e.Name()))
		}
	}
}

// WriteNew writes b to path, where there must be no file, and returns once the file and its name are on stable storage.
// Of several processes that write the same path, one succeeds; the error of the others wraps fs.ErrExist.
func WriteNew(path string, mode fs.FileMode, b []byte) error {
	f, err := Create(path)
	if err != nil {
		return err
	}
	_, err = f.Write(b)
	if err == nil {
		err = f.Chmod(mode)
	}
	if err == nil {
		err = f.Sync()
	}
	if err == nil {
		err = os.Link(f.Name(), path) // rename would replace a file
	}
	if err = errors.Join(err, f.Discard()); err != nil {
		return err
	}
	return SyncDir(filepath.Dir(path))
}
