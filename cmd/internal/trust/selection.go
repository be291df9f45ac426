package trust

import (
	"context"
	"errors"
	"math"
	"slices"
	"strings"

	"github.com/pacer-ml/pacer/cmd/internal/datadir"
	"github.com/pacer-ml/pacer/cmd/internal/fail"
	"github.com/pacer-ml/pacer/cmd/internal/query"
	"github.com/pacer-ml/pacer/perfmodel"
	"github.com/pacer-ml/pacer/perfmodel/family"
	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/profiler/store"
)

// Selection chooses rows of the store. An empty list chooses all.
type Selection struct {
	store.Filter
	Origins []string // whole origins, or files, folders and runs at the start of origins
}

// none reports whether s has no condition.
func (s *Selection) none() bool {
	return len(s.Models)+len(s.Accelerators)+len(s.Sources)+len(s.Origins) == 0
}

// hasOrigin reports whether s chooses an origin: runs.csv chooses runs.csv:7, and campaign#2 chooses campaign#2/1.
func (s *Selection) hasOrigin(origin string) bool {
	return len(s.Origins) == 0 || slices.ContainsFunc(s.Origins, func(o string) bool {
		rest, ok := strings.CutPrefix(origin, o)
		return ok && (rest == "" || strings.HasSuffix(o, "/") || strings.ContainsAny(rest[:1], ":/#"))
	})
}

// of returns the stored and forgotten rows that s chooses. It is an error if there are none.
func (s *Selection) of(ctx context.Context, d *datadir.Dir, db *store.DB) ([]store.Record, error) {
	f, tallies, err := s.resolve(ctx, db)
	if err != nil {
		return nil, err
	}
	all, err := db.Records(ctx, f)
	if err != nil {
		return nil, err
	}
	if len(all) == 0 {
		return nil, d.NoneOf(f, tallies)
	}
	rs := slices.DeleteFunc(slices.Clone(all), func(r store.Record) bool { return !s.hasOrigin(r.Row.Origin) })
	if len(rs) == 0 {
		return nil, fail.NoAnswerf("%s: none of %d rows has origin %q; the first one has %q", d.Verb, len(all), s.Origins, all[0].Row.Origin)
	}
	return rs, nil
}

// resolve returns the filter of s with the names of stored and forgotten rows, and what is stored or forgotten.
func (s *Selection) resolve(ctx context.Context, db *store.DB) (store.Filter, []store.Tally, error) {
	tallies, err := db.Summary(ctx)
	if err != nil {
		return store.Filter{}, nil, err
	}
	forgotten, err := db.Forgotten(ctx, store.Filter{})
	for _, r := range forgotten {
		tallies = append(tallies, store.Tally{Model: r.Row.Config.Model.Name, Accelerator: r.Row.Config.Accelerator.Name, Source: r.Row.Source})
	}
	return query.FilterOf(s.Filter, tallies), tallies, err
}

// outliers returns those of the chosen rows that the other rows of their model and accelerator contradict, from
// whatever source these are, and the reason for each.
func (s *Selection) outliers(ctx context.Context, d *datadir.Dir, db *store.DB) (rs []store.Record, reasons []string, err error) {
	wide := Selection{Filter: store.Filter{Models: s.Models, Accelerators: s.Accelerators}}
	if rs, err = wide.of(ctx, d, db); err != nil {
		return nil, nil, err
	}
	f, tallies, err := s.resolve(ctx, db)
	if err != nil {
		return nil, nil, err
	}
	if !slices.ContainsFunc(tallies, func(t store.Tally) bool { return len(f.Sources) == 0 || slices.Contains(f.Sources, t.Source) }) {
		return nil, nil, d.NoneOf(f, tallies)
	}
	why, err := contradicted(ctx, rs)
	if err != nil {
		return nil, nil, err
	}
	var out []store.Record
	for i, r := range rs {
		if why[i] != "" && s.hasOrigin(r.Row.Origin) && (len(f.Sources) == 0 || slices.Contains(f.Sources, r.Row.Source)) {
			out, reasons = append(out, r), append(reasons, why[i])
		}
	}
	if len(out) == 0 {
		return nil, nil, fail.NoAnswerf("%s: the other rows of its model and accelerator contradict none of the rows", d.Verb)
	}
	return out, reasons, nil
}

// contradicted returns why the other rows of its key contradict each row, "" if they do not.
func contradicted(ctx context.Context, rs []store.Record) ([]string, error) {
	fam, err := family.Lookup("hybrid")
	if err != nil {
		return nil, err
	}
	rows := make([]spec.Measurement, len(rs))
	for i := range rs {
		rows[i] = rs[i].Row
	}
	rows = query.OneName(rows)
	out := make([]string, len(rs))
	for key, of := range perfmodel.GroupByKey(rows) {
		fitted, _, err := fam.Fit(ctx, perfmodel.Rows(of))
		if errors.Is(err, perfmodel.ErrTooFewPoints) {
			continue
		}
		if err != nil {
			return nil, err
		}
		if d, ok := fitted.(perfmodel.Doubter); ok {
			for _, o := range d.Outliers() {
				explain(out, rows, key, o)
			}
		}
	}
	return out, nil
}

// explain writes the reason of an outlier to its rows. An outlier is several repeats of one configuration: of these,
// rows that are closer to the prediction than to the outlier are not meant.
func explain(out []string, rows []spec.Measurement, key spec.Key, o perfmodel.Outlier) {
	config := perfmodel.Canonical(o.Row.Config)
	predicted := o.Row.MedianStepSec() / o.Factor
	for i, m := range rows {
		if m.Config.Key() != key || !perfmodel.Usable(m) || perfmodel.Canonical(m.Config) != config {
			continue
		}
		own := perfmodel.Outlier{Row: m, Factor: m.MedianStepSec() / predicted}
		if math.Log(own.Factor)/math.Log(o.Factor) > 0.5 {
			out[i] = own.String()
		}
	}
}
