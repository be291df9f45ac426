package table

import (
	"bufio"
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"path"
	"slices"
	"strings"

	"github.com/pacer-ml/pacer/perfmodel/spec/named"
)

// Read yields the rows of a comma-separated table with a header line, which must have the given
// columns. A row is one line, so a stray quote spoils only one row. It skips a byte order mark and
// blank lines. An invalid row yields a *RowError, and reading continues; a file without such a header
// yields a *HeaderError.
func Read(r io.Reader, file string, columns ...string) iter.Seq2[*Record, error] {
	return func(yield func(*Record, error) bool) {
		var cols map[string]int
		for n, line := range Lines(r) {
			if line.Err != nil {
				yield(nil, fmt.Errorf("datasets: %s: %w", file, line.Err))
				return
			}
			cells, err := Split(line.Text)
			if cols == nil {
				if cols, err = header(cells, err, columns); err != nil {
					yield(nil, &HeaderError{File: file, Err: err})
					return
				}
				continue
			}
			if err == nil && len(cells) != len(cols) {
				err = fmt.Errorf("has %d cells, the header %d", len(cells), len(cols))
			}
			rec := &Record{File: file, Line: n, Cols: cols, Cells: cells}
			if err != nil {
				rec, err = nil, &RowError{File: file, Line: n, Err: err}
			}
			if !yield(rec, err) {
				return
			}
		}
		if cols == nil {
			yield(nil, &HeaderError{File: file, Err: ErrEmpty})
		}
	}
}

// HeaderError means that a file does not have the columns of a table.
type HeaderError struct {
	File string
	Err  error
}

func (e *HeaderError) Error() string { return fmt.Sprintf("datasets: %s: %v", e.File, e.Err) }
func (e *HeaderError) Unwrap() error { return e.Err }

// ErrEmpty is the error for a file without a header line.
var ErrEmpty = errors.New("the file is empty")

// header maps the columns of a header line to positions.
func header(cells []string, err error, columns []string) (map[string]int, error) {
	if err != nil {
		return nil, fmt.Errorf("header: %w", err)
	}
	cols := map[string]int{}
	for i, c := range cells {
		c = strings.TrimSpace(c)
		if _, twice := cols[c]; twice {
			return nil, fmt.Errorf("the header has column %q twice", c)
		}
		cols[c] = i
	}
	missing := slices.DeleteFunc(slices.Clone(columns), func(c string) bool { _, ok := cols[c]; return ok })
	if len(missing) == 0 {
		return cols, nil
	}
	if len(cells) == 1 && strings.ContainsAny(cells[0], ";\t") {
		return nil, fmt.Errorf("no column %s: want commas between columns, the header is %s", strings.Join(missing, ", "), cells[0])
	}
	for i, c := range missing {
		if at := slices.IndexFunc(cells, func(s string) bool { return named.Fold(s) == named.Fold(c) }); at >= 0 {
			missing[i] += fmt.Sprintf(" (%q is another name)", cells[at])
		}
	}
	return nil, fmt.Errorf("no column %s, the header is %s", strings.Join(missing, ", "), strings.Join(cells, ","))
}

// Split splits one line of comma-separated cells.
func Split(line string) ([]string, error) {
	if !strings.Contains(line, `"`) {
		return strings.Split(line, ","), nil
	}
	cells, err := csv.NewReader(strings.NewReader(line)).Read()
	var parse *csv.ParseError
	if errors.As(err, &parse) {
		err = parse.Err
	}
	return cells, err
}

// Line is a line of a file, or the error that ended reading.
type Line struct {
	Text string
	Err  error
}

// MaxLine bounds a line, and a value of a JSON array, in bytes: a file with longer ones is no table,
// and reading them would fill the memory.
const MaxLine = 16 << 20

// ErrTooLong is the error for a line or value beyond MaxLine.
var ErrTooLong = fmt.Errorf("is longer than %d MiB, which no row is", MaxLine>>20)

// Lines yields the non-blank lines of r, numbered from 1, without line ends and UTF-8 byte order
// mark.
func Lines(r io.Reader) iter.Seq2[int, Line] {
	return func(yield func(int, Line) bool) {
		sc := bufio.NewScanner(r)
		sc.Buffer(nil, MaxLine)
		n := 1
		for ; sc.Scan(); n++ {
			s := sc.Text()
			if n == 1 {
				s = strings.TrimPrefix(s, "\ufeff")
			}
			s = strings.TrimRight(s, "\r\n")
			if strings.TrimSpace(s) != "" && !yield(n, Line{Text: s}) {
				return
			}
		}
		err := sc.Err()
		if errors.Is(err, bufio.ErrTooLong) {
			err = fmt.Errorf("line %d %w", n, ErrTooLong)
		}
		if err != nil {
			yield(n, Line{Err: err})
		}
	}
}

// Glob returns the files of the first pattern that matches any, sorted.
func Glob(root fs.FS, patterns ...string) ([]string, error) {
	for _, p := range patterns {
		files, err := fs.Glob(root, p)
		if err != nil {
			return nil, err
		}
		if len(files) > 0 {
			slices.Sort(files)
			return files, nil
		}
	}
	return nil, fmt.Errorf("no file matches %s", strings.Join(patterns, " or "))
}

// CountRows returns the number of rows of the files: lines without headers and blank ones. name is
// the data set, for errors.
func CountRows(root fs.FS, name string, files []string) (int, error) {
	n := 0
	for _, file := range files {
		f, err := root.Open(file)
		if err != nil {
			return 0, fmt.Errorf("datasets: %s: %w", name, err)
		}
		rows := -1
		for range Lines(f) {
			rows++
		}
		n += max(rows, 0)
		f.Close()
	}
	return n, nil
}

// ReadFile is Read on a file of root; it stops with ctx.
func ReadFile(ctx context.Context, root fs.FS, file string, columns ...string) iter.Seq2[*Record, error] {
	return func(yield func(*Record, error) bool) {
		f, err := root.Open(file)
		if err != nil {
			yield(nil, fmt.Errorf("datasets: %w", err))
			return
		}
		defer f.Close()
		for rec, err := range Read(f, file, columns...) {
			if ctx.Err() != nil {
				yield(nil, ctx.Err())
				return
			}
			if !yield(rec, err) {
				return
			}
		}
	}
}

// Stem returns the name of a file without folders and extension.
func Stem(file string) string {
	return strings.TrimSuffix(path.Base(file), path.Ext(file))
}
