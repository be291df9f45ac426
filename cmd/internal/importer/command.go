package importer

import (
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/pacer-ml/pacer/cmd/internal/command"
	"github.com/pacer-ml/pacer/cmd/internal/console"
	"github.com/pacer-ml/pacer/cmd/internal/datadir"
	"github.com/pacer-ml/pacer/cmd/internal/fail"
	"github.com/pacer-ml/pacer/cmd/internal/number"
	"github.com/pacer-ml/pacer/datasets"
	"github.com/pacer-ml/pacer/datasets/measured"
	"github.com/pacer-ml/pacer/perfmodel"
	"github.com/pacer-ml/pacer/perfmodel/rowfile"
	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/profiler"
	"github.com/pacer-ml/pacer/profiler/store"
)

// Command is pacer import.
func Command() *cli.Command {
	cmd := &cli.Command{
		Name:  "import",
		Usage: "read measurements into the store",
		Description: `Published data sets are read from a clone of the repository they come from;
parquet and arrow read what "pacer export" wrote. Rows already in the store are
not stored twice. A row that cannot be used is reported with file, line and
value, and reading goes on; the exit code is then 4. Where pacer serve has the
data directory open, or with --server, rows are posted to it.`,
	}
	for _, imp := range datasets.Importers() {
		cmd.Subcommands = append(cmd.Subcommands, datasetCommand(imp))
	}
	cmd.Subcommands = append(cmd.Subcommands, measuredCommand(), logCommand(),
		fileCommand("parquet", "a Parquet file written by pacer export", rowfile.ReadParquet),
		fileCommand("arrow", "an Arrow IPC file written by pacer export", rowfile.ReadArrow))
	for _, sub := range cmd.Subcommands {
		sub.Flags = append(sub.Flags, datadir.ServerFlag(""))
	}
	return cmd
}

// datasetCommand imports one published data set from a directory.
func datasetCommand(imp datasets.Importer) *cli.Command {
	return &cli.Command{
		Name:        imp.Name,
		Usage:       imp.Doc,
		ArgsUsage:   "DIR",
		Description: importText(imp),
		Action: func(c *cli.Context) error {
			dir, err := command.OnePath(c, "DIR")
			if err != nil {
				return err
			}
			if st, err := os.Stat(dir); err != nil {
				return fmt.Errorf("import %s: %w", imp.Name, err)
			} else if !st.IsDir() {
				return fail.Usagef("import %s: %s is a file, want the directory of the data set", imp.Name, dir)
			}
			rows, err := imp.Open(os.DirFS(dir))
			if err != nil {
				return fmt.Errorf("import %s: %s: %w", imp.Name, dir, err)
			}
			if imp.Notes != nil {
				for _, note := range imp.Notes(os.DirFS(dir)) {
					fmt.Fprintf(c.App.ErrWriter, "import %s: %s\n", imp.Name, note)
				}
			}
			total, err := rows.Count()
			if err != nil {
				return fmt.Errorf("import %s: %s: %w", imp.Name, dir, err)
			}
			return runImport(c, imp.Name, total, rows.All(c.Context))
		},
	}
}

// importText describes DIR and the origin of the data set.
func importText(imp datasets.Importer) string {
	text := "DIR is " + imp.Dir + ".\n"
	if imp.Commit == "" {
		text += "Rows are your own, or published: then source_path and source_commit name the source.\n"
	} else {
		text += fmt.Sprintf("The repository is %s,\nread at commit %s. docs/design/performance-models.md, \"Importers\", says\nwhich files are read and what a row becomes.\n", imp.URL, imp.Commit[:7])
	}
	return text + "Licence of the data: " + imp.License + "."
}

