package policy

import (
	"context"

	"github.com/pacer-ml/pacer/scheduler"
)

func init() {
	register(Info{
		Name:    "isolated",
		Doc:     "an equal part of every type of devices for every job, by taking turns: what finish-time fairness compares with",
		Options: rounding,
		New: func(d Deps) (scheduler.Policy, error) {
			return Rounds(d, Objective{Fractions: equalParts, Agnostic: true})
		},
	})
}

func equalParts(_ context.Context, s *Shares) error {
	for i := range s.Jobs {
		copy(s.Jobs[i].X, s.Isolated(&s.Jobs[i]))
	}
	return nil
}
