package console

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/pacer-ml/pacer/perfmodel/atomicfile"
)

// File is a file that a command writes at its end. It is opened before the work starts, so
// that a path that cannot be written fails early. A regular file appears complete or not at
// all; a symbolic link stays and its target is written; devices and pipes are written in
// place. Discard of a nil File does nothing.
type File struct {
	path string
	f    *os.File
	part *atomicfile.File // f, if it becomes path when it is complete
	mode fs.FileMode      // of a complete part
}

// Create opens path for writing; nil without an error if path is empty.
func Create(path string) (*File, error) {
	if path == "" {
		return nil, nil
	}
	real, err := filepath.EvalSymlinks(path)
	if errors.Is(err, fs.ErrNotExist) {
		real = path
	} else if err != nil {
		return nil, err
	}
	st, err := os.Stat(real)
	switch {
	case err == nil && st.IsDir():
		return nil, fmt.Errorf("%s is a directory, want a file", path)
	case err == nil && !st.Mode().IsRegular():
		f, err := os.OpenFile(real, os.O_WRONLY, 0)
		return &File{path: real, f: f}, err
	}
	part, err := atomicfile.Create(real)
	if err != nil {
		return nil, fmt.Errorf("cannot write %s: %w", path, errors.Unwrap(err))
	}
	return &File{path: real, f: part.File, part: part, mode: 0o644}, nil
}

// Path is the file that is written.
func (o *File) Path() string { return o.path }

// Writer receives the content, for callers of Finish.
func (o *File) Writer() io.Writer { return o.f }

// Executable makes a regular file a program.
func (o *File) Executable() { o.mode = 0o755 }

// Write fills the file and completes it.
func (o *File) Write(fill func(io.Writer) error) error { return o.Finish(fill(o.f)) }

// Finish completes the file that was filled through Writer, unless filling ended with an error, which it returns then.
func (o *File) Finish(filled error) (err error) {
	if o.part != nil {
		err = o.part.Commit(o.mode, filled)
	} else {
		err = errors.Join(filled, o.f.Close())
	}
	if err != nil && filled == nil {
		return fmt.Errorf("writing %s: %w", o.path, err)
	}
	return err
}

// Discard removes an incomplete file; it does nothing after Write.
func (o *File) Discard() error {
	if o == nil || o.part == nil {
		return nil
	}
	return o.part.Discard()
}

// Distinct returns an error if two of outs are the same regular
// file: the later would replace the earlier. Any may be nil.
func Distinct(outs ...*File) error {
	seen := map[string]bool{}
	for _, o := range outs {
		if o == nil || o.part == nil {
			continue
		}
		abs, err := filepath.Abs(o.path)
		if err != nil {
			return err
		}
		if seen[abs] {
			return fmt.Errorf("%s is named for two outputs, give each its own file", o.path)
		}
		seen[abs] = true
	}
	return nil
}
