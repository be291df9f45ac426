package accuracy

import (
	"context"
	"errors"
)

func choiceProtocols() []Protocol {
	return []Protocol{{
		Name: "plan-choice",
		Doc: "what choosing the plan predicted fastest costs, among at least 3 measured ones of a model on as many of the same " +
			"devices at one global batch; left-out predictions of rubick and published-0",
		run: planChoice,
	}}
}

// planChoice pools the choices of both data sets.
func planChoice(ctx context.Context, b *Bench, c Contender) (Result, error) {
	traces, err := b.tracePredictions(ctx, c)
	if err != nil {
		return Result{}, err
	}
	traces = counted(traces)
	shown, err := b.oneOutPredictions(ctx, c, publishedRows)
	var u unable
	if err != nil && !errors.As(err, &u) {
		return Result{}, err
	}
	all := append(shown[:len(shown):len(shown)], traces...)
	r := Result{Standing: LeftOut}.withRegret(all)
	if r.Regret == nil {
		return Result{}, unablef("predicts no three plans of one choice")
	}
	if u != "" {
		r.Notes = append(r.Notes, "rubick only: "+u.Error())
	} else {
		r.Standing = standing(c)
	}
	r.Summary = summarize(all)
	r.Figures = []Figure{fraction("mean regret", r.Regret.Mean, 0.05, 0.02)}
	for _, part := range []struct {
		name        string
		predictions []prediction
	}{{"rubick", traces}, {"published-0", shown}} {
		if g := regret(part.predictions); g.Groups > 0 {
			r.Figures = append(r.Figures, fraction("mean regret, "+part.name, g.Mean, 0.045, 0.02))
		}
	}
	return r, nil
}
