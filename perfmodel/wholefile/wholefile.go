package wholefile

import (
	"bufio"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// File is a file that is being written under a name of its own, in the directory of
// that it is to have.
type File struct {
	*os.File
	path string
	done bool
}

// Unfinished files are named so that nobody takes them for others: .NAME.*.new
const prefix, suffix = ".", ".new"

// Create begins the file that is to be at path. What is there stays until Commit.
func Create(path string) (*File, error) {
	f, err := os.CreateTemp(filepath.Dir(path), prefix+filepath.Base(path)+".*"+suffix)
	if err != nil {
		return nil, err
	}
	return &File{File: f, path: path}, nil
}

// Commit closes the file and gives it its mode and name, unless writing it ended with
// err. If that fails too, nothing is left of it but the error.
func (f *File) Commit(mode fs.FileMode, err error) error {
	if err == nil {
		err = errors.Join(f.Chmod(mode), f.Sync())
	}
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(f.Name(), f.path)
	}
	if err != nil {
		err = errors.Join(err, os.Remove(f.Name()))
	}
	f.done = true
	return err
}

// Discard removes a file that is not to be completed. It does nothing after Commit.
func (f *File) Discard() error {
	if f.done {
		return nil
	}
	f.done = true
	return errors.Join(f.Close(), os.Remove(f.Name()))
}

// Write has write fill the file at path, durably.
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

// Sweep removes unfinished files of dir that were last written to so long ago, by
// processes that were killed. What cannot be removed stays, harmless.
func Sweep(dir string, age time.Duration) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return
	}
	for _, e := range entries {
		info, err := e.Info()
		if err == nil && info.Mode().IsRegular() && strings.HasPrefix(e.Name(), prefix) && strings.HasSuffix(e.Name(), suffix) && time.Since(info.ModTime()) >= age {
			_ = os.Remove(filepath.Join(dir, e.Name()))
		}
	}
}
