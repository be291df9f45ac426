package main

import (
	"os"
	"strconv"

	"github.com/urfave/cli/v2"

	"github.com/pacer-ml/pacer/cmd/internal/command"
	"github.com/pacer-ml/pacer/cmd/internal/console"
	"github.com/pacer-ml/pacer/cmd/internal/datadir"
	"github.com/pacer-ml/pacer/cmd/internal/fail"
	"github.com/pacer-ml/pacer/perfmodel"
	"github.com/pacer-ml/pacer/perfmodel/rowfile"
)

func exportCommand() *cli.Command {
	return &cli.Command{
		Name:      "export",
		Usage:     "write measurements of the store to a Parquet or Arrow file",
		ArgsUsage: "FILE",
		Description: `The format follows from the name: .parquet, or .arrow for an Arrow IPC file.
"pacer import parquet FILE" reads it back, and so do pandas, polars and DuckDB.
The file appears complete or not at all. While pacer serve has the store open, the
rows come from the server, with the token in $` + command.TokenVariable + ` if it has tokens.`,
		Flags: command.FilterFlags(),
		Action: func(c *cli.Context) error {
			path, err := command.OnePath(c, "FILE")
			if err != nil {
				return err
			}
			format, err := rowfile.FormatOf(path)
			if err != nil {
				return fail.Usagef("export: %w", err)
			}
			rows, err := datadir.Of(c).SelectServed(c.Context, command.StoreFilter(c))
			if err != nil {
				return err
			}
			n, err := rowfile.ExportFile(path, format, perfmodel.Rows(rows))
			if err != nil {
				return err
			}
			st, err := os.Stat(path)
			if err != nil {
				return err
			}
			return command.Print(c, console.Result{
				JSON: map[string]any{"file": path, "rows": n, "bytes": st.Size()},
				CSV:  [][]string{{"file", "rows", "bytes"}, {path, strconv.Itoa(n), strconv.Itoa(int(st.Size()))}},
			})
		},
	}
}
