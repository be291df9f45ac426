package report

import (
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// Format is the format of a file of rows.
type Format string

const (
	CSV     Format = "csv"
	Parquet Format = "parquet"
)

// FormatOf returns the format for the extension of path: Parquet for .parquet and
// .pq, else CSV.
func FormatOf(path string) Format {
	switch strings.ToLower(filepath.Ext(path)) {
	case ".parquet", ".pq":
		return Parquet
	}
	return CSV
}

// kind is the type of a column's values.
type kind uint8

const (
	textKind   kind = iota // UTF-8
	wholeKind              // 64-bit integer
	numberKind             // 64-bit float
	timeKind               // seconds, in Parquet as a 64-bit float, in CSV exact to the nanosecond
)

func (k kind) String() string { return [...]string{"text", "whole", "number", "number"}[k] }

// cell is one value of a column. The column's kind determines the field that holds
// it.
type cell struct {
	null bool
	s    string
	n    int64
	f    float64
	d    time.Duration
}

// column is a column of a file with a row per T. A test checks that FORMAT.md
// lists them all.
type column[T any] struct {
	name, unit, doc string
	kind            kind
	get             func(*T) cell
}

// textCell is null if s is empty.
func textCell(s string) cell { return cell{s: s, null: s == ""} }

func wholeCell(n int) cell { return cell{n: int64(n)} }

func numberCell(n Number) cell { return cell{f: float64(n), null: !n.Defined()} }

func timeCell(d time.Duration, known bool) cell { return cell{d: d, null: !known} }

// csv writes a cell, null as the empty string.
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