// measuredCommand imports one of the sets that are built in.
func measuredCommand() *cli.Command {
	return &cli.Command{
		Name: "measured", Usage: "what this project measured itself, built in: see pacer ls measured", ArgsUsage: "NAME",
		Action: func(c *cli.Context) error {
			name, err := command.OnePath(c, "NAME")
			if err != nil {
				return err
			}
			set, err := measured.Lookup(name)
			if err != nil {
				return fail.Usagef("import measured: %w", err)
			}
			rows, err := Measured(set)
			if err != nil {
				return err
			}
			return runImport(c, "measured", set.Rows, perfmodel.Rows(rows))
		},
	}
}

// Measured returns the rows of a set that is built in.
func Measured(s measured.Set) ([]spec.Measurement, error) {
	return rowfile.RowsOfParquet(s.Name+".parquet", s.Parquet)
}

// fileCommand imports one file of measurements.
func fileCommand(name, doc string, read func(path string) iter.Seq2[spec.Measurement, error]) *cli.Command {
	return &cli.Command{
		Name: name, Usage: doc, ArgsUsage: "FILE",
		Action: func(c *cli.Context) error {
			file, err := command.OnePath(c, "FILE")
			if err != nil {
				return err
			}
			if _, err := os.Stat(file); err != nil {
				return fmt.Errorf("import %s: %w", name, err)
			}
			return runImport(c, name, 0, read(file))
		},
	}
}

// logCommand imports one training run from its log.
func logCommand() *cli.Command {
	return &cli.Command{
		Name: "log", Usage: "the log of a training run of your own", ArgsUsage: "FILE",
		Description: `FILE is the output of Megatron-LM, torchtitan, DeepSpeed, NeMo, Lightning, the
Trainer of transformers or MaxText. Its steps after the warm-up become one row.
docs/guides/campaigns.md, "Runs that exist", describes the file of --config.
A log with another batch, sequence length or accumulation than the plan is
refused.`,
		Flags: []cli.Flag{&cli.StringFlag{Name: "config", Usage: "read the model, accelerator and plan of the run from the YAML `FILE` (required)"}},
		Action: func(c *cli.Context) error {
			file, err := command.OnePath(c, "FILE")
			if err != nil {
				return err
			}
			if c.String("config") == "" {
				return fail.Usagef("import log: --config is missing, want the file that describes the run")
			}
			m, err := readLog(file, c.String("config"))
			if err != nil {
				return err
			}
			fmt.Fprintf(c.App.ErrWriter, "import log: %s in the log of %s, median %s s\n", spec.Count(len(m.StepSec), "step time"), m.Env[profiler.EnvTiming], number.Significant(m.MedianStepSec(), 4))
			return runImport(c, "log", 1, func(yield func(spec.Measurement, error) bool) { yield(m, nil) })
		},
	}
}

// importedFrom describes an import for the provenance of its rows.
func importedFrom(c *cli.Context, name string) string {
	from := c.Args().First()
	if path, err := filepath.Abs(from); err == nil && name != "measured" {
		from = path
	}
	return "pacer import " + name + " " + strings.ToValidUTF8(from, "?")
}

// runImport writes seq into the store in acknowledged batches.
func runImport(c *cli.Context, name string, total int, seq iter.Seq2[spec.Measurement, error]) error {
	to, err := datadir.Of(c).OpenRows(store.Options{From: importedFrom(c, name)})
	if err != nil {
		return err
	}
	r, err := Store(c.Context, to, name, total, seq, c.App.ErrWriter)
	if err != nil {
		return err
	}
	r.printSources(c.App.ErrWriter)
	if err := command.Print(c, console.Result{
		JSON: r,
		CSV: [][]string{{"source", "rows", "added", "updated", "unchanged", "warnings", "bad", "forgotten"},
			{r.Source, strconv.Itoa(r.Rows), strconv.Itoa(r.Added), strconv.Itoa(r.Updated), strconv.Itoa(r.Unchanged), strconv.Itoa(r.Warnings), strconv.Itoa(r.Bad), strconv.Itoa(r.Forgotten)}},
	}); err != nil {
		return err
	}
	if r.Bad > 0 {
		return fail.Partialf("%d of %d rows of %s could not be used, see above", r.Bad, r.Bad+r.Rows, name)
	}
	return nil
}
