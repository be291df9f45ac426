package hybrid

import (
	"context"
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/mat"

	"github.com/pacer-ml/pacer/perfmodel"
	"github.com/pacer-ml/pacer/perfmodel/family/analytic"
	"github.com/pacer-ml/pacer/perfmodel/family/internal/shapeless"
	"github.com/pacer-ml/pacer/perfmodel/family/rubick"
	"github.com/pacer-ml/pacer/perfmodel/internal/design"
	"github.com/pacer-ml/pacer/perfmodel/internal/gp"
	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/perfmodel/spec/stats"
)

// gain implements Family.Gain: the expected decrease of the mean interval over the space, or over wanted.
//
// One Gaussian approximates ln T of all configurations: the constants around their mode (Laplace), the
// residuals, and the choice between two models if they are mixed. A row at c narrows the interval of i by a
// rank-one update,
//
//	v(i | c) = v(i) - cov(i, c)²/(v(c) + noise²)
//	half(i | c) = half(i)·√((v(i | c) + noise²)/(v(i) + noise²))
//	Fall(c) = mean over i of half(i) - half(i | c)
//
// which does not depend on the measured value of the row. Without rows v is the prior's. Source: Chaloner and
// Verdinelli, "Bayesian Experimental Design: A Review", Statistical Science 1995, section 2 (A-optimality, here
// of standard deviations).
//
// A row also removes the widening for dimensions without rows (see domain). This is not counted: the widening
// is a convention, and counting it selects extreme configurations. Two choices were made on Rubick's traces:
// not counting it, and using one model until both are fitted.
//
// HalfWidth is that of the fitted model's predictions. A repeat of a measured configuration adds no row, so its
// Fall is 0. Both values are 0 for configurations that the family does not cover.
func (p *Prior) gain(ctx context.Context, have []spec.Measurement, space, wanted []spec.Config) ([]perfmodel.Gain, error) {
	usable := slices.DeleteFunc(slices.Clone(have), func(m spec.Measurement) bool { return !perfmodel.UsableOrAlone(m) })
	rows := perfmodel.MergeRepeats(usable)
	if len(space) == 0 {
		return nil, ctx.Err()
	}
	h, err := p.condition(ctx, rows)
	if err != nil {
		return nil, err
	}
	g := newSpaceGain(ctx, h, rows, design.NewConfigs(space, wanted))
	if len(g.configs) == 0 {
		return make([]perfmodel.Gain, len(space)), ctx.Err()
	}
	if err := g.addPosterior(ctx); err != nil {
		return nil, fmt.Errorf("hybrid: %w", err)
	}
	return g.Gains(len(rows), g), ctx.Err()
}

// spaceGain is the state of computing one space's gains.
type spaceGain struct {
	fitted *Model
	rows   []spec.Measurement

	// Candidates are the configurations of the space with a prediction, in canonical order.
	design.Space
	configs []spec.Config
	half    []float64

	// view is the distribution of ln T without the noise of a run, scaled to the normal distribution with the
	// 90 % intervals of the model.
	view   design.View
	weight []float64 // by target, see targetWeights
}

func newSpaceGain(ctx context.Context, h *Model, rows []spec.Measurement, of design.Configs) *spaceGain {
	g := &spaceGain{fitted: h, rows: rows}
	var index []int
	for _, i := range perfmodel.OrderConfigs(of.All, nil) {
		p, err := h.Predict(ctx, of.All[i])
		if err != nil {
			continue
		}
		g.configs, index = append(g.configs, of.All[i]), append(index, i)
		g.half = append(g.half, p.HalfWidth())
	}
	n := len(g.configs)
	g.Space = design.NewSpace(of, index, configsIn(rows))
	g.view = design.View{Weight: 1, Cov: make([]float64, n*len(g.Targets)), Own: make([]float64, n), Target: make([]float64, len(g.Targets))}
	return g
}

