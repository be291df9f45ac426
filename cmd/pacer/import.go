package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/pacer-ml/pacer/cmd/internal/command"
	"github.com/pacer-ml/pacer/cmd/internal/console"
	"github.com/pacer-ml/pacer/cmd/internal/fail"
	"github.com/pacer-ml/pacer/datasets"
	"github.com/pacer-ml/pacer/datasets/measured"
	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/profiler/store"
)

// importBatch is how many rows are written, synced and acknowledged together.
const importBatch = 128

func importCommand() *cli.Command {
	cmd := &cli.Command{
		Name:  "import",
		Usage: "read measurements into the store",
		Description: `Published data sets are read from a clone of the repository they come from;
parquet and arrow read what "pacer export" wrote. Rows already in the store are
not stored twice. A row that cannot be used is reported with file, line and
value, and reading goes on; the exit code is then 4.`,
	}
	for _, imp := range datasets.Importers() {
		cmd.Subcommands = append(cmd.Subcommands, datasetCommand(imp))
	}
	cmd.Subcommands = append(cmd.Subcommands, measuredCommand(),
		fileCommand("parquet", "a Parquet file written by pacer export", store.ReadParquet),
		fileCommand("arrow", "an Arrow IPC file written by pacer export", store.ReadArrow))
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
			return runImport(c, "measured", set.Rows, store.ReadParquetFrom(set.Name+".parquet", bytes.NewReader(set.Parquet), int64(len(set.Parquet))))
		},
	}
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

// importResult is the JSON of pacer import.
type importResult struct {
	Source    string `json:"source"`
	Rows      int    `json:"rows"`      // usable rows read
	Added     int    `json:"added"`     // new in the store
	Updated   int    `json:"updated"`   // known, with other descriptive figures
	Unchanged int    `json:"unchanged"` // already stored
	Warnings  int    `json:"warnings"`  // rows kept although something about them is odd
	Bad       int    `json:"bad"`       // rows that could not be used
	// Sources are what the rows are from, as --source has it.
	Sources []string `json:"sources"`
}

// runImport writes seq into the store in acknowledged batches.
func runImport(c *cli.Context, name string, total int, seq iter.Seq2[spec.Measurement, error]) error {
	db, err := dataDir(c).Open(store.Options{})
	if err != nil {
		return err
	}
	im := &importer{ctx: c.Context, db: db, origins: store.NewOrigins(db), log: c.App.ErrWriter, bar: console.NewBar(c.App.ErrWriter, "import "+name, total)}
	im.res.Source, im.res.Sources = name, []string{}
	err = errors.Join(im.read(seq), db.Close())
	im.bar.Finish()
	im.warnSummary()
	if err != nil {
		return err
	}
	im.sourceHint()
	r := im.res
	if err := command.Print(c, console.Result{
		JSON: r,
		CSV: [][]string{{"source", "rows", "added", "updated", "unchanged", "warnings", "bad"},
			{r.Source, strconv.Itoa(r.Rows), strconv.Itoa(r.Added), strconv.Itoa(r.Updated), strconv.Itoa(r.Unchanged), strconv.Itoa(r.Warnings), strconv.Itoa(r.Bad)}},
	}); err != nil {
		return err
	}
	if r.Bad > 0 {
		return fail.Partialf("%d of %d rows of %s could not be used, see above", r.Bad, r.Bad+r.Rows, name)
	}
	return nil
}

// importer is one import under way.
type importer struct {
	ctx     context.Context
	db      *store.DB
	origins *store.Origins
	log     io.Writer
	bar     *console.Bar
	batch   []spec.Measurement
	res     importResult
	odd     map[string]oddRows // by warning, to print each once
	order   []string           // of the warnings
}

// oddRows are the rows with one warning.
type oddRows struct {
	n     int
	first string // origin
}

// maxReported bounds the rows reported one by one.
const maxReported = 20

// read stores seq; it stops only when the source or the store fails as a whole.
func (im *importer) read(seq iter.Seq2[spec.Measurement, error]) error {
	im.odd = map[string]oddRows{}
	for m, err := range seq {
		if cerr := im.ctx.Err(); cerr != nil {
			return fmt.Errorf("stopped after %d rows, which are stored: %w", im.res.Added+im.res.Updated+im.res.Unchanged, cerr)
		}
		var row *datasets.RowError
		switch {
		case errors.As(err, &row):
			im.reportBad(err)
			continue
		case err != nil:
			return errors.Join(fmt.Errorf("import %s: %w", im.res.Source, err), im.flush())
		}
		if err := store.Check(m); err != nil {
			im.reportBad(fmt.Errorf("%s: %w", m.Origin, err))
			continue
		}
		im.res.Rows++
		if at, found := slices.BinarySearch(im.res.Sources, m.Source); !found {
			im.res.Sources = slices.Insert(im.res.Sources, at, m.Source)
		}
		im.warn(m)
		if m.Origin, err = im.origins.Stored(im.ctx, m); err != nil {
			return errors.Join(err, im.flush())
		}
		if im.batch = append(im.batch, m); len(im.batch) == importBatch {
			if err := im.flush(); err != nil {
				return err
			}
		}
	}
	return im.flush()
}

func (im *importer) flush() error {
	counts, err := im.db.PutAll(im.ctx, im.batch...)
	if err != nil {
		return err
	}
	im.batch = im.batch[:0]
	im.res.Added += counts.Added
	im.res.Updated += counts.Updated
	im.res.Unchanged += counts.Unchanged
	im.bar.Set(im.res.Rows + im.res.Bad)
	im.bar.Acknowledge(im.res.Added + im.res.Updated + im.res.Unchanged)
	return nil
}

func (im *importer) reportBad(err error) {
	im.res.Bad++
	if im.res.Bad <= maxReported {
		im.bar.Println("skipped: " + err.Error())
	}
}

// warn counts a row that is doubted or breaks a legality rule.
func (im *importer) warn(m spec.Measurement) {
	var texts []string
	if why := m.DoubtReason(); why != "" {
		texts = append(texts, "in doubt: "+why)
	}
	if err := m.Config.Check(); err != nil {
		texts = append(texts, err.Error())
	}
	for _, text := range texts {
		rows := im.odd[text]
		if rows.n++; rows.n == 1 {
			rows.first = m.Origin
			im.order = append(im.order, text)
		}
		im.odd[text] = rows
	}
	im.res.Warnings += min(len(texts), 1)
}

func (im *importer) warnSummary() {
	if n := im.res.Bad - maxReported; n > 0 {
		fmt.Fprintf(im.log, "skipped: %d more rows\n", n)
	}
	for i, text := range im.order {
		if i == maxReported {
			fmt.Fprintf(im.log, "kept: %d more kinds of odd rows\n", len(im.order)-i)
			break
		}
		fmt.Fprintf(im.log, "kept: %d row(s), first %s: %s\n", im.odd[text].n, im.odd[text].first, text)
	}
}

// sourceHint prints the source of the imported rows, if that is
// not the name they were imported by.
func (im *importer) sourceHint() {
	if s := im.res.Sources; len(s) == 1 && s[0] != im.res.Source {
		fmt.Fprintf(im.log, "import %s: the source of these rows is %s, as in pacer fit --source %s\n", im.res.Source, s[0], s[0])
	} else if len(s) > 1 {
		fmt.Fprintf(im.log, "import %s: rows of %d sources, for --source: %s\n", im.res.Source, len(s), strings.Join(s, ", "))
	}
}
