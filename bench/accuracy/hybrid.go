package accuracy

import (
	"context"

	"github.com/pacer-ml/pacer/perfmodel/family"
	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// trainerOf returns how a family learns from other jobs, nil if it does not.
// What the program ships of family "hybrid" has seen every published source, so
// here it is trained anew without those it is asked about.
func trainerOf(name string) func(context.Context, []spec.Measurement) (Prior, error) {
	if name != "hybrid" {
		return nil
	}
	return func(ctx context.Context, rows []spec.Measurement) (Prior, error) {
		p, err := family.TrainPrior(ctx, rows)
		if err != nil {
			return nil, err
		}
		return hybridPrior{p}, nil
	}
}

// hybridPrior is a *family.Prior as the protocols see it.
type hybridPrior struct{ *family.Prior }

func (p hybridPrior) Without(drop func(spec.Key) bool) Prior {
	return hybridPrior{p.Prior.Without(drop)}
}
