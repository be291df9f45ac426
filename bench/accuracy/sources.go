package accuracy

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/pacer-ml/pacer/datasets"
	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// sources are the tables of data/published that print step times of models
// with a recorded plan, in the order they are reported.
var sources = []string{"bigscience", "internevo", "megatron_bridge", "torchtitan", "megatron_sc21",
	"korthikanti_2205_05198", "fms_fsdp", "nemo_2407", "litgpt"}

// sourceOf returns the table a published row is from.
func sourceOf(m *spec.Measurement) string { return strings.TrimPrefix(m.Source, "published/") }

// usable reports whether a published row counts: its status is ok and a step
// time is recorded. Rows that contradict themselves count too; a family may
// predict or refuse them.
func usable(m *spec.Measurement) bool {
	return slices.Contains(sources, sourceOf(m)) && m.Outcome == spec.OK && m.MedianStepSec() > 0 && !suspect(m)
}

// suspect reports whether the row's table marks it as unfit for calibration.
func suspect(m *spec.Measurement) bool { return strings.Contains(m.Doubt, "suspect") }

// published holds the rows of data/published.
type published struct {
	all    []spec.Measurement            // every row that can be read, in file order
	usable map[string][]spec.Measurement // of each source, in file order
}

func readPublished(ctx context.Context, shared string) (*published, error) {
	all, err := importAll(ctx, shared, "published")
	if err != nil {
		return nil, err
	}
	root, err := dataDir(shared, "published")
	if err != nil {
		return nil, err
	}
	if err := checkBlind(ctx, root, all); err != nil {
		return nil, err
	}
	p := &published{all: all, usable: map[string][]spec.Measurement{}}
	for _, m := range all {
		if usable(&m) {
			p.usable[sourceOf(&m)] = append(p.usable[sourceOf(&m)], m)
		}
	}
	for _, s := range sources {
		if len(p.usable[s]) == 0 {
			return nil, fmt.Errorf("accuracy: data/published/%s.csv holds no usable row", s)
		}
	}
	return p, nil
}

// ErrSeen means that a row's outcome changes its configuration.
var ErrSeen = errors.New("the outcome of a row changes its configuration")

// checkBlind reads the tables again without outcomes, and returns an error for the
// first row with another configuration then. So the Config of a Measurement holds
// no information about its outcome.
func checkBlind(ctx context.Context, root fs.FS, rows []spec.Measurement) error {
	blind := map[string]spec.Config{}
	for _, s := range sources {
		if err := readBlind(ctx, root, s, blind); err != nil {
			return err
		}
	}
	for i := range rows {
		m := &rows[i]
		if !usable(m) {
			continue
		}
		if c, ok := blind[sourceOf(m)+" "+m.Origin]; !ok || c != m.Config {
			return fmt.Errorf("accuracy: %s: %s on %s, plan %s: %w", m.Origin, m.Config.Model.Name, m.Config.Accelerator.Name, m.Config.Plan, ErrSeen)
		}
	}
	return nil
}

// readBlind adds the configurations of one source's rows, by source and row.
func readBlind(ctx context.Context, root fs.FS, source string, into map[string]spec.Config) error {
	f, err := root.Open(source + ".csv")
	if err != nil {
		return fmt.Errorf("accuracy: data/published: %w", err)
	}
	defer f.Close()
	for row, err := range datasets.PublishedRows(ctx, source+".csv", f, false) {
		var bad *datasets.RowError
		switch {
		case errors.As(err, &bad):
		case err != nil:
			return fmt.Errorf("accuracy: %w", err)
		default:
			into[source+" "+row.ID] = row.Measurement.Config
		}
	}
	return nil
}

// without returns the usable rows of every source but one, in the order of
// sources; "" leaves none out.
func (p *published) without(source string) []spec.Measurement {
	var out []spec.Measurement
	for _, s := range sources {
		if s != source {
			out = append(out, p.usable[s]...)
		}
	}
	return out
}

// others returns every readable row except those of a source.
func (p *published) others(source string) []spec.Measurement {
	return slices.DeleteFunc(slices.Clone(p.all), func(m spec.Measurement) bool { return sourceOf(&m) == source })
}

// evenly returns k of n positions, ascending: the middle of each of k equal
// segments. All n if k >= n, none if k <= 0.
func evenly(n, k int) []int {
	k = max(min(n, k), 0)
	out := make([]int, k)
	for i := range out {
		out[i] = (2*i + 1) * n / (2 * k)
	}
	return out
}

// reveal splits rows into k spread evenly and the rest.
func reveal(rows []spec.Measurement, k int) (shown, hidden []spec.Measurement) {
	at := evenly(len(rows), k)
	for i, m := range rows {
		if _, found := slices.BinarySearch(at, i); found {
			shown = append(shown, m)
		} else {
			hidden = append(hidden, m)
		}
	}
	return shown, hidden
}

// targets returns rows as targets, each in the part that partOf names.
func targets(rows []spec.Measurement, partOf func(*spec.Measurement) string) []target {
	out := make([]target, len(rows))
	for i := range rows {
		m := &rows[i]
		out[i] = target{id: m.Origin, part: partOf(m), config: m.Config, want: m.MedianStepSec(), doubt: m.Doubt}
	}
	return out
}
