package gavel

import (
	"context"

	"github.com/pacer-ml/pacer/scheduler"
	"github.com/pacer-ml/pacer/scheduler/policy"
)

// IsolatedShares is the registry entry of policy isolated.
var IsolatedShares = policy.Info{
	Name:    "isolated",
	Doc:     "gives each job 1/N of every type of devices by time slicing: the baseline of finish-time fairness",
	Options: rounding,
	New: func(d policy.Deps) (scheduler.Policy, error) {
		return Rounds(d, Objective{Fractions: equalShares, Agnostic: true})
	},
}

func equalShares(_ context.Context, s *Shares) error {
	for i := range s.Jobs {
		copy(s.Jobs[i].X, s.Isolated(&s.Jobs[i]))
	}
	return nil
}