// addPosterior fills the view of the candidates.
func (g *spaceGain) addPosterior(ctx context.Context) error {
	physics, others, err := g.forms(ctx)
	if err != nil {
		return err
	}
	for _, at := range others {
		if err := g.addShapeless(ctx, at); err != nil {
			return err
		}
	}
	share := make([]float64, len(g.configs)) // weight of physics
	for _, c := range physics {
		share[c] = 1
	}
	for _, key := range sortedKeys(g.fitted.mixed) {
		if err := g.addRubick(ctx, key, share); err != nil {
			return err
		}
	}
	if err := g.addPhysics(ctx, physics, share); err != nil {
		return err
	}
	for i, t := range g.Targets {
		g.view.Target[i] = g.view.Own[t]
	}
	g.weight = g.targetWeights()
	return nil
}

// forms divides the candidates by the model that predicts them: physics, and each of the models for jobs
// without a shape. Those that neither covers are predicted by rubick alone.
func (g *spaceGain) forms(ctx context.Context) (physics []int, others [][]int, err error) {
	h, place := g.fitted, map[shapeless.Key]int{}
	for c := range g.configs {
		of := &g.configs[c]
		key := shapeless.KeyOf(of)
		without := h.isShapeless(of)
		fitted := without && h.shapeless[key] != nil
		if without && !fitted {
			if fitted, err = h.prior.shapeless.HasModel(ctx, of); err != nil {
				return nil, nil, err
			}
		}
		switch {
		case !fitted && new(analytic.Calibration).Try(of):
			physics = append(physics, c)
		case without:
			if _, ok := place[key]; !ok {
				place[key] = len(others)
				others = append(others, nil)
			}
			others[place[key]] = append(others[place[key]], c)
		}
	}
	return physics, others, nil
}

// addPhysics adds the joint posterior of the constants and residuals for candidates, weighted by its share of each.
func (g *spaceGain) addPhysics(ctx context.Context, candidates []int, share []float64) error {
	if len(candidates) == 0 {
		return nil
	}
	trial := &analytic.Calibration{}
	for _, c := range candidates {
		trial.Try(&g.configs[c])
	}
	fit, err := analytic.NewCalibration(ctx, g.rows)
	if err != nil {
		return err
	}
	fit.Arrange(trial.Rows...)
	post, joint, err := g.fitted.prior.posterior(ctx, fit, nil)
	if err != nil {
		return err
	}
	trial.ArrangeAs(fit)
	points, jac := pointsOf(trial.Rows), mat.NewDense(len(trial.Rows), len(post.Mean), nil)
	if err := trial.Differentiate(ctx, post.Mean, jac); err != nil {
		return err
	}
	scale, kernel, white := 1.0, &g.fitted.prior.kernels.Mean, gp.NewMatrix(len(points), 0)
	if joint != nil {
		scale, kernel, white = g.fitted.base.all.scale/stats.Normal90, &joint.Process.Kernel, joint.Whiten(points, jac)
	}
	var spread mat.Dense
	spread.Mul(jac, g.fitted.prior.consts.DistributionOf(&fit.Layout).Cov)
	f := &design.LinearForm{At: candidates, Factor: scale * scale, Grad: jac.RawMatrix(), Spread: spread.RawMatrix(), White: white}
	f.Rest = func(k, l int) float64 { return kernel.Covariance(&points[k], &points[l]) }
	f.AddTo(&g.view, g.Targets, func(c, t int) float64 { return min(share[c], share[t]) })
	return nil
}

// addShapeless adds the posterior of package shapeless for candidates of one Key.
func (g *spaceGain) addShapeless(ctx context.Context, candidates []int) error {
	like := &g.configs[candidates[0]]
	fitted := g.fitted.shapeless[shapeless.KeyOf(like)]
	if fitted == nil {
		var err error
		if fitted, err = g.fitted.prior.shapeless.Fit(ctx, *like, nil); err != nil {
			return err
		}
	}
	some := make([]spec.Config, len(candidates))
	for k, c := range candidates {
		some[k] = g.configs[c]
	}
	f := fitted.LinearForm(some)
	f.At = candidates
	f.AddTo(&g.view, g.Targets, func(int, int) float64 { return 1 })
	return nil
}

