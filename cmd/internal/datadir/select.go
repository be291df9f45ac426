package datadir

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/pacer-ml/pacer/cmd/internal/fail"
	"github.com/pacer-ml/pacer/cmd/internal/query"
	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/perfmodel/spec/named"
	"github.com/pacer-ml/pacer/profiler/store"
	"github.com/pacer-ml/pacer/profiler/store/reader"
)

// maxNearest is the number of similar names that an error lists.
const maxNearest = 20

// Select returns the stored measurements of a filter. Its names may differ from the stored
// ones in case and punctuation; an accelerator may be given by words that no other has. It
// returns an error if there are none.
func (d *Dir) Select(ctx context.Context, f store.Filter) ([]spec.Measurement, error) {
	return d.selected(ctx, f, d.ReadRows)
}

// SelectServed is Select, also while a server has the store open.
func (d *Dir) SelectServed(ctx context.Context, f store.Filter) ([]spec.Measurement, error) {
	return d.selected(ctx, f, d.ReadServed)
}

func (d *Dir) selected(ctx context.Context, f store.Filter, read func(func(reader.Store) error) error) ([]spec.Measurement, error) {
	from := &query.Resolver{Read: read}
	f, err := from.StoredFilter(ctx, f)
	if err != nil {
		return nil, err
	}
	rows, err := from.Rows(ctx, f)
	if err != nil || len(rows) > 0 {
		return rows, err
	}
	tallies, err := from.Summary(ctx)
	if err != nil {
		return nil, err
	}
	return nil, d.NoneOf(f, tallies)
}

// NoneOf returns the reason why f matches none of the rows of tallies, which are those of the store.
func (d *Dir) NoneOf(f store.Filter, tallies []store.Tally) error {
	if len(tallies) == 0 {
		return fail.NoAnswerf("%s: nothing is stored yet; import measurements first, see pacer import --help", d.Verb)
	}
	for _, kind := range []struct {
		what  string
		names []string
		of    func(store.Tally) string
	}{{"source", f.Sources, query.SourceOf}, {"model", f.Models, query.ModelOf}, {"accelerator", f.Accelerators, query.AcceleratorOf}} {
		if reason := notStored(kind.what, kind.names, tallies, kind.of); reason != "" {
			return fail.Usagef("%s: %s", d.Verb, reason)
		}
	}
	return fail.NoAnswerf("%s: no stored measurement matches; pacer ls measurements lists the stored ones", d.Verb)
}

// notStored names the stored values of a kind, the most similar first, if none of names is
// stored; "" if one is, or if names is empty.
func notStored(what string, names []string, tallies []store.Tally, of func(store.Tally) string) string {
	var stored []string
	for _, t := range tallies {
		if slices.Contains(names, of(t)) {
			return ""
		}
		stored = append(stored, of(t))
	}
	if len(names) == 0 {
		return ""
	}
	slices.Sort(stored)
	stored = named.Nearest(names[0], slices.Compact(stored), maxNearest)
	return fmt.Sprintf("no stored measurement is of %s %q; stored are %s", what, strings.Join(names, ", "), strings.Join(stored, ", "))
}
