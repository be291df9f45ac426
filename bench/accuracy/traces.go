package accuracy

import (
	"context"
	"errors"
	"maps"
	"slices"

	"github.com/pacer-ml/pacer/perfmodel"
	"github.com/pacer-ml/pacer/perfmodel/spec"
)

func tracesProtocols() []Protocol {
	return []Protocol{{
		Name: "rubick",
		Doc: "data/rubick: at most 8 rows per job type fitted, chosen by configuration, and at most half of the rows without doubt; " +
			"all others predicted",
		run: rubickTraces,
	}}
}

// traceRows is the largest number of fitted rows of a job type.
const traceRows = 8

func rubickTraces(ctx context.Context, b *Bench, c Contender) (Result, error) {
	predictions, err := b.tracePredictions(ctx, c)
	if err != nil {
		return Result{}, err
	}
	kept := counted(predictions)
	r := scored(kept).withRegret(kept)
	whole := summarize(predictions)
	r.Figures = []Figure{
		fraction("mean", r.Mean, 0.09, 0.06),
		{Name: "mean with the left-out rows", Value: whole.Mean, Unit: "1"},
		{Name: "rows with the left-out ones", Value: float64(whole.Rows), Unit: "rows"},
	}
	if c.Train == nil && c.Fit == nil {
		r.Notes = append(r.Notes, "nothing is fitted; scored on the rows of the other families")
		r.Standing = standing(c)
	}
	return r, nil
}

// tracePredictions predicts the rows of Rubick's traces to which c was not fitted,
// including doubtful rows.
func (b *Bench) tracePredictions(ctx context.Context, c Contender) ([]prediction, error) {
	return b.traces.get(c.Name, func() ([]prediction, error) {
		rows, err := b.dataset("rubick")
		if err != nil {
			return nil, err
		}
		groups := perfmodel.GroupByKey(rows)
		keys := slices.SortedFunc(maps.Keys(groups), perfmodel.CompareKeys)
		return b.predictParts(len(keys), func(i int) ([]prediction, error) { return b.predictJobType(ctx, c, groups[keys[i]]) })
	})
}

func (b *Bench) predictJobType(ctx context.Context, c Contender, rows []spec.Measurement) ([]prediction, error) {
	f, err := b.jobFamily(c, rows[0].Config.Key())
	if err != nil {
		return nil, err
	}
	fit, held, err := perfmodel.Split(f, rows, traceRows)
	if err != nil {
		return nil, err
	}
	qs := targets(append(held, doubted(rows)...), func(m *spec.Measurement) string { return m.Config.Model.Name })
	p, err := fitOrUnfitted(ctx, f, fit)
	if errors.Is(err, perfmodel.ErrTooFewPoints) || errors.Is(err, perfmodel.ErrNotCovered) {
		return refuseAll(qs, err), nil
	}
	if err != nil {
		return nil, err
	}
	return predictAll(ctx, p, qs)
}

// jobFamily returns the family that fits the job of key. A family with a prior is
// trained on the sources of data/published and data/field and all other jobs of data/sia and data/dl2,
// including the same model on other devices.
func (b *Bench) jobFamily(c Contender, key spec.Key) (perfmodel.Family, error) {
	if c.Train == nil {
		return c.Family, nil
	}
	p, err := b.priors.get(priorKey{c.Name, "nothing"}, func() (Prior, error) {
		rows, err := b.sourcesWithout("")
		if err != nil {
			return nil, err
		}
		for _, name := range []string{"sia", "dl2"} {
			more, err := b.dataset(name)
			if err != nil {
				return nil, err
			}
			rows = append(rows, slices.DeleteFunc(slices.Clone(more), func(m spec.Measurement) bool { return m.Source == "sia/dgx" })...)
		}
		return b.train(c, rows)
	})
	if err != nil {
		return perfmodel.Family{}, err
	}
	return p.Without(func(k spec.Key) bool { return k == key }).Family(), nil
}

// fitOrUnfitted fits f to rows, or returns its unfitted predictor.
func fitOrUnfitted(ctx context.Context, f perfmodel.Family, rows []spec.Measurement) (perfmodel.Predictor, error) {
	if f.Fit == nil {
		return f.Unfitted, nil
	}
	p, _, err := f.Fit(ctx, perfmodel.Rows(rows))
	return p, err
}

// doubted returns the rows that a rule leaves out and that have a step time.
func doubted(rows []spec.Measurement) []spec.Measurement {
	var out []spec.Measurement
	for _, m := range rows {
		if m.Outcome == spec.OK && m.DoubtReason() != "" && m.MedianStepSec() > 0 {
			out = append(out, m)
		}
	}
	return perfmodel.MergeRepeats(out)
}
