package datasets

import (
	"bufio"
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"math"
	"slices"
	"strconv"
	"strings"
)

// record is one row of a table: cells by column name, and its position. The reading methods keep
// the first error; see err.
type record struct {
	file  string
	line  int
	cols  map[string]int
	cells []string
	fault *RowError
	notes []string // remarks on the row
}

// err returns the first error of the reading methods.
func (r *record) err() error {
	if r.fault == nil {
		return nil
	}
	return r.fault
}

// fail records an invalid value of a column.
func (r *record) fail(col string, err error) {
	r.failValue(col, r.str(col), err)
}

// failValue is fail for a value that is no cell.
func (r *record) failValue(col, value string, err error) {
	if r.fault == nil {
		r.fault = &RowError{File: r.file, Line: r.line, Column: col, Value: value, Err: err}
	}
}

// leaveOut records that the row is valid but has no job to schedule.
func (r *record) leaveOut(why string) {
	if r.fault == nil {
		r.fault = &RowError{File: r.file, Line: r.line, Err: rowNote{ErrNoJob, why}}
	}
}

// str returns the trimmed cell of a column, "" if the row or the table lacks it.
func (r *record) str(col string) string {
	i, ok := r.cols[col]
	if !ok || i >= len(r.cells) {
		return ""
	}
	return strings.TrimSpace(r.cells[i])
}

// need is str that fails for an empty cell.
func (r *record) need(col string) string {
	s := r.str(col)
	if s == "" {
		r.fail(col, errors.New("is missing"))
	}
	return s
}

// float returns the finite number in a column, 0 for an empty cell.
func (r *record) float(col string) float64 {
	s := r.str(col)
	if s == "" {
		return 0
	}
	v, err := parseFinite(s)
	if err != nil {
		r.fail(col, err)
	}
	return v
}

// atLeast0 is float that fails below zero.
func (r *record) atLeast0(col string) float64 {
	v := r.float(col)
	if v < 0 {
		r.fail(col, errors.New("is negative"))
	}
	return v
}

// count returns the whole number >= 0 in a column, 0 for an empty cell. It accepts a zero fraction
// ("4.0").
func (r *record) count(col string) int {
	v := r.atLeast0(col)
	if v != math.Trunc(v) || v > maxCount {
		r.fail(col, fmt.Errorf("is not a whole number in 0..%d", int(maxCount)))
		return 0
	}
	return int(v)
}

// maxCount bounds whole numbers, so that products of a few stay in an int64.
const maxCount = 1 << 30

func parseFinite(s string) (float64, error) {
	v, err := strconv.ParseFloat(s, 64)
	if err != nil || math.IsInf(v, 0) || math.IsNaN(v) {
		return 0, errors.New("is not a finite number")
	}
	return v, nil
}

// readCSV yields the rows of a comma-separated table with a header line, which must have the given
// columns. A row is one line, so a stray quote spoils only one row. It skips a byte order mark and
// blank lines. An invalid row yields a *RowError, and reading continues.
func readCSV(r io.Reader, file string, columns ...string) iter.Seq2[*record, error] {
	return func(yield func(*record, error) bool) {
		var cols map[string]int
		for line, text := range lines(r) {
			if text.err != nil {
				yield(nil, fmt.Errorf("datasets: %s: %w", file, text.err))
				return
			}
			cells, err := splitCSV(text.s)
			if cols == nil {
				if cols, err = header(cells, err, columns); err != nil {
					yield(nil, fmt.Errorf("datasets: %s: %w", file, err))
					return
				}
				continue
			}
			if err == nil && len(cells) != len(cols) {
				err = fmt.Errorf("has %d cells, the header %d", len(cells), len(cols))
			}
			rec := &record{file: file, line: line, cols: cols, cells: cells}
			if err != nil {
				rec, err = nil, &RowError{File: file, Line: line, Err: err}
			}
			if !yield(rec, err) {
				return
			}
		}
		if cols == nil {
			yield(nil, fmt.Errorf("datasets: %s: %w", file, errEmpty))
		}
	}
}

var errEmpty = errors.New("the file is empty")

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
	if len(missing) > 0 {
		return nil, fmt.Errorf("no column %s, the header is %s", strings.Join(missing, ", "), strings.Join(cells, ","))
	}
	return cols, nil
}

// splitCSV splits one line.
func splitCSV(line string) ([]string, error) {
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

// text is a line, or the error that ended reading.
type text struct {
	s   string
	err error
}

// maxLine bounds a line, and a value of a JSON array, in bytes. Longer ones are no table and would
// fill the memory.
const maxLine = 16 << 20

var errTooLong = fmt.Errorf("is longer than %d MiB, which no row is", maxLine>>20)

// lines yields the non-blank lines of r, numbered from 1, without line ends and UTF-8 byte order
// mark.
func lines(r io.Reader) iter.Seq2[int, text] {
	return func(yield func(int, text) bool) {
		sc := bufio.NewScanner(r)
		sc.Buffer(nil, maxLine)
		n := 1
		for ; sc.Scan(); n++ {
			s := sc.Text()
			if n == 1 {
				s = strings.TrimPrefix(s, "\ufeff")
			}
			s = strings.TrimRight(s, "\r\n")
			if strings.TrimSpace(s) != "" && !yield(n, text{s: s}) {
				return
			}
		}
		err := sc.Err()
		if errors.Is(err, bufio.ErrTooLong) {
			err = fmt.Errorf("line %d %w", n, errTooLong)
		}
		if err != nil {
			yield(n, text{err: err})
		}
	}
}

// glob returns the files of the first pattern that matches any, sorted.
func glob(root fs.FS, patterns ...string) ([]string, error) {
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

// countRows returns the number of lines of the files, without headers and blank lines; it passes
// err on.
func countRows(root fs.FS, name string, files []string, err error) (int, error) {
	if err != nil {
		return 0, fmt.Errorf("datasets: %s: %w", name, err)
	}
	n := 0
	for _, file := range files {
		f, err := root.Open(file)
		if err != nil {
			return 0, fmt.Errorf("datasets: %s: %w", name, err)
		}
		rows := -1
		for range lines(f) {
			rows++
		}
		n += max(rows, 0)
		f.Close()
	}
	return n, nil
}

// readFile is readCSV on a file of root; it stops with ctx.
func readFile(ctx context.Context, root fs.FS, file string, columns ...string) iter.Seq2[*record, error] {
	return func(yield func(*record, error) bool) {
		f, err := root.Open(file)
		if err != nil {
			yield(nil, fmt.Errorf("datasets: %w", err))
			return
		}
		defer f.Close()
		for rec, err := range readCSV(f, file, columns...) {
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
