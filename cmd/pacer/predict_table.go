package main

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/pacer-ml/pacer/cmd/internal/console"
)

// printRows prints predicted rows for people: figures of three digits, and
// below them what is to be said of which rows.
func printRows(w io.Writer, rows []predictedRow, parts [][]string, by string) error {
	header := []string{"row", "step s", "90 % interval", "samples/s", "TFLOP/s", "GiB", "fits"}
	if parts != nil {
		header = append(header, explainColumns()...)
	}
	table := [][]string{header}
	for i := range rows {
		line := rows[i].figures()
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

// figures are the cells of a row for people.
func (r *predictedRow) figures() []string {
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

// shortened is a figure for machines as one for people.
func shortened(cell string) string {
	v, err := strconv.ParseFloat(cell, 64)
	if err != nil {
		return "-"
	}
	return console.Significant(v, 3)
}

// notedRows is how many rows a note names.
const notedRows = 4

// printRowNotes prints every distinct warning once, with the rows it is of.
func printRowNotes(w io.Writer, rows []predictedRow) error {
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
		who, n := of[note], len(of[note])
		names := strings.Join(who[:min(n, notedRows)], ", ")
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
