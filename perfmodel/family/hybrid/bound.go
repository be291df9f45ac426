package hybrid

import (
	"math"

	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// StepAtLeast implements perfmodel.Bounder. There is no bound for mixed keys, nor
// where each prediction has a residual process of its own.
func (h *Model) StepAtLeast(c spec.Config) (func(*spec.Plan) float64, error) {
	if h.mixed[c.Key()] != nil || h.base.rest != nil && h.base.rest.Large() {
		return nil, nil
	}
	return h.base.physics.AtLeast(&c, math.Exp(h.base.rest.LeastMean()))
}
