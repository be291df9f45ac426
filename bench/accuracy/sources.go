package accuracy

import (
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"

	"github.com/pacer-ml/pacer/datasets"
	"github.com/pacer-ml/pacer/datasets/measured"
	"github.com/pacer-ml/pacer/perfmodel/rowfile"
	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/perfmodel/spec/stack"
)

// Directories of tables in the published format. Each file is a source.
const (
	publishedDir = "published"
	fieldDir     = "field"
)

// sourceOf returns the table a published row is from.
func sourceOf(m *spec.Measurement) string { return strings.TrimPrefix(m.Source, "published/") }

// usable reports whether a published row counts: its status is ok, its table prints a step time, and the tokens
// per sample are not assumed, which the error would be of. Rows that contradict themselves count too; a family
// may predict or refuse them.
func usable(m *spec.Measurement) bool {
	assumed := m.Config.SeqLen > 0 && !recorded(m, "seq_len")
	return m.Outcome == spec.OK && m.MedianStepSec() > 0 && m.Env[datasets.EnvStepTime] == "" && !assumed && !suspect(m)
}

// suspect reports whether the row's table marks it as unfit for calibration.
func suspect(m *spec.Measurement) bool { return strings.Contains(m.Doubt, "suspect") }

// tables holds the rows of a directory of published tables.
type tables struct {
	all     []spec.Measurement            // every row that can be read, in file order
	sources []string                      // with usable rows, in order
	usable  map[string][]spec.Measurement // of each source, in file order, one for each configuration
}

// readTables reads the tables of DIR/data/NAME.
func readTables(ctx context.Context, shared, name string) (*tables, error) {
	root, err := dataDir(shared, name)
	if err != nil {
		return nil, err
	}
	all, _, err := datasets.ReadAll(ctx, "published", root)
	if err != nil {
		return nil, fmt.Errorf("accuracy: %w", err)
	}
	p := &tables{all: all, usable: map[string][]spec.Measurement{}}
	for _, m := range all {
		if usable(&m) {
			p.usable[sourceOf(&m)] = append(p.usable[sourceOf(&m)], m)
		}
	}
	for s, rows := range p.usable {
		p.usable[s] = once(rows)
	}
	p.sources = slices.Sorted(maps.Keys(p.usable))
	return p, p.checkBlind(ctx, root)
}

// once merges the rows of a configuration: the first has the step times of all, so its median counts. Releases of a
// training stack that differ in no part are the same.
func once(rows []spec.Measurement) []spec.Measurement {
	var out []spec.Measurement
	at := map[spec.Config]int{}
	for _, m := range rows {
		c := m.Config
		if of := stack.Of(c.Framework, c.Accelerator.Arch); of.Stated() {
			c.Framework = of.Name + " " + of.Stacks[0].Parts.String()
		}
		i, ok := at[c]
		if !ok {
			at[c] = len(out)
			m.StepSec = slices.Clone(m.StepSec)
			out = append(out, m)
			continue
		}
		out[i].StepSec = append(out[i].StepSec, m.StepSec...)
	}
	return out
}

// ErrSeen means that a row's outcome changes its configuration.
var ErrSeen = errors.New("the outcome of a row changes its configuration")

// checkBlind reads the tables again without outcomes, and returns an error for the
// first row with another configuration then. So the Config of a Measurement holds
// no information about its outcome.
func (p *tables) checkBlind(ctx context.Context, root fs.FS) error {
	for _, s := range p.sources {
		blind, err := readConfigs(ctx, root, s, nil)
		if err != nil {
			return err
		}
		for i := range p.usable[s] {
			m := &p.usable[s][i]
			if c, ok := blind[m.Origin]; !ok || c != m.Config {
				return fmt.Errorf("accuracy: %s: %s on %s, plan %s: %w", m.Origin, m.Config.Model.Name, m.Config.Accelerator.Name, m.Config.Plan, ErrSeen)
			}
		}
	}
	return nil
}

// readConfigs returns the configurations of a source's rows, read without outcomes, by row. change, unless
// nil, edits the text of the table; its name is then unknown too.
func readConfigs(ctx context.Context, root fs.FS, source string, change func(string) (string, error)) (map[string]spec.Config, error) {
	text, err := fs.ReadFile(root, source+".csv")
	if err != nil {
		return nil, fmt.Errorf("accuracy: %w", err)
	}
	name, in := source+".csv", string(text)
	if change != nil {
		name = "rows.csv"
		if in, err = change(in); err != nil {
			return nil, fmt.Errorf("accuracy: %s.csv: %w", source, err)
		}
	}
	out := map[string]spec.Config{}
	for row, err := range datasets.PublishedRows(ctx, name, strings.NewReader(in), root, false) {
		var bad *datasets.RowError
		switch {
		case errors.As(err, &bad):
		case err != nil:
			return nil, fmt.Errorf("accuracy: %w", err)
		default:
			out[row.ID] = row.Measurement.Config
		}
	}
	return out, nil
}

// unnamed empties the columns that name the training stack of a table.
func unnamed(text string) (string, error) {
	rows, err := csv.NewReader(strings.NewReader(text)).ReadAll()
	if err != nil {
		return "", err
	}
	for i, name := range rows[0] {
		if name == "source" || name == "framework" {
			for _, row := range rows[1:] {
				row[i] = ""
			}
		}
	}
	var b strings.Builder
	err = csv.NewWriter(&b).WriteAll(rows)
	return b.String(), err
}

// without returns the usable rows of every source but one, in the order of
// sources; "" leaves none out.
func (p *tables) without(source string) []spec.Measurement {
	var out []spec.Measurement
	for _, s := range p.sources {
		if s != source {
			out = append(out, p.usable[s]...)
		}
	}
	return out
}

// others returns every readable row except those of a source.
func (p *tables) others(source string) []spec.Measurement {
	return slices.DeleteFunc(slices.Clone(p.all), func(m spec.Measurement) bool { return sourceOf(&m) == source })
}

// targets returns rows as targets, each in the part that partOf names.
func targets(rows []spec.Measurement, partOf func(*spec.Measurement) string) []target {
	out := make([]target, len(rows))
	for i := range rows {
		m := &rows[i]
		out[i] = target{id: m.Origin, part: partOf(m), config: m.Config, want: m.MedianStepSec(), rows: len(m.StepSec), doubt: m.Doubt}
	}
	return out
}

// OwnRows returns this project's own measurements on GPUs, which every prior learns from.
func OwnRows() ([]spec.Measurement, error) {
	set, err := measured.Lookup("h100")
	if err != nil {
		return nil, fmt.Errorf("accuracy: %w", err)
	}
	return rowfile.RowsOfParquet(set.Name+".parquet", set.Parquet)
}
