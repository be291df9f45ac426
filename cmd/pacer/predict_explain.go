package main

import (
	"fmt"
	"io"

	"github.com/pacer-ml/pacer/cmd/internal/console"
	"github.com/pacer-ml/pacer/cmd/internal/query"
	"github.com/pacer-ml/pacer/perfmodel/family/analytic"
	"github.com/pacer-ml/pacer/perfmodel/memory"
)

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

// explanationCells are the cells of explainColumns; those that are not known are blank.
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

// printExplanation writes two tables for people, parts that are nothing left out.
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
