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
		Doc: "data/rubick: at most 8 rows, and at most half of those its left-out rule keeps, fitted per job type, chosen by " +
			"configuration; all others predicted",
		run: rubickTraces,
	}}
}

// traceRows is how many rows of a job type are fitted at most.
const traceRows = 8

func rubickTraces(ctx context.Context, b *Bench, c Contender) (Result, error) {
	answers, err := b.tracesAnswers(ctx, c)
	if err != nil {
		return Result{}, err
	}
	kept := counted(answers)
	r := scored(kept).withRegret(kept)
	whole := summarize(answers)
	r.Figures = []Figure{
		fraction("mean", r.Mean, 0.09, 0.06),
		{Name: "mean with the left-out rows", Value: whole.Mean, Unit: "1"},
		{Name: "rows with the left-out ones", Value: float64(whole.Rows), Unit: "rows"},
	}
	if c.Train == nil && c.Fit == nil {
		r.Notes = append(r.Notes, "nothing is fitted; scored on the rows of the other families")
	}
	return r, nil
}

// tracesAnswers asks c about the rows of Rubick's traces that it was not fitted
// to, those that the left-out rule doubts included.
func (b *Bench) tracesAnswers(ctx context.Context, c Contender) ([]answer, error) {
	return b.traces.get(c.Name, func() ([]answer, error) {
		rows, err := b.dataset("rubick")
		if err != nil {
			return nil, err
		}
		groups := perfmodel.GroupByKey(rows)
		keys := slices.SortedFunc(maps.Keys(groups), perfmodel.CompareKeys)
		return b.askEach(len(keys), func(i int) ([]answer, error) { return b.askJobType(ctx, c, groups[keys[i]]) })
	})
}

func (b *Bench) askJobType(ctx context.Context, c Contender, rows []spec.Measurement) ([]answer, error) {
	f, err := b.jobFamily(c, rows[0].Config.Key())
	if err != nil {
		return nil, err
	}
	fit, held, err := perfmodel.Split(f, rows, traceRows)
	if err != nil {
		return nil, err
	}
	qs := questions(append(held, doubted(rows)...), func(m *spec.Measurement) string { return m.Config.Model.Name })
	p, err := fitOrUnfitted(ctx, f, fit)
	if errors.Is(err, perfmodel.ErrTooFewPoints) || errors.Is(err, perfmodel.ErrNotCovered) {
		return refuse(qs, err), nil
	}
	if err != nil {
		return nil, err
	}
	return ask(ctx, p, qs)
}

// jobFamily returns what fits the job of key: for a family that learns from
// other jobs, on top of the published sources and all other jobs of data/sia and
// data/dl2, those of the same model on other devices among them.
func (b *Bench) jobFamily(c Contender, key spec.Key) (perfmodel.Family, error) {
	if c.Train == nil {
		return c.Family, nil
	}
	p, err := b.priors.get(priorKey{c.Name, "nothing"}, func() (Prior, error) {
		p, err := b.published()
		if err != nil {
			return nil, err
		}
		rows := p.without("")
		for _, name := range []string{"sia", "dl2"} {
			more, err := b.dataset(name)
			if err != nil {
				return nil, err
			}
			rows = append(rows, slices.DeleteFunc(slices.Clone(more), func(m spec.Measurement) bool { return m.Source == "sia/dgx" })...)
		}
		return c.Train(b.ctx, rows)
	})
	if err != nil {
		return perfmodel.Family{}, err
	}
	return p.Without(func(k spec.Key) bool { return k == key }).Family(), nil
}

// fitOrUnfitted fits f to rows, or returns what it is without.
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
		if m.Outcome == spec.OK && m.Doubt != "" && m.MedianStepSec() > 0 {
			out = append(out, m)
		}
	}
	return perfmodel.MergeRepeats(out)
}
