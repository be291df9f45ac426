package console

import (
	"encoding/csv"
	"encoding/json"
	"io"

	"github.com/pacer-ml/pacer/scheduler/report"
)

// Result is what a command prints, in each of the output formats.
type Result struct {
	JSON  any
	CSV   [][]string              // header first
	Table func(w io.Writer) error // nil = CSV as a table
}

// Formats are the output formats.
var Formats = []string{"table", "json", "csv"}

// Write prints the result in one of Formats.
func (r Result) Write(w io.Writer, format string) error {
	switch {
	case format == "json":
		return WriteJSON(w, r.JSON)
	case format == "csv":
		return csv.NewWriter(w).WriteAll(r.CSV)
	case r.Table != nil:
		return r.Table(w)
	}
	return WriteTable(w, r.CSV)
}

// WriteJSON prints v indented.
func WriteJSON(w io.Writer, v any) error {
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	enc.SetEscapeHTML(false)
	return enc.Encode(v)
}

// WriteTable prints rows, header first, in aligned columns.
func WriteTable(w io.Writer, rows [][]string) error {
	if len(rows) == 0 {
		return nil
	}
	return report.Table{Header: rows[0], Rows: rows[1:], Width: Width(w)}.Write(w)
}
