package main

import (
	"fmt"
	"io"

	"github.com/pacer-ml/pacer/cmd/internal/console"
	"github.com/pacer-ml/pacer/cmd/internal/query"
)

// printExplanation prints two tables, without parts that are 0.
func printExplanation(w io.Writer, e *query.Explanation) error {
	if err := printShares(w, e.Sec, "step s", 3); err != nil || e.GiB == nil {
		return err
	}
	return printShares(w, e.GiB, "GiB", 2)
}

// printShares prints sizes with their shares of the total; host memory is not part of it.
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
