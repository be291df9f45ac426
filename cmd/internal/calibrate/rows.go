package calibrate

import (
	"context"
	"io"

	"github.com/pacer-ml/pacer/cmd/internal/batch"
	"github.com/pacer-ml/pacer/cmd/internal/datadir"
	"github.com/pacer-ml/pacer/cmd/internal/fail"
	"github.com/pacer-ml/pacer/cmd/internal/importer"
	"github.com/pacer-ml/pacer/cmd/internal/query"
	"github.com/pacer-ml/pacer/perfmodel"
	"github.com/pacer-ml/pacer/perfmodel/family"
	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/profiler/store"
)

// fromRows calibrates to the rows of a file: it scores each with a fit to the others, stores the rows and fits
// all of them. Rows that cannot be used are reported to log; partial is then true.
func fromRows(ctx context.Context, o Options, open func(string) (io.ReadCloser, string, error), d *datadir.Dir, log io.Writer) (r *Report, partial bool, err error) {
	rows, partial, err := batch.ReadMeasured(ctx, batch.Options{Calibrate: o.Rows, Open: open, Resolver: d.Resolver, Log: log, Verb: "calibrate"})
	if err != nil {
		return nil, false, err
	}
	if len(usable(rows)) == 0 {
		return nil, false, fail.NoAnswerf("calibrate: %s has no row with a step time that can be fitted", o.Rows)
	}
	resolver := &query.Resolver{Read: d.ReadServed}
	request, warnings, err := o.request(ctx, resolver, query.Common(rows, func(c spec.Config) string { return c.Framework }))
	if err != nil {
		return nil, false, err
	}
	configs, err := likely(ctx, request, func(spec.Config) bool { return true })
	if err != nil {
		return nil, false, err
	}
	fam, err := family.Lookup(family.Default)
	if err != nil {
		return nil, false, err
	}
	printWarnings(log, warnings)
	r = &Report{LeaveOne: true}
	if r.Plans, err = scoreEach(ctx, fam, rows, o.Seed); err != nil {
		return nil, false, err
	}
	b := basis{family: fam, rows: rows, fitted: len(usable(rows)), plans: configs, read: func(f store.Filter) ([]spec.Measurement, error) {
		return resolver.Rows(ctx, f)
	}}
	if _, b.outliers, err = fitKeys(ctx, fam, rows); err != nil {
		return nil, false, err
	}
	if r.Source, err = keep(ctx, d, rows, log); err != nil {
		return nil, false, err
	}
	reg, err := d.Fitted()
	if err != nil {
		return nil, false, err
	}
	return r, partial, r.finish(ctx, b, o, reg)
}

// keep stores rows and returns their source.
func keep(ctx context.Context, d *datadir.Dir, rows []spec.Measurement, log io.Writer) (source string, err error) {
	to, err := d.OpenRows(store.Options{})
	if err != nil {
		return "", err
	}
	res, err := importer.Store(ctx, to, "calibrate", len(rows), perfmodel.Rows(rows), log)
	if len(res.Sources) > 0 {
		source = res.Sources[0]
	}
	return source, err
}
