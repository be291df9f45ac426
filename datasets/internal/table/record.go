package table

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
)

// Record is one row of a table. Its reading methods keep the first error; see Err.
type Record struct {
	File  string
	Line  int            // 1 is the first
	Cols  map[string]int // position in Cells by column name
	Cells []string
	fault *RowError
}

// Err returns the first error of the reading methods.
func (r *Record) Err() error {
	if r.fault == nil {
		return nil
	}
	return r.fault
}

// Fail records an invalid value of a column.
func (r *Record) Fail(col string, err error) { r.FailValue(col, r.Str(col), err) }

// FailValue is Fail for a value that is no cell.
func (r *Record) FailValue(col, value string, err error) {
	if r.fault == nil {
		r.fault = &RowError{File: r.File, Line: r.Line, Column: col, Value: value, Err: err}
	}
}

// FailRow records an error of the whole row.
func (r *Record) FailRow(err error) { r.FailValue("", "", err) }

// Str returns the trimmed cell of a column, "" if the row or the table lacks it.
func (r *Record) Str(col string) string {
	i, ok := r.Cols[col]
	if !ok || i >= len(r.Cells) {
		return ""
	}
	return strings.TrimSpace(r.Cells[i])
}

// Need is Str that fails for an empty cell.
func (r *Record) Need(col string) string {
	s := r.Str(col)
	if s == "" {
		r.Fail(col, errors.New("is missing"))
	}
	return s
}

// Origin returns FILE:LINE with the path of the file in its repository, whichever folder of the
// repository is read. layout is that path with * for names that vary, such as "traces/*/rows.csv":
// as many last elements of File are kept, and elements that it lacks are those of layout.
func (r *Record) Origin(layout string) string { return Origin(layout, r.File, r.Line) }

// Origin is Record.Origin of a line of a file.
func Origin(layout, file string, line int) string {
	want, have := strings.Split(layout, "/"), strings.Split(file, "/")
	if n := len(have) - len(want); n > 0 {
		have = have[n:]
	} else {
		have = append(want[:-n:-n], have...)
	}
	return fmt.Sprintf("%s:%d", strings.Join(have, "/"), line)
}

// Float returns the finite number in a column, 0 for an empty cell.
func (r *Record) Float(col string) float64 {
	s := r.Str(col)
	if s == "" {
		return 0
	}
	v, err := strconv.ParseFloat(s, 64)
	if err != nil || math.IsInf(v, 0) || math.IsNaN(v) {
		r.Fail(col, errors.New("is not a finite number"))
		return 0
	}
	return v
}

// AtLeast0 is Float that fails below zero.
func (r *Record) AtLeast0(col string) float64 {
	v := r.Float(col)
	if v < 0 {
		r.Fail(col, errors.New("is negative"))
	}
	return v
}

// MaxCount bounds whole numbers, so that products of a few stay in an int64.
const MaxCount = 1 << 30

// Count returns the whole number >= 0 in a column, 0 for an empty cell. It accepts a zero fraction
// ("4.0").
func (r *Record) Count(col string) int {
	s := r.Str(col)
	if s == "" {
		return 0
	}
	v, err := strconv.ParseFloat(s, 64)
	switch {
	case err != nil || math.IsNaN(v):
		r.Fail(col, errors.New("is not a whole number"))
		return 0
	case v < 0:
		r.Fail(col, errors.New("is negative"))
		return 0
	case v != math.Trunc(v) || v > MaxCount:
		r.Fail(col, fmt.Errorf("is not a whole number in 0..%d", int(MaxCount)))
		return 0
	}
	return int(v)
}

// NeedCount is Count that fails for an empty cell and for 0.
func (r *Record) NeedCount(col string) int {
	n := r.Count(col)
	if n == 0 {
		r.Fail(col, errors.New("is missing or 0"))
	}
	return n
}

// MaxDevices bounds the devices of a job.
const MaxDevices = 1 << 20

// RowError is an invalid value of a row. The row is skipped and reading continues.
type RowError struct {
	File   string
	Line   int    // 1 is the first; 0 = the whole file
	Column string // name of the column or key, "" = the whole row
	Value  string // as written
	Err    error  // says what is wrong, without package, column and value
}

func (e *RowError) Error() string {
	var b strings.Builder
	b.WriteString("datasets: " + e.File)
	if e.Line > 0 {
		fmt.Fprintf(&b, ":%d", e.Line)
	}
	b.WriteString(": ")
	if e.Column != "" {
		fmt.Fprintf(&b, "%s %q: ", e.Column, e.Value)
	}
	return b.String() + e.Err.Error()
}

func (e *RowError) Unwrap() error { return e.Err }
