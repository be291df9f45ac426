package hybrid

import (
	"context"
	"slices"

	"gonum.org/v1/gonum/mat"

	"github.com/pacer-ml/pacer/perfmodel/family/analytic"
	"github.com/pacer-ml/pacer/perfmodel/internal/gp"
	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// LogCovariance returns the covariance of the errors of ln(throughput) of the predictions of cs
// (planner.Correlated). An error in a constant of a stack affects all its plans, each in proportion to the
// parts of a step that it scales, less what rows nearby correct; the rest of a prediction's variance is independent. The
// matrix belongs to the caller. The error wraps perfmodel.ErrNotCovered for models without a shape.
func (h *Model) LogCovariance(ctx context.Context, cs []spec.Config) (*mat.SymDense, error) {
	m := h.base
	return analytic.LogCovariance(ctx, h, m.physics, cs, func(c *spec.Config, load analytic.Load) (*analytic.Widths, analytic.Load, float64) {
		weight := 1.0
		if mixed := h.mixed[c.Key()]; mixed != nil {
			weight = mixed.physics
		}
		site := analytic.SiteOf(c)
		if w, ok := m.wide[site]; ok {
			at := gp.PointOf(c)
			m.residual.PredictAt(&at, slices.Index(m.layout.Sites, site), load[:])
			return &w, load, weight * m.all.scale * m.all.scatter.Near(&at, -1)
		}
		return &m.elsewhere, load, weight * m.elsewhere.ScaleOf(c.Model.Experts > 0)
	})
}
