package accuracy

import (
	"context"

	"github.com/pacer-ml/pacer/perfmodel/family/hybrid"
	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// trainerOf returns the function that trains a family's prior on other jobs, nil if it
// has none. The shipped prior of family "hybrid" was trained on every published
// source, so it is trained anew here, without the scored ones.
func trainerOf(name string) func(context.Context, []spec.Measurement) (Prior, error) {
	if name != "hybrid" {
		return nil
	}
	return func(ctx context.Context, rows []spec.Measurement) (Prior, error) {
		p, err := hybrid.Train(ctx, rows)
		if err != nil {
			return nil, err
		}
		return hybridPrior{p}, nil
	}
}

// hybridPrior implements Prior by a *hybrid.Prior.
type hybridPrior struct{ *hybrid.Prior }

func (p hybridPrior) Without(drop func(spec.Key) bool) Prior {
	return hybridPrior{p.Prior.Without(drop)}
}
