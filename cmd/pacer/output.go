package main

import (
	"encoding/csv"
	"encoding/json"
	"io"
	"os"

	"github.com/urfave/cli/v2"
	"golang.org/x/term"

	"github.com/pacer-ml/pacer/scheduler/report"
)

// result is what a command prints, in each of the output formats.
type result struct {
	json  any // the contract's JSON value
	table func(w io.Writer) error
	csv   [][]string // header first
}

// checkOutput rejects an unknown --output before any work is done.
func checkOutput(c *cli.Context) error {
	switch f := global(c, "output"); f {
	case "table", "json", "csv":
		return nil
	default:
		return usagef("--output %q is not one of table, json, csv", f)
	}
}

// emit prints r to standard output in the wanted format.
func emit(c *cli.Context, r result) error {
	w := c.App.Writer
	switch global(c, "output") {
	case "json":
		return writeJSON(w, r.json)
	case "csv":
		cw := csv.NewWriter(w)
		if err := cw.WriteAll(r.csv); err != nil {
			return err
		}
		return cw.Error()
	}
	if r.table != nil {
		return r.table(w)
	}
	return writeTable(w, r.csv)
}

func writeJSON(w io.Writer, v any) error {
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	enc.SetEscapeHTML(false)
	return enc.Encode(v)
}

// writeTable prints rows, header first, aligned.
func writeTable(w io.Writer, rows [][]string) error {
	if len(rows) == 0 {
		return nil
	}
	return report.Table{Header: rows[0], Rows: rows[1:], Width: terminalWidth(w)}.Write(w)
}

// terminalWidth returns the columns of the terminal w is, 0 if it is none.
func terminalWidth(w io.Writer) int {
	f, ok := unwrap(w).(*os.File)
	if !ok {
		return 0
	}
	width, _, err := term.GetSize(int(f.Fd()))
	if err != nil {
		return 0
	}
	return max(width, 60)
}
