package hybrid

import (
	"context"

	"gonum.org/v1/gonum/mat"

	"github.com/pacer-ml/pacer/perfmodel/family/analytic"
	"github.com/pacer-ml/pacer/perfmodel/internal/gp"
	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// LogCovariance returns the covariance of the errors of ln(throughput) of the predictions of cs
// (planner.Correlated). An error in a constant of a stack affects all its plans, each in proportion to the
// parts of a step that it scales; the rest of a prediction's variance is independent. The matrix belongs to the
// caller. The error wraps perfmodel.ErrNotCovered for models without a shape.
func (h *Model) LogCovariance(ctx context.Context, cs []spec.Config) (*mat.SymDense, error) {
	return analytic.LogCovariance(ctx, h, cs, func(c *spec.Config) (*analytic.Physics, *analytic.Widths, float64) {
		weight := 1.0
		if m := h.mixed[c.Key()]; m != nil {
			weight = m.physics
		}
		if w, ok := h.base.wide[analytic.SiteOf(c)]; ok {
			at := gp.PointOf(c)
			return h.base.physics, &w, weight * h.base.scale * h.base.scatter.Near(&at, -1)
		}
		return h.base.physics, &h.base.elsewhere, weight * h.base.elsewhere.ScaleOf(c.Model.Experts > 0)
	})
}