// addRubick adds the posterior of family rubick, the other model of the mixture of a key, and the variance between the
// two. share is the weight of physics by candidate: on entry 1 or 0, depending on whether it covers the
// candidate; on return the mixture's weight.
func (g *spaceGain) addRubick(ctx context.Context, key spec.Key, share []float64) error {
	mixed := g.fitted.mixed[key]
	var rows []spec.Measurement
	for _, m := range g.rows {
		if m.Config.Key() == key && !m.Config.Alone() {
			rows = append(rows, m)
		}
	}
	var configs []spec.Config
	var candidates, targets, targetOf []int // targets among configs, and their indices in g.Targets
	for c := range g.configs {
		if g.configs[c].Key() != key || g.configs[c].Alone() {
			continue
		}
		if i, ok := slices.BinarySearch(g.Targets, c); ok {
			targets, targetOf = append(targets, len(configs)), append(targetOf, i)
		}
		configs, candidates = append(configs, g.configs[c]), append(candidates, c)
	}
	r, err := rubick.PosteriorOf(ctx, rows, configs, targets)
	if err != nil || len(r.Index) == 0 {
		return err
	}
	between := make([]float64, len(g.configs))
	for _, k := range r.Index {
		if c := candidates[k]; share[c] > 0 {
			share[c] = mixed.physics
			between[c] = g.difference(ctx, mixed, &g.configs[c])
		}
	}
	scale := r.Half / stats.Normal90
	for _, v := range r.Views {
		factor := v.Weight * scale * scale
		for k, of := range r.Index {
			c := candidates[of]
			g.view.Own[c] += factor * (1 - share[c]) * v.Own[k]
			for l, i := range r.Place {
				t := targetOf[i]
				g.view.Cov[c*len(g.Targets)+t] += factor * min(1-share[c], 1-share[g.Targets[t]]) * v.Cov[k*len(r.Place)+l]
			}
		}
	}
	g.view.AddBetween(mixed.physics*(1-mixed.physics), between, g.Targets)
	return nil
}

// difference returns the difference of ln T between the two models of a mixture, 0 if one of them has no prediction.
func (g *spaceGain) difference(ctx context.Context, m *mixture, c *spec.Config) float64 {
	a, err := g.fitted.base.predict(c)
	if err != nil {
		return 0
	}
	b, err := m.rubick.Predict(ctx, *c)
	if err != nil {
		return 0
	}
	return math.Log(b.Throughput / a.Throughput)
}

// HalfWidth implements design.Model.
func (g *spaceGain) HalfWidth(c int) float64 { return g.half[c] }

// MeanHalf implements design.Model.
func (g *spaceGain) MeanHalf(c int) float64 {
	return meanHalfAfter(&g.view, g.weight, c)
}

// Views implements design.Model.
func (g *spaceGain) Views() []design.View { return []design.View{g.view} }

// ScoreAmong implements design.Model.
func (g *spaceGain) ScoreAmong(among []int) design.Score {
	some := make([]float64, len(among))
	for k, i := range among {
		some[k] = g.weight[i]
	}
	return func(views []design.View, _ []int, c int) float64 { return meanHalfAfter(&views[0], some, c) }
}

// targetWeights returns the ratio of each target's half width to its standard deviation, including the noise of
// a run.
func (g *spaceGain) targetWeights() []float64 {
	out := make([]float64, len(g.Targets))
	for i, t := range g.Targets {
		out[i] = g.half[t] / math.Sqrt(g.view.Target[i]+design.RunNoise*design.RunNoise)
	}
	return out
}

// meanHalfAfter returns the mean half width of the targets after measuring candidate c; for c < 0, the present
// one.
func meanHalfAfter(v *design.View, weight []float64, c int) float64 {
	const noise = design.RunNoise * design.RunNoise
	nt := len(weight)
	sum, q := 0.0, 0.0
	row := v.Target // any row, since q is 0
	if c >= 0 {
		row, q = v.Cov[c*nt:(c+1)*nt], 1/(v.Own[c]+noise)
	}
	for i, w := range weight {
		sum += w * math.Sqrt(max(v.Target[i]-row[i]*row[i]*q, 0)+noise)
	}
	return sum / float64(nt)
}

// configsIn returns the configurations of rows.
func configsIn(rows []spec.Measurement) []spec.Config {
	out := make([]spec.Config, len(rows))
	for i := range rows {
		out[i] = rows[i].Config
	}
	return out
}
