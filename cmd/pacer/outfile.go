package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/pacer-ml/pacer/perfmodel/atomicfile"
)

// outFile is a file a command will write at its end. It is opened before the
// work starts, so that a path that cannot be written costs nothing. A regular
// file appears whole or not at all; a symbolic link stays and its target is
// written; devices and pipes are written in place.
type outFile struct {
	path string
	f    *os.File
	part *atomicfile.File // f, where that becomes path when it is complete
	mode fs.FileMode      // that part is to have
}

// createOut opens path for writing; nil without an error if path is empty.
func createOut(path string) (*outFile, error) {
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
		return &outFile{path: real, f: f}, err
	}
	part, err := atomicfile.Create(real)
	if err != nil {
		return nil, fmt.Errorf("cannot write %s: %w", path, errors.Unwrap(err))
	}
	return &outFile{path: real, f: part.File, part: part, mode: 0o644}, nil
}

// write fills the file and puts it in its place.
func (o *outFile) write(fill func(io.Writer) error) error { return o.finish(fill(o.f)) }

// finish puts the file, filled through f, in its place, unless filling it ended
// with err.
func (o *outFile) finish(err error) error {
	if o.part != nil {
		err = o.part.Commit(o.mode, err)
	} else {
		err = errors.Join(err, o.f.Close())
	}
	if err != nil {
		return fmt.Errorf("writing %s: %w", o.path, err)
	}
	return nil
}

// discard removes what was not completed; it does nothing after write.
func (o *outFile) discard() error {
	if o == nil || o.part == nil {
		return nil
	}
	return o.part.Discard()
}

// distinct says which path is asked to hold two outputs at once: the later would
// replace the earlier. Devices and pipes may take several.
func distinct(outs ...*outFile) error {
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
			return usagef("%s is asked to hold two outputs, give each its own file", o.path)
		}
		seen[abs] = true
	}
	return nil
}
