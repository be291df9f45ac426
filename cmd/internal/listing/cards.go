package listing

import (
	"fmt"
	"io"
	"math"
	"strconv"

	"github.com/pacer-ml/pacer/cmd/internal/console"
	"github.com/pacer-ml/pacer/cmd/internal/number"
	"github.com/pacer-ml/pacer/cmd/internal/query"
	"github.com/pacer-ml/pacer/perfmodel"
	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// Cards returns the output of pacer fit.
func Cards(cards []perfmodel.Card, crossValidated bool) console.Result {
	csv := [][]string{{"model", "accelerator", "family", "n_fit", "n_held_out", "n_left_out", "mape", "p95_ape", "mape_all", "mape_unfitted", "coverage", "n_pooled"}}
	for _, k := range cards {
		csv = append(csv, []string{k.Model, k.Accelerator, k.Family, strconv.Itoa(k.NFit), strconv.Itoa(k.NHeldOut), strconv.Itoa(k.NLeftOut), number.Float(k.MAPE), number.Float(k.P95APE), number.Float(k.MAPEAll),
			number.Float(k.MAPEUnfitted), number.Float(k.Coverage), strconv.Itoa(k.NPooled)})
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
			analytic = number.Percent(k.MAPEUnfitted)
		}
		scores := []string{"-", "-", "-", analytic}
		if k.NHeldOut > 0 {
			scores = []string{number.Percent(k.MAPE), number.Percent(k.P95APE), number.Fixed(100*k.Coverage, 0) + " %", analytic}
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
	if p.NHeldOut == 0 {
		_, err := fmt.Fprintf(w, "\n%s fitted%s. The error on others is not known: no row of a whole step was held out.\n", spec.Count(p.NFit, "row"), pooledText(cards))
		return err
	}
	fmt.Fprintf(w, "\n%d rows fitted%s. Mean relative error of the step time:\n", p.NFit, pooledText(cards))
	how := "held-out rows, not used by the fit"
	if crossValidated {
		how = "rows, each predicted by a fit to the other folds of a cross-validation"
	}
	fmt.Fprintf(w, "  %s over the %d %s\n", number.Percent(p.MAPE), p.NHeldOut, how)
	if p.NAll > p.NHeldOut {
		fmt.Fprintf(w, "  %s over %d, with the rows in doubt\n", number.Percent(p.MAPEAll), p.NAll)
	}
	return nil
}

// pooledText says how many rows of other models took part in the fits, as the end of a sentence.
func pooledText(cards []perfmodel.Card) string {
	least, most := math.MaxInt, 0
	for _, k := range cards {
		least, most = min(least, k.NPooled), max(most, k.NPooled)
	}
	switch {
	case most == 0:
		return ""
	case least == most:
		return fmt.Sprintf(", those of each model together with %d of others", most)
	}
	return fmt.Sprintf(", those of each model together with %d to %d of others", least, most)
}
