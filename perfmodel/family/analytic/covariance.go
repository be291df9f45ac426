package analytic

import (
	"context"
	"fmt"
	"math"

	"gonum.org/v1/gonum/mat"

	"github.com/pacer-ml/pacer/perfmodel"
	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/perfmodel/spec/stack"
	"github.com/pacer-ml/pacer/perfmodel/spec/stats"
)

// LogCovariance implements the interface of hybrid.Model.LogCovariance.
func (a *Model) LogCovariance(ctx context.Context, cs []spec.Config) (*mat.SymDense, error) {
	ph := Shipped().Physics
	return LogCovariance(ctx, a, ph, cs, func(c *spec.Config, load Load) (*Widths, Load, float64) {
		return &ph.wide, load, ph.wide.ScaleOf(c.Model.Experts > 0)
	})
}

// LogCovariance returns the covariance matrix of the logarithms of times predicted by p with physics ph. Variances come
// from p's intervals, covariances from the uncertainty of the effects and of the stack. of returns the widths of a
// configuration, its load after what p corrects, and the ratio of half width to standard deviation. The matrix belongs to
// the caller. The error wraps perfmodel.ErrNotCovered for a model without layers and hidden size.
func LogCovariance(ctx context.Context, p perfmodel.Predictor, ph *Physics, cs []spec.Config, of func(*spec.Config, Load) (*Widths, Load, float64)) (*mat.SymDense, error) {
	out := mat.NewSymDense(len(cs), nil)
	common := make([]Load, len(cs)) // standard deviations by effect
	apart := make([][stack.MaxChoices]float64, len(cs))
	for i := range cs {
		c := &cs[i]
		if !c.Model.HasShape() {
			return nil, fmt.Errorf("analytic: no covariance of predictions for model %q, which has no layers and hidden size: %w", c.Model.Name, perfmodel.ErrNotCovered)
		}
		pred, err := p.Predict(ctx, *c)
		if err != nil {
			return nil, err
		}
		sd := pred.HalfWidth() / stats.Normal90
		e, between, err := ph.estimate(c)
		if err != nil {
			return nil, err
		}
		w, load, scale := of(c, LoadOf(&e.Parts, math.Exp(e.Log)))
		for k := range load {
			common[i][k] = load[k] * scale / stats.Normal90
		}
		apart[i] = between
		out.SetSym(i, i, max(sd*sd, w.between(&common[i], &common[i])+dot(&apart[i], &apart[i])))
		for j := range i {
			if SiteOf(&cs[j]) == SiteOf(c) {
				out.SetSym(i, j, w.between(&common[i], &common[j])+dot(&apart[i], &apart[j]))
			}
		}
	}
	return out, nil
}

func dot(a, b *[stack.MaxChoices]float64) (sum float64) {
	for i := range a {
		sum += a[i] * b[i]
	}
	return sum
}
