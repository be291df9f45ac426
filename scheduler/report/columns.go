package report

import (
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// Format is a file format rows are written in.
type Format string

const (
	CSV     Format = "csv"
	Parquet Format = "parquet"
)

// FormatOf returns the format that the ending of path stands for: Parquet for
// .parquet and .pq, else CSV.
func FormatOf(path string) Format {
	switch strings.ToLower(filepath.Ext(path)) {
	case ".parquet", ".pq":
		return Parquet
	}
	return CSV
}

// kind is what a column holds.
type kind uint8

const (
	textKind   kind = iota // UTF-8
	wholeKind              // 64-bit integer
	numberKind             // 64-bit float
	timeKind               // seconds, in Parquet as a 64-bit float, in CSV exact to the nanosecond
)

func (k kind) String() string { return [...]string{"text", "whole", "number", "number"}[k] }

// cell is one value of a column; which field holds it follows from the column's
// kind.
type cell struct {
	null bool
	s    string
	n    int64
	f    float64
	d    time.Duration
}

// column is a column of a file with a row per T. FORMAT.md lists them all; a test
// compares.
type column[T any] struct {
	name, unit, doc string
	kind            kind
	get             func(*T) cell
}

// textCell is null where there is no text.
func textCell(s string) cell { return cell{s: s, null: s == ""} }

func wholeCell(n int) cell { return cell{n: int64(n)} }

func numberCell(n Number) cell { return cell{f: float64(n), null: !n.Defined()} }

func timeCell(d time.Duration, known bool) cell { return cell{d: d, null: !known} }

// csv writes a cell, null as nothing.
func (k kind) csv(c cell) string {
	switch {
	case c.null:
		return ""
	case k == wholeKind:
		return strconv.FormatInt(c.n, 10)
	case k == numberKind:
		return Number(c.f).String()
	case k == timeKind:
		return Seconds(c.d)
	}
	return c.s
}
