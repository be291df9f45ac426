package family

import (
	"context"
	"fmt"
	"math"

	"gonum.org/v1/gonum/mat"

	"github.com/pacer-ml/pacer/perfmodel"
	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// LogCovariance returns the covariance of the errors of ln(throughput) of the
// predictions of cs: what the constants of a stack get wrong moves all its plans,
// each in proportion to the parts of a step they are about; the rest of a
// prediction's variance is its own (planner.Correlated). The error wraps
// perfmodel.ErrNotCovered for models without a shape, whose effects are fitted
// otherwise.
func (h *Hybrid) LogCovariance(ctx context.Context, cs []spec.Config) (*mat.SymDense, error) {
	return logCovariance(ctx, h, cs, func(c *spec.Config) (*physics, *widths, float64) {
		weight := 1.0
		if m := h.mixed[c.Key()]; m != nil {
			weight = m.physics
		}
		if w, ok := h.base.wide[siteOf(c)]; ok {
			at := pointOf(c)
			return h.base.physics, &w, weight * h.base.scale * h.base.scatter.near(&at, -1)
		}
		return h.base.physics, &h.base.others, weight * h.base.others.Scale
	})
}

// LogCovariance is as that of Hybrid.
func (a *Analytic) LogCovariance(ctx context.Context, cs []spec.Config) (*mat.SymDense, error) {
	ph := Shipped().physics
	return logCovariance(ctx, a, cs, func(*spec.Config) (*physics, *widths, float64) { return ph, &ph.wide, ph.wide.Scale })
}

// logCovariance takes the variances from p's intervals and what is common to two
// configurations from the effects: of gives the physics and widths of a
// configuration, and the half width over their standard deviation.
func logCovariance(ctx context.Context, p perfmodel.Predictor, cs []spec.Config, of func(*spec.Config) (*physics, *widths, float64)) (*mat.SymDense, error) {
	out := mat.NewSymDense(len(cs), nil)
	common := make([][]float64, len(cs)) // standard deviations by effect
	for i := range cs {
		c := &cs[i]
		if !c.Model.HasShape() {
			return nil, fmt.Errorf("hybrid: what predictions of model %s have in common is not known: %w", c.Model.Name, perfmodel.ErrNotCovered)
		}
		pred, err := p.Predict(ctx, *c)
		if err != nil {
			return nil, err
		}
		sd := math.Log(pred.Hi/pred.Lo) / (2 * normal90)
		ph, w, scale := of(c)
		parts, err := ph.explain(c)
		if err != nil {
			return nil, err
		}
		common[i] = make([]float64, len(effects))
		load := loads(&parts, parts.Total())
		for e := range load {
			common[i][e] = load[e] * scale / normal90
		}
		out.SetSym(i, i, max(sd*sd, w.between(common[i], common[i])))
		for j := range i {
			if siteOf(&cs[j]) == siteOf(c) {
				out.SetSym(i, j, w.between(common[i], common[j]))
			}
		}
	}
	return out, nil
}

// between returns the covariance of what effects do to two predictions they move
// by a and b.
func (w *widths) between(a, b []float64) float64 {
	v := 0.0
	for i, row := range w.Cov {
		for j, c := range row {
			v += a[i] * b[j] * c
		}
	}
	return v
}
