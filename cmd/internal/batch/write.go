package batch

import (
	"encoding/csv"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/pacer-ml/pacer/cmd/internal/console"
	"github.com/pacer-ml/pacer/cmd/internal/number"
	"github.com/pacer-ml/pacer/cmd/internal/query"
	"github.com/pacer-ml/pacer/perfmodel/memory"
)

// Writer writes predicted rows: CSV at once, the other formats at the end.
type Writer struct {
	w       io.Writer
	csv     *csv.Writer // nil for other formats
	explain bool
	table   bool
	family  string
	rows    []Row
	parts   [][]string // cells of explanations, for a table of rows explained
}

// NewWriter writes rows to w in a format: csv, json or table. family is the one that predicts
// them.
func NewWriter(w io.Writer, format, family string, explain bool) (*Writer, error) {
	rw := &Writer{w: w, table: format == "table", family: family, explain: explain}
	if format != "csv" {
		return rw, nil
	}
	rw.csv = csv.NewWriter(w)
	return rw, rw.csv.Write(Header(explain))
}

// Put writes a row.
func (w *Writer) Put(r *Row) error {
	var parts []string
	if w.explain {
		e := r.Explanation
		if e == nil {
			e = &query.Explanation{}
		}
		parts = e.Cells()
	}
	if w.csv != nil {
		return w.csv.Write(r.cells(parts))
	}
	w.rows = append(w.rows, *r)
	if w.table && w.explain {
		w.parts = append(w.parts, parts)
	}
	return nil
}

// Close completes the output.
func (w *Writer) Close() error {
	switch {
	case w.csv != nil:
		w.csv.Flush()
		return w.csv.Error()
	case w.table:
		return printRows(w.w, w.rows, w.parts, w.family)
	}
	return console.WriteJSON(w.w, map[string]any{"rows": w.rows})
}

// printRows prints predicted rows with figures of three digits, and warnings below them.
func printRows(w io.Writer, rows []Row, parts [][]string, by string) error {
	header := []string{"row", "step s", "90 % interval", "samples/s", "TFLOP/s", "GiB", "fits"}
	if parts != nil {
		header = append(header, query.ExplanationColumns()...)
	}
	table := [][]string{header}
	for i := range rows {
		line := rowFigures(&rows[i])
		if parts != nil {
			for _, cell := range parts[i] {
				line = append(line, shortened(cell))
			}
		}
		table = append(table, line)
	}
	if err := console.WriteTable(w, table); err != nil {
		return err
	}
	fmt.Fprintf(w, "by %s; GiB and TFLOP/s are per device\n", by)
	return printRowNotes(w, rows)
}

// rowFigures are the cells of a row in a table.
func rowFigures(r *Row) []string {
	text := func(v *float64) string {
		if v == nil {
			return "-"
		}
		return number.Significant(*v, 3)
	}
	interval, fits := "-", "-"
	if r.StepTimeLo != nil {
		interval = text(r.StepTimeLo) + " - " + text(r.StepTimeHi)
	}
	if r.Verdict != "" {
		fits = map[memory.Verdict]string{memory.Fits: "yes", memory.Unsure: "unsure", memory.Exceeds: "no"}[r.Verdict]
	}
	return []string{r.ID, text(r.StepTimeSec), interval, text(r.SamplesPerS), text(r.TFLOPsPerGPU), text(r.MemGiB), fits}
}

// shortened writes a figure of CSV with three digits.
func shortened(cell string) string {
	v, err := strconv.ParseFloat(cell, 64)
	if err != nil {
		return "-"
	}
	return number.Significant(v, 3)
}

// notedRows is the number of rows that a note names.
const notedRows = 4

// printRowNotes prints every distinct warning once, with its rows.
func printRowNotes(w io.Writer, rows []Row) error {
	of := map[string][]string{}
	var order []string
	for _, r := range rows {
		for _, note := range r.Warnings {
			if of[note] == nil {
				order = append(order, note)
			}
			if !slices.Contains(of[note][max(len(of[note])-1, 0):], r.ID) {
				of[note] = append(of[note], r.ID)
			}
		}
	}
	for _, note := range order {
		ids, n := of[note], len(of[note])
		names := strings.Join(ids[:min(n, notedRows)], ", ")
		switch {
		case n == len(rows) && n > 1:
			names = "all rows"
		case n > notedRows:
			names += fmt.Sprintf(" and %d more", n-notedRows)
		}
		if _, err := fmt.Fprintf(w, "%s: %s\n", names, note); err != nil {
			return err
		}
	}
	return nil
}
