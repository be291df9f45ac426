package hybrid

import (
	"math"

	"github.com/pacer-ml/pacer/perfmodel"
	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// StepAtLeast implements perfmodel.Bounder. There is no bound for mixed keys, or if each prediction has its own
// residual process.
func (h *Model) StepAtLeast(c spec.Config) (perfmodel.StepBound, error) {
	if h.mixed[c.Key()] != nil || h.base.residual != nil && h.base.residual.Large() {
		return nil, nil
	}
	return h.base.physics.AtLeast(&c, math.Exp(h.base.residual.LeastMean()))
}
