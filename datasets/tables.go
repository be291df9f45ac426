package datasets

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"strings"

	"github.com/pacer-ml/pacer/datasets/internal/table"
	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// tables is a data set of CSV tables that are read one after another.
type tables struct {
	name  string
	files func(root fs.FS) ([]string, error)
	read  func(ctx context.Context, root fs.FS, file string) iter.Seq2[spec.Measurement, error]
	// first returns the error that shows whether a file has the columns; nil: that of its first value.
	first func(root fs.FS, file string) error
}

// tableRows are the rows of the files of a data set.
type tableRows struct {
	set   tables
	root  fs.FS
	files []tableFile
}

// tableFile is a file of a data set; fault is why none of its rows can be read.
type tableFile struct {
	name  string
	fault *RowError
}

// open finds the files below root. A file without the columns is a *RowError if another has them.
func (t tables) open(root fs.FS) (Rows, error) {
	files, err := t.list(root)
	if err != nil {
		return nil, err
	}
	return tableRows{t, root, files}, nil
}

// All yields the rows file by file.
func (t tableRows) All(ctx context.Context) iter.Seq2[spec.Measurement, error] {
	return func(yield func(spec.Measurement, error) bool) {
		for _, f := range t.files {
			if f.fault != nil {
				if !yield(spec.Measurement{}, f.fault) {
					return
				}
				continue
			}
			for m, err := range t.set.read(ctx, t.root, f.name) {
				if !yield(m, err) {
					return
				}
			}
		}
	}
}

func (t tableRows) Count() (int, error) {
	faults := 0
	var readable []string
	for _, f := range t.files {
		if f.fault != nil {
			faults++
		} else {
			readable = append(readable, f.name)
		}
	}
	n, err := table.CountRows(t.root, t.set.name, readable)
	return n + faults, err
}

// list returns the files of the data set. It is an error if none has the columns.
func (t tables) list(root fs.FS) ([]tableFile, error) {
	names, err := t.files(root)
	if err != nil {
		return nil, fmt.Errorf("datasets: %s: %w", t.name, err)
	}
	files := make([]tableFile, len(names))
	var others []string // files of another kind
	for i, name := range names {
		files[i].name = name
		var header *table.HeaderError
		switch err := t.firstError(root, name); {
		case errors.As(err, &header):
			files[i].fault = &RowError{File: header.File, Err: header.Err}
			others = append(others, fmt.Sprintf("%s: %v", header.File, header.Err))
		case errors.As(err, &files[i].fault) && files[i].fault.Line > 0:
			files[i].fault = nil // of one row
		}
	}
	if len(others) == len(names) {
		return nil, fmt.Errorf("datasets: %s: %s", t.name, strings.Join(others, "; "))
	}
	return files, nil
}

// firstError returns the error of the first value of a file, nil if it is a measurement.
func (t tables) firstError(root fs.FS, file string) error {
	if t.first != nil {
		return t.first(root, file)
	}
	for _, err := range t.read(context.Background(), root, file) {
		return err
	}
	return nil
}
