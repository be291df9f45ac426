package main

import (
	"encoding/csv"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/pacer-ml/pacer/cmd/internal/batch"
	"github.com/pacer-ml/pacer/cmd/internal/command"
	"github.com/pacer-ml/pacer/cmd/internal/console"
	"github.com/pacer-ml/pacer/cmd/internal/query"
	"github.com/pacer-ml/pacer/perfmodel/family/analytic"
	"github.com/pacer-ml/pacer/perfmodel/memory"
)

// rowWriter writes predicted rows: CSV at once, the other formats at the end.
type rowWriter struct {
	w       io.Writer
	csv     *csv.Writer // nil for other formats
	explain bool
	table   bool
	family  string
	rows    []batch.Row
	parts   [][]string // cells of explainColumns, for a table of rows explained
}

// newRowWriter writes CSV unless --output is given.
func newRowWriter(c *cli.Context, w io.Writer, family string) *rowWriter {
	rw := &rowWriter{w: w, family: family}
	switch {
	case !command.OutputGiven(c) || command.Global(c, "output") == "csv":
		rw.csv = csv.NewWriter(w)
	default:
		rw.table = command.Global(c, "output") == "table"
	}
	return rw
}

func (w *rowWriter) begin(explain bool) error {
	w.explain = explain
	header := batch.Columns
	if explain {
		header = append(header[:len(header):len(header)], explainColumns()...)
	}
	if w.csv == nil {
		return nil
	}
	return w.csv.Write(header)
}

func (w *rowWriter) put(r *batch.Row) error {
	var parts []string
	if w.explain {
		e := r.Explanation
		if e == nil {
			e = &query.Explanation{}
		}
		parts = explanationCells(e)
	}
	if w.csv != nil {
		return w.csv.Write(append(r.Cells(), parts...))
	}
	w.rows = append(w.rows, *r)
	if w.table && w.explain {
		w.parts = append(w.parts, parts)
	}
	return nil
}

func (w *rowWriter) end() error {
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
func printRows(w io.Writer, rows []batch.Row, parts [][]string, by string) error {
	header := []string{"row", "step s", "90 % interval", "samples/s", "TFLOP/s", "GiB", "fits"}
	if parts != nil {
		header = append(header, explainColumns()...)
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
func rowFigures(r *batch.Row) []string {
	number := func(v *float64) string {
		if v == nil {
			return "-"
		}
		return console.Significant(*v, 3)
	}
	interval, fits := "-", "-"
	if r.StepTimeLo != nil {
		interval = number(r.StepTimeLo) + " - " + number(r.StepTimeHi)
	}
	if r.Fits != nil {
		fits = map[bool]string{true: "yes", false: "no"}[*r.Fits]
	}
	return []string{r.ID, number(r.StepTimeSec), interval, number(r.SamplesPerS), number(r.TFLOPsPerGPU), number(r.MemGiB), fits}
}

// shortened writes a figure of CSV with three digits.
func shortened(cell string) string {
	v, err := strconv.ParseFloat(cell, 64)
	if err != nil {
		return "-"
	}
	return console.Significant(v, 3)
}

// notedRows is the number of rows that a note names.
const notedRows = 4

// printRowNotes prints every distinct warning once, with its rows.
func printRowNotes(w io.Writer, rows []batch.Row) error {
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

// explainColumns are the columns that --explain adds to a CSV.
func explainColumns() []string {
	var out []string
	for _, s := range query.TimeShares(analytic.Parts{}) {
		out = append(out, s.Name+"_s")
	}
	for _, s := range query.MemoryShares(memory.Breakdown{}) {
		out = append(out, s.Name+"_gib")
	}
	return out
}

// explanationCells are the cells of explainColumns; unknown ones are blank.
func explanationCells(e *query.Explanation) []string {
	var out []string
	for _, s := range e.Sec {
		out = append(out, console.Float(s.Size))
	}
	for _, s := range e.GiB {
		out = append(out, console.Float(s.Size))
	}
	return append(out, make([]string, len(explainColumns())-len(out))...)
}

// printExplanation prints two tables, without parts that are 0.
func printExplanation(w io.Writer, e *query.Explanation) error {
	if err := printShares(w, e.Sec, "step s", 3); err != nil || e.GiB == nil {
		return err
	}
	return printShares(w, e.GiB, "GiB", 2)
}

func printShares(w io.Writer, shares []query.Share, unit string, digits int) error {
	total := 0.0
	for _, s := range shares {
		if s.Name != "host" {
			total += s.Size
		}
	}
	table := [][]string{{"part", unit, "share"}}
	for _, s := range shares {
		switch {
		case s.Size < total/1e4:
		case s.Name == "host":
			table = append(table, []string{s.What, console.Significant(s.Size, digits), ""})
		default:
			table = append(table, []string{s.What, console.Significant(s.Size, digits), fmt.Sprintf("%.1f %%", 100*s.Size/total)})
		}
	}
	fmt.Fprintln(w)
	return console.WriteTable(w, table)
}
