package main

import (
	"fmt"
	"maps"

	"github.com/urfave/cli/v2"

	"github.com/pacer-ml/pacer/cmd/internal/command"
	"github.com/pacer-ml/pacer/cmd/internal/console"
	"github.com/pacer-ml/pacer/cmd/internal/datadir"
	"github.com/pacer-ml/pacer/cmd/internal/fail"
	"github.com/pacer-ml/pacer/cmd/internal/listing"
	"github.com/pacer-ml/pacer/cmd/internal/query"
	"github.com/pacer-ml/pacer/perfmodel"
	"github.com/pacer-ml/pacer/perfmodel/family"
	"github.com/pacer-ml/pacer/perfmodel/registry"
	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/profiler/store"
)

func fitCommand() *cli.Command {
	return &cli.Command{
		Name:  "fit",
		Usage: "fit performance models to the stored measurements",
		Description: `One performance model is fitted per (model, accelerator) with enough measurements,
and kept beside the store with its card: the number of fitted rows, and the error
on the other rows.

A model is fitted to all rows, and mape and p95_ape are from 5-fold
cross-validation. --rows 8 fits it to 8 rows, at most half of the available ones,
chosen by their configurations alone, as in a profiling campaign; the errors are
then those on all other rows. Rows in doubt (by a stated rule of their data set)
are neither fitted nor scored; mape_all includes them.

With family hybrid, the fitted rows of all models and accelerators on the same
training stack inform each other ("pooled"), also those that --model and
--accelerator do not select; never a row that is scored. --alone fits each model
to its own rows.`,
		Flags: append(command.FilterFlags(),
			&cli.StringFlag{Name: "family", Value: family.Default, Usage: "fit `FAMILY` of performance model, see pacer ls families", Category: command.CategoryModel},
			&cli.StringFlag{Name: "rows", Value: "all", Usage: "fit each model to `N` rows, or all", Category: command.CategoryModel},
			&cli.BoolFlag{Name: "alone", Usage: "fit each model on each accelerator to its own rows only", Category: command.CategoryModel},
		),
		Before: command.NoArgs,
		Action: runFit,
	}
}

func runFit(c *cli.Context) error {
	fam, err := family.Lookup(c.String("family"))
	if err != nil {
		return fail.Usagef("fit: %w", err)
	}
	opts := perfmodel.PoolOptions{FitOptions: perfmodel.FitOptions{Seed: command.Seed(c)}, Alone: c.Bool("alone")}
	if opts.MaxRows, err = command.Rows(c, "rows"); err != nil {
		return err
	}
	if opts.Unfitted, err = query.Analytic(); err != nil {
		return err
	}
	filter := command.StoreFilter(c)
	read := func(f store.Filter) ([]spec.Measurement, error) { return datadir.Of(c).Select(c.Context, f) }
	rows, err := read(filter)
	if err == nil && len(filter.Models)+len(filter.Accelerators) > 0 {
		rows, err = query.WithPool(fam, rows, filter.Sources, &opts, read)
	}
	if err != nil {
		return err
	}
	reg, err := datadir.Of(c).Fitted()
	if err != nil {
		return err
	}
	cards, skipped, err := fitAll(c, fam, reg, rows, opts)
	if err != nil {
		return err
	}
	for _, reason := range skipped {
		fmt.Fprintln(c.App.ErrWriter, "skipped:", reason)
	}
	if len(cards) == 0 {
		return fail.NoAnswerf("fit: none of %d (model, accelerator) pairs could be fitted", len(skipped))
	}
	return command.Print(c, listing.Cards(cards, opts.MaxRows == 0))
}

// fitAll is query.FitAll with a progress bar.
func fitAll(c *cli.Context, fam perfmodel.Family, reg *registry.Registry, rows []spec.Measurement, o perfmodel.PoolOptions) ([]perfmodel.Card, []string, error) {
	keys := perfmodel.GroupByKey(query.OneName(rows))
	maps.DeleteFunc(keys, func(k spec.Key, _ []spec.Measurement) bool { return o.Keys != nil && !o.Keys(k) })
	bar := console.NewBar(c.App.ErrWriter, "fit "+fam.Name, len(keys))
	defer bar.Finish()
	o.Done = func(n, _ int) { bar.Set(n) }
	return query.FitAll(c.Context, fam, reg, rows, o)
}
