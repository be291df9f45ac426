package main

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/pacer-ml/pacer/cmd/internal/command"
	"github.com/pacer-ml/pacer/cmd/internal/console"
	"github.com/pacer-ml/pacer/cmd/internal/query"
	"github.com/pacer-ml/pacer/perfmodel"
	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/perfmodel/spec/named"
	"github.com/pacer-ml/pacer/profiler/store"
)

func exportCommand() *cli.Command {
	return &cli.Command{
		Name:      "export",
		Usage:     "write measurements of the store to a Parquet or Arrow file",
		ArgsUsage: "FILE",
		Description: `The format follows from the name: .parquet, or .arrow for an Arrow IPC file.
"pacer import parquet FILE" reads it back, and so do pandas, polars and DuckDB.
The file appears whole or not at all.`,
		Flags: filterFlags(),
		Action: func(c *cli.Context) error {
			path, err := command.OnePath(c, "FILE")
			if err != nil {
				return err
			}
			format, err := store.FormatOf(path)
			if err != nil {
				return command.Usagef("export: %w", err)
			}
			rows, err := selectedRows(c)
			if err != nil {
				return err
			}
			n, err := store.ExportFile(path, format, perfmodel.Rows(rows))
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

// filterFlags select measurements of the store.
func filterFlags() []cli.Flag {
	return []cli.Flag{
		&cli.StringSliceFlag{Name: "model", Usage: "only measurements of `MODEL` (repeatable)"},
		&cli.StringSliceFlag{Name: "accelerator", Usage: "only measurements on `ACCELERATOR` (repeatable)"},
		&cli.StringSliceFlag{Name: "source", Usage: "only measurements from `SOURCE`, such as rubick (repeatable)"},
	}
}

// selectedRows returns the stored measurements that the filter flags select; none
// is an error.
func selectedRows(c *cli.Context) ([]spec.Measurement, error) {
	filter, err := storeFilter(c)
	if err != nil {
		return nil, err
	}
	rows, err := storedRows(c, filter)
	if err == nil && len(rows) == 0 {
		err = noneStored(c, filter)
	}
	return rows, err
}

// noneStored says why f chooses no row of the store.
func noneStored(c *cli.Context, f store.Filter) error {
	tallies, err := storeSummary(c)
	if err != nil {
		return err
	}
	code, why := command.ExitNoAnswer, "no stored measurement matches; pacer ls measurements shows what there is"
	switch {
	case len(tallies) == 0:
		why = "nothing is stored yet; import measurements first, see pacer import --help"
	default:
		for _, kind := range []struct {
			what  string
			asked []string
			of    func(store.Tally) string
		}{{"source", f.Sources, query.SourceOf}, {"model", f.Models, query.ModelOf}, {"accelerator", f.Accelerators, query.AcceleratorOf}} {
			if said := notStored(kind.what, kind.asked, tallies, kind.of); said != "" {
				code, why = command.ExitUsage, said
				break
			}
		}
	}
	return command.WithCode(code, fmt.Errorf("%s: %s", c.Command.Name, why))
}

// notStored names the stored ones of a kind, the nearest first, where none of
// those asked for is; "" where one is or none is asked for.
func notStored(what string, asked []string, tallies []store.Tally, of func(store.Tally) string) string {
	var stored []string
	for _, t := range tallies {
		if slices.Contains(asked, of(t)) {
			return ""
		}
		stored = append(stored, of(t))
	}
	if len(asked) == 0 {
		return ""
	}
	slices.Sort(stored)
	stored = named.Nearest(asked[0], slices.Compact(stored), maxReported)
	return fmt.Sprintf("no stored measurement is of %s %q; stored are %s", what, strings.Join(asked, ", "), strings.Join(stored, ", "))
}

// storeFilter reads the filter flags. Names match stored ones whatever their
// case and punctuation, those of accelerators also by words no other has.
func storeFilter(c *cli.Context) (store.Filter, error) {
	f := store.Filter{Models: c.StringSlice("model"), Accelerators: acceleratorNames(c.StringSlice("accelerator")), Sources: c.StringSlice("source")}
	if len(f.Models)+len(f.Sources)+len(f.Accelerators) == 0 {
		return f, nil
	}
	tallies, err := storeSummary(c)
	var parts []string
	for _, t := range tallies {
		adopt(f.Models, t.Model)
		adopt(f.Sources, t.Source)
		parts = append(parts, t.Accelerator)
	}
	slices.Sort(parts)
	parts = slices.Compact(parts)
	for i, name := range f.Accelerators {
		if found := query.Match(name, parts); len(found) == 1 {
			f.Accelerators[i] = found[0]
		}
	}
	return f, err
}

// adopt spells the names that mean stored as it is stored.
func adopt(names []string, stored string) {
	for i, n := range names {
		if named.Fold(n) == named.Fold(stored) {
			names[i] = stored
		}
	}
}
