package main

import (
	"fmt"
	"io"
	"strconv"

	"github.com/urfave/cli/v2"

	"github.com/pacer-ml/pacer/cmd/internal/command"
	"github.com/pacer-ml/pacer/cmd/internal/console"
	"github.com/pacer-ml/pacer/cmd/internal/fail"
	"github.com/pacer-ml/pacer/cmd/internal/query"
	"github.com/pacer-ml/pacer/perfmodel"
	"github.com/pacer-ml/pacer/perfmodel/family"
	"github.com/pacer-ml/pacer/perfmodel/registry"
	"github.com/pacer-ml/pacer/perfmodel/spec"
)

func fitCommand() *cli.Command {
	return &cli.Command{
		Name:  "fit",
		Usage: "fit performance models to the stored measurements",
		Description: `One performance model is fitted per (model, accelerator) with enough measurements,
and kept beside the store with its card: the number of fitted rows, and the error
on the other rows.

By default a model is fitted to 8 rows, at most half of the available ones. They
are chosen by their configurations alone, as in a profiling campaign; mape and
p95_ape are the errors on all other rows. --rows all fits to all rows and takes
the errors from 5-fold cross-validation. Rows in doubt (by a stated rule of their
data set) are neither fitted nor scored; mape_all includes them.`,
		Flags: append(command.FilterFlags(),
			&cli.StringFlag{Name: "family", Value: family.Default, Usage: "fit `FAMILY` of performance model, see pacer ls families", Category: categoryModel},
			&cli.StringFlag{Name: "rows", Value: "8", Usage: "fit each model to `N` rows, or all", Category: categoryModel},
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
	opts := perfmodel.FitOptions{Seed: command.Seed(c)}
	if opts.MaxRows, err = rowsFlag(c, "rows"); err != nil {
		return err
	}
	if opts.Unfitted, err = query.Analytic(); err != nil {
		return err
	}
	rows, err := dataDir(c).Select(c.Context, command.StoreFilter(c))
	if err != nil {
		return err
	}
	reg, err := dataDir(c).Fitted()
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
	return command.Print(c, cardsResult(cards, opts.MaxRows == 0))
}

// rowsFlag reads the number of rows to fit to, 0 = all.
func rowsFlag(c *cli.Context, name string) (int, error) {
	r := c.String(name)
	if r == "all" {
		return 0, nil
	}
	n, err := strconv.Atoi(r)
	if err != nil || n < 1 {
		return 0, fail.Usagef("%s: --%s %q is neither all nor a number of at least 1", c.Command.Name, name, r)
	}
	return n, nil
}

// fitAll is query.FitAll with a progress bar.
func fitAll(c *cli.Context, fam perfmodel.Family, reg *registry.Registry, rows []spec.Measurement, o perfmodel.FitOptions) ([]perfmodel.Card, []string, error) {
	bar := console.NewBar(c.App.ErrWriter, "fit "+fam.Name, len(perfmodel.GroupByKey(query.OneName(rows))))
	defer bar.Finish()
	return query.FitAll(c.Context, fam, reg, rows, o, func(n, _ int) { bar.Set(n) })
}

func cardsResult(cards []perfmodel.Card, crossValidated bool) console.Result {
	csv := [][]string{{"model", "accelerator", "family", "n_fit", "n_held_out", "n_left_out", "mape", "p95_ape", "mape_all", "mape_unfitted", "coverage"}}
	for _, k := range cards {
		csv = append(csv, []string{k.Model, k.Accelerator, k.Family, strconv.Itoa(k.NFit), strconv.Itoa(k.NHeldOut), strconv.Itoa(k.NLeftOut), console.Float(k.MAPE), console.Float(k.P95APE), console.Float(k.MAPEAll),
			console.Float(k.MAPEUnfitted), console.Float(k.Coverage)})
	}
	return console.Result{
		JSON:  query.Fits{Cards: cards, Pooled: query.Pool(cards)},
		CSV:   csv,
		Table: func(w io.Writer) error { return printCards(w, cards, crossValidated) },
	}
}

// cardTable has a line per card, with the error of the analytic model beside that of the fitted
// one: plan --family auto takes the better.
func cardTable(cards []perfmodel.Card, crossValidated bool) [][]string {
	unseen := "held out"
	if crossValidated {
		unseen = "cross-validated"
	}
	table := [][]string{{"model", "accelerator", "fitted", unseen, "left out", "mean error", "95th percentile", "in 90 % interval", "analytic error"}}
	for _, k := range cards {
		analytic := "-"
		if k.MAPEUnfitted > 0 {
			analytic = console.Percent(k.MAPEUnfitted)
		}
		scores := []string{"-", "-", "-", analytic}
		if k.NHeldOut > 0 {
			scores = []string{console.Percent(k.MAPE), console.Percent(k.P95APE), console.Fixed(100*k.Coverage, 0) + " %", analytic}
		}
		table = append(table, append([]string{k.Model, k.Accelerator, strconv.Itoa(k.NFit), strconv.Itoa(k.NHeldOut), strconv.Itoa(k.NLeftOut)}, scores...))
	}
	return table
}

// printCards prints the cards, their warnings, and the error over all rows.
func printCards(w io.Writer, cards []perfmodel.Card, crossValidated bool) error {
	if err := console.WriteTable(w, cardTable(cards, crossValidated)); err != nil {
		return err
	}
	for _, k := range cards {
		if !k.BeatsUnfitted() && k.MAPEUnfitted > 0 && k.NFit > 0 {
			fmt.Fprintf(w, "%s: does not beat the analytic model, which plan, predict and curve continue to use; --family %s selects this one\n", k.Key, k.Family)
		}
		for _, warning := range k.Warnings {
			fmt.Fprintf(w, "%s: %s\n", k.Key, warning)
		}
	}
	p := query.Pool(cards)
	fmt.Fprintf(w, "\n%d rows fitted. Mean relative error of the step time:\n", p.NFit)
	how := "held-out rows, not used by the fit"
	if crossValidated {
		how = "rows, each predicted by a fit to the other folds of a cross-validation"
	}
	fmt.Fprintf(w, "  %s over the %d %s\n", console.Percent(p.MAPE), p.NHeldOut, how)
	if p.NAll > p.NHeldOut {
		fmt.Fprintf(w, "  %s over %d, with the rows in doubt\n", console.Percent(p.MAPEAll), p.NAll)
	}
	return nil
}
