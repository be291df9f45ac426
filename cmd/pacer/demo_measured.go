package main

import (
	"bytes"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"

	"github.com/pacer-ml/pacer/cmd/internal/console"
	"github.com/pacer-ml/pacer/datasets/measured"
	"github.com/pacer-ml/pacer/perfmodel"
	"github.com/pacer-ml/pacer/perfmodel/family"
	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/profiler/store"
)

// The first part of the demo.
const (
	demoSet    = "cpu-small"
	demoFit    = 8 // measurements fitted per model
	demoShown  = 3 // left-out measurements shown per model
	demoFamily = "hybrid"
)

// fit shows a performance model, fitted on a few measurements of each model,
// with its predictions of the other measurements.
func (d *demo) fit() error {
	d.title(1, fmt.Sprintf("Fit a performance model on %d measurements of each model, predict the others", demoFit))
	set, err := measured.Lookup(demoSet)
	if err != nil {
		return err
	}
	rows, err := measuredRows(set)
	if err != nil {
		return err
	}
	fam, err := family.Lookup(demoFamily)
	if err != nil {
		return err
	}
	fmt.Fprintf(d.w, "%d measurements of %s\non a %s\n%s, %s\n\n", len(rows), set.Doc, set.Machine, set.Software, set.Date)
	keys := perfmodel.GroupByKey(rows)
	scores := [][]string{{"model", "measured", "fitted", "predicted", "mean error", "95th percentile", "in 90 % interval"}}
	shown := [][]string{{"left-out model", "plan", "measured s", "predicted s", "90 % interval", "error"}}
	for _, k := range slices.SortedFunc(maps.Keys(keys), perfmodel.CompareKeys) {
		score, examples, err := d.fitModel(fam, keys[k])
		if err != nil {
			return err
		}
		scores, shown = append(scores, score), append(shown, examples...)
	}
	if err := console.WriteTable(d.w, scores); err != nil {
		return err
	}
	fmt.Fprintln(d.w)
	if err := console.WriteTable(d.w, shown); err != nil {
		return err
	}
	fmt.Fprintln(d.w, "plan: dp, tp, pp = devices that share the batch, each layer, the layers; mb = samples of a micro-batch, ga of them a step")
	return nil
}

// measuredRows reads the rows of an embedded set.
func measuredRows(s measured.Set) (rows []spec.Measurement, err error) {
	for m, err := range store.ReadParquetFrom(s.Name+".parquet", bytes.NewReader(s.Parquet), int64(len(s.Parquet))) {
		if err != nil {
			return nil, err
		}
		rows = append(rows, m)
	}
	return rows, nil
}

// fitModel fits one model and returns its line of the scores, and examples of its predictions,
// evenly spread over the rows it has not seen.
func (d *demo) fitModel(fam perfmodel.Family, rows []spec.Measurement) (score []string, examples [][]string, err error) {
	fitted, card, err := perfmodel.FitKey(d.ctx, fam, rows, perfmodel.FitOptions{MaxRows: demoFit})
	if err != nil {
		return nil, nil, err
	}
	score = []string{card.Model, strconv.Itoa(len(rows)), strconv.Itoa(card.NFit), strconv.Itoa(card.NHeldOut),
		console.Percent(card.MAPE), console.Percent(card.P95APE), console.Fixed(100*card.Coverage, 0) + " %"}
	_, held, err := perfmodel.Split(fam, rows, demoFit)
	if err != nil {
		return nil, nil, err
	}
	for i := range min(demoShown, len(held)) {
		m := held[(2*i+1)*len(held)/(2*min(demoShown, len(held)))]
		p, err := fitted.Predict(d.ctx, m.Config)
		if err != nil {
			return nil, nil, err
		}
		sec, lo, hi := p.StepSec(m.Config.Plan.GlobalBatch())
		was := m.MedianStepSec()
		plan := m.Config.Plan
		plan.Precision = "" // the same for all
		examples = append(examples, []string{card.Model, plan.String(), console.Significant(was, 3), console.Significant(sec, 3),
			console.Significant(lo, 3) + " - " + console.Significant(hi, 3), console.Percent(math.Abs(sec-was) / was)})
	}
	return score, examples, nil
}
