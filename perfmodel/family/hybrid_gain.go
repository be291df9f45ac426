package family

import (
	"context"
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/blas/blas64"
	"gonum.org/v1/gonum/mat"

	"github.com/pacer-ml/pacer/perfmodel"
	"github.com/pacer-ml/pacer/perfmodel/internal/bayes"
	"github.com/pacer-ml/pacer/perfmodel/memory"
	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// gain implements Family.Gain: how far measuring each configuration of space is
// expected to narrow the family's intervals over the space.
//
// What is believed of the ln T of all configurations is taken for one Gaussian,
// that of the constants around their mode (Laplace), of what the form leaves
// over and of which form is right where two are mixed. A row at c then narrows
// the interval of i by a rank-one update,
//
//	v(i | c) = v(i) - cov(i, c)²/(v(c) + noise²)
//	half(i | c) = half(i)·√((v(i | c) + noise²)/(v(i) + noise²))
//	Fall(c) = mean over i of half(i) - half(i | c)
//
// whatever its outcome will be, so that a Fall depends on what was measured and
// not on what will be. Without a row v is the shipped prior's. Source: Chaloner
// and Verdinelli, "Bayesian Experimental Design: A Review", Statistical Science
// 1995, section 2 (A-optimality, here of standard deviations).
//
// Not counted is that rows take back the widening for dimensions none has shown
// (see domain): it is a convention and draws rows to corners. That was decided
// in view of Rubick's traces, as was that there is one form until two are fitted:
// over the first eight rows the error there, geometric mean, is 7.9 % as it is,
// 8.6 % with the widening, 8.3 % with both forms from the start.
//
// The first gainPlanned rows are planned as a set, as gainRubick does. HalfWidth
// is that of the fitted model's predictions. A repeat makes no new row, so it
// teaches nothing, and neither does what the family does not cover: there both
// figures are 0.
func (p *Prior) gain(ctx context.Context, have []spec.Measurement, space []spec.Config) ([]perfmodel.Gain, error) {
	out := make([]perfmodel.Gain, len(space))
	rows, _, err := oneKey(ctx, perfmodel.Rows(have))
	if err != nil || len(space) == 0 {
		return out, err
	}
	for i := range space {
		if k := space[i].Key(); k != space[0].Key() {
			return nil, fmt.Errorf("hybrid: a space of %s and of %s, want one model on one accelerator", space[0].Key(), k)
		}
	}
	if len(rows) > 0 && rows[0].Config.Key() != space[0].Key() {
		return nil, fmt.Errorf("hybrid: rows of %s, a space of %s: want one model on one accelerator", rows[0].Config.Key(), space[0].Key())
	}
	h, err := p.condition(ctx, rows)
	if err != nil {
		return nil, err
	}
	g := newHybridGain(ctx, h, rows, space)
	if len(g.configs) == 0 {
		return out, ctx.Err()
	}
	if err := g.learn(ctx); err != nil {
		return nil, fmt.Errorf("hybrid: %s: %w", space[0].Key(), err)
	}
	falls := g.falls()
	if len(rows) < gainPlanned {
		keepTo(g.plan(gainPlanned-len(rows)), falls)
	}
	for c, i := range g.index {
		out[i] = perfmodel.Gain{HalfWidth: g.half[c], Fall: falls[c]}
	}
	return out, ctx.Err()
}

// hybridGain is the working out of one space's gains.
type hybridGain struct {
	fitted *Hybrid
	mixed  *mixture // nil where the candidates have one form
	rows   []spec.Measurement

	// Candidates are the configurations of the space that have a prediction, in
	// canonical order.
	configs  []spec.Config
	index    []int // into the space
	half     []float64
	measured []bool
	targets  []int // candidates whose intervals count

	// view is of ln T without the noise of a run, scaled to the normal
	// distribution whose 90 % intervals are those that its form gives.
	view rubickView
}

func newHybridGain(ctx context.Context, h *Hybrid, rows []spec.Measurement, space []spec.Config) *hybridGain {
	g := &hybridGain{fitted: h, mixed: h.mixed[space[0].Key()], rows: rows}
	done := map[spec.Config]bool{}
	for i := range rows {
		done[asRun(rows[i].Config)] = true
	}
	order := ascending(len(space))
	slices.SortStableFunc(order, func(a, b int) int { return perfmodel.CompareConfigs(space[a], space[b]) })
	for _, i := range order {
		p, err := h.Predict(ctx, space[i])
		if err != nil {
			continue
		}
		g.configs, g.index = append(g.configs, space[i]), append(g.index, i)
		g.half = append(g.half, math.Log(p.Hi/p.Lo)/2)
		g.measured = append(g.measured, done[asRun(space[i])])
	}
	n := len(g.configs)
	g.targets = ascending(n)
	if most := min(maxPool, max(gainPairs/max(n, 1), leastTargets)); n > most {
		g.targets = spread(g.targets, most)
	}
	g.view = rubickView{weight: 1, cov: make([]float64, n*len(g.targets)), own: make([]float64, n), target: make([]float64, len(g.targets))}
	return g
}

// learn sets what is believed of the candidates.
func (g *hybridGain) learn(ctx context.Context) error {
	physics, opaque := g.forms()
	for _, at := range opaque {
		if err := g.addOpaque(at); err != nil {
			return err
		}
	}
	share := make([]float64, len(g.configs)) // of physics
	for _, c := range physics {
		share[c] = 1
	}
	if g.mixed != nil {
		if err := g.addRubick(ctx, share); err != nil {
			return err
		}
	}
	if err := g.addPhysics(ctx, physics, share); err != nil {
		return err
	}
	for i, t := range g.targets {
		g.view.target[i] = g.view.own[t]
	}
	return nil
}

// forms parts the candidates by what predicts them: physics, and each of the
// forms for jobs without a shape. What neither covers is rubick's.
func (g *hybridGain) forms() (physics []int, opaque [][]int) {
	h, place := g.fitted, map[opaqueKey]int{}
	for c := range g.configs {
		of := &g.configs[c]
		key := opaqueKeyOf(of)
		without := h.opaqueFor(of)
		fitted := without && (h.opaque[key] != nil || h.prior.opaque.knows(of))
		switch {
		case !fitted && new(calibration).try(of):
			physics = append(physics, c)
		case without:
			if _, ok := place[key]; !ok {
				place[key] = len(opaque)
				opaque = append(opaque, nil)
			}
			opaque[place[key]] = append(opaque[place[key]], c)
		}
	}
	return physics, opaque
}

// addPhysics counts what the calibrated physics believes of candidates, of which
// it has a share.
func (g *hybridGain) addPhysics(ctx context.Context, candidates []int, share []float64) error {
	if len(candidates) == 0 {
		return nil
	}
	trial, post, err := g.tryPhysics(ctx, candidates)
	if err != nil {
		return err
	}
	n, scale := len(candidates), g.fitted.base.scale/normal90
	at, jac := make([]float64, n), mat.NewDense(n, len(post.Mean), nil)
	trial.predict(post.Mean, at)
	trial.differentiate(post.Mean, at, jac)
	var spread mat.Dense
	spread.Mul(jac, post.Cov)
	rest := g.fitted.base.rest.believed()
	points := make([]point, n)
	for k := range points {
		points[k] = pointOf(&trial.config[k])
	}
	fresh := g.freshSites(candidates)
	f := &gaussianForm{at: candidates, factor: scale * scale, grad: jac.RawMatrix(), spread: spread.RawMatrix(),
		white: rest.chol.whiten(n, len(rest.at), func(k, row int) float64 {
			return rest.kernel.at(points[k].distance(&rest.at[row]))
		})}
	f.rest = func(k, l int) float64 {
		v := rest.kernel.at(points[k].distance(&points[l]))
		if fresh[k] >= 0 && fresh[k] == fresh[l] {
			v += paceSD * paceSD / (1 + pacedRare) / f.factor // the scale is not of the pace
		}
		return v
	}
	f.addTo(&g.view, g.targets, func(c, t int) float64 { return min(share[c], share[t]) })
	return nil
}

// tryPhysics fits the constants to the rows, with the effects of the candidates'
// sites, and returns the candidates as rows to predict with them.
func (g *hybridGain) tryPhysics(ctx context.Context, candidates []int) (*calibration, bayes.Posterior, error) {
	trial := &calibration{}
	asked := make([]spec.Measurement, len(candidates))
	for k, c := range candidates {
		asked[k].Config = g.configs[c]
		trial.try(&g.configs[c])
	}
	fit, err := newCalibration(ctx, g.rows)
	if err != nil {
		return nil, bayes.Posterior{}, err
	}
	fit.add(fit.rows)
	fit.add(asked)
	fit.gather()
	post, _, err := g.fitted.prior.posterior(ctx, fit)
	trial.layout = fit.layout
	trial.gather()
	return trial, post, err
}

// try adds a configuration without an outcome; it reports false where physics
// does not cover it.
func (c *calibration) try(of *spec.Config) bool {
	var pr prepared
	p := of.Plan.Normal()
	if pr.init(&base, memory.Shipped(), of) != nil {
		return false
	}
	if _, _, err := pr.seconds(&p); err != nil {
		return false
	}
	c.opened, c.config, c.plan, c.y = append(c.opened, pr), append(c.config, *of), append(c.plan, p), append(c.y, 0)
	return true
}

// freshSites returns for each candidate the number of its site, -1 if a row is
// of it: of the pace of others (see fitPaced) nothing is known.
func (g *hybridGain) freshSites(candidates []int) []int {
	number := map[site]int{}
	for i := range g.rows {
		number[siteOf(&g.rows[i].Config)] = -1
	}
	out := make([]int, len(candidates))
	for k, c := range candidates {
		s := siteOf(&g.configs[c])
		if _, ok := number[s]; !ok {
			number[s] = len(number)
		}
		out[k] = number[s]
	}
	return out
}

// believed returns what rows say of the process over what physics leaves
// unexplained: of more than residualRows so many, evenly spread, and what is
// believed before any row for nil.
func (r *residual) believed() *residual {
	unseen := &residual{kernel: kernel{SD: residualSD, Steep: 1}}
	if r == nil {
		return unseen
	}
	if !r.many() {
		return r
	}
	var some residual
	for k := range residualRows {
		i := k * len(r.at) / residualRows
		some.at, some.e, some.sd = append(some.at, r.at[i]), append(some.e, r.e[i]), append(some.sd, r.sd[i])
	}
	if fitted, ok := withKernel(some.at, some.e, some.sd, r.kernel); ok {
		return fitted
	}
	return unseen
}

// whiten returns n covariances with the rows that c is of, whitened.
func (c cholesky) whiten(n, rows int, cov func(k, row int) float64) blas64.General {
	out := matrix(n, rows)
	for k := range n {
		line := lineOf(out, k)
		for j := range line {
			line[j] = cov(k, j)
		}
		if rows > 0 {
			c.forward(line)
		}
	}
	return out
}

func lineOf(a blas64.General, k int) []float64 { return a.Data[k*a.Cols : (k+1)*a.Cols] }

// addOpaque counts what the form for jobs without a shape believes of candidates
// of one opaqueKey.
func (g *hybridGain) addOpaque(candidates []int) error {
	like := &g.configs[candidates[0]]
	fitted := g.fitted.opaque[opaqueKeyOf(like)]
	if fitted == nil {
		var err error
		if fitted, err = g.fitted.prior.opaque.fit(*like, nil); err != nil {
			return err
		}
	}
	n, r := len(candidates), fitted.rest
	jac, seen := mat.NewDense(n, len(fitted.mode), nil), make([]opaqueSeen, n)
	for k, c := range candidates {
		_, x := opaqueFormOf(&g.configs[c])
		_, seen[k] = fitted.see(&x, jac.RawRowView(k))
	}
	var spread mat.Dense
	spread.Mul(jac, fitted.prior.Cov)
	f := &gaussianForm{at: candidates, factor: 1, grad: jac.RawMatrix(), spread: spread.RawMatrix(),
		white: r.factor.whiten(n, len(r.seen), func(k, row int) float64 {
			return r.kernel.covariance(&seen[k], &r.seen[row]) + dot(spread.RawRowView(k), r.jac.RawRowView(row))
		}),
		rest: func(k, l int) float64 { return r.kernel.covariance(&seen[k], &seen[l]) },
	}
	f.addTo(&g.view, g.targets, func(int, int) float64 { return 1 })
	return nil
}

// gaussianForm is what a form, linear in its constants, believes of some
// candidates, a line each:
//
//	cov = factor·(G·Σ·Gᵀ + rest - W·Wᵀ)
type gaussianForm struct {
	at     []int // candidate of each line
	factor float64
	grad   blas64.General         // G, by constant
	spread blas64.General         // G·Σ
	rest   func(k, l int) float64 // covariance of what the constants do not explain
	white  blas64.General         // W, covariances with rows, whitened, that Σ or rest do not have yet
}

// addTo adds share of the covariances to v.
func (f *gaussianForm) addTo(v *rubickView, targets []int, share func(c, t int) float64) {
	line := map[int]int{}
	for k, c := range f.at {
		line[c] = k
	}
	cov := func(k, l int) float64 {
		of := f.rest(k, l) + dot(lineOf(f.spread, k), lineOf(f.grad, l)) - dot(lineOf(f.white, k), lineOf(f.white, l))
		return f.factor * of * share(f.at[k], f.at[l])
	}
	for k, c := range f.at {
		v.own[c] += max(cov(k, k), 0)
		for i, t := range targets {
			if l, ok := line[t]; ok {
				v.cov[c*len(targets)+i] += cov(k, l)
			}
		}
	}
}

// addRubick counts what family "rubick", the other form of the mixture, believes
// and that the two differ: which is right is one more unknown. share is that of
// physics, 1 or 0 by whether it covers a candidate when called.
func (g *hybridGain) addRubick(ctx context.Context, share []float64) error {
	rows, err := gainRows(ctx, g.rows, g.configs)
	if err != nil {
		return err
	}
	r := newRubickGain(rows, g.configs)
	if len(r.candidates) == 0 {
		return nil
	}
	r.targets = nil
	var place []int // of r's targets in g's
	for i, t := range g.targets {
		if k := slices.Index(r.candidates, t); k >= 0 {
			r.targets, place = append(r.targets, k), append(place, i)
		}
	}
	if err := r.learn(rows, g.configs); err != nil {
		return err
	}
	apart := make([]float64, len(g.configs))
	for _, c := range r.candidates {
		if share[c] > 0 {
			share[c] = g.mixed.physics
			apart[c] = g.apart(ctx, &g.configs[c])
		}
	}
	scale := r.half[0] / normal90
	for _, v := range r.views {
		factor := v.weight * scale * scale
		for k, c := range r.candidates {
			g.view.own[c] += factor * (1 - share[c]) * v.own[k]
			for l, i := range place {
				g.view.cov[c*len(g.targets)+i] += factor * min(1-share[c], 1-share[g.targets[i]]) * v.cov[k*len(r.targets)+l]
			}
		}
	}
	g.view.addBetween(g.mixed.physics*(1-g.mixed.physics), apart, g.targets)
	return nil
}

// apart returns by how much ln T differs between the forms, 0 where one has no
// prediction.
func (g *hybridGain) apart(ctx context.Context, c *spec.Config) float64 {
	a, err := g.fitted.base.predict(c)
	if err != nil {
		return 0
	}
	b, err := g.mixed.rubick.Predict(ctx, *c)
	if err != nil {
		return 0
	}
	return math.Log(b.Throughput / a.Throughput)
}

// falls returns how far the mean half width of the targets is expected to fall
// with one row more, for each candidate.
func (g *hybridGain) falls() []float64 {
	weight := g.targetWeights()
	before := meanHalfAfter(&g.view, weight, -1)
	out := make([]float64, len(g.configs))
	for c := range out {
		if !g.measured[c] {
			out[c] = max(before-meanHalfAfter(&g.view, weight, c), 0)
		}
	}
	return out
}

// targetWeights returns each target's half width over its standard deviation,
// noise of a run included.
func (g *hybridGain) targetWeights() []float64 {
	out := make([]float64, len(g.targets))
	for i, t := range g.targets {
		out[i] = g.half[t] / math.Sqrt(g.view.target[i]+rubickNoise*rubickNoise)
	}
	return out
}

// meanHalfAfter returns the mean half width of the targets once candidate c is
// measured; as it is for c < 0.
func meanHalfAfter(v *rubickView, weight []float64, c int) float64 {
	const noise = rubickNoise * rubickNoise
	nt := len(weight)
	sum, q := 0.0, 0.0
	row := v.target // any: times q
	if c >= 0 {
		row, q = v.cov[c*nt:(c+1)*nt], 1/(v.own[c]+noise)
	}
	for i, w := range weight {
		sum += w * math.Sqrt(max(v.target[i]-row[i]*row[i]*q, 0)+noise)
	}
	return sum / float64(nt)
}

// plan returns the n targets, fewer if that many are not left, that are best
// measured together.
func (g *hybridGain) plan(n int) []int {
	weight := g.targetWeights()
	return planned([]rubickView{g.view}, g.targets, g.measured, n, func(among []int) setScore {
		some := make([]float64, len(among))
		for k, i := range among {
			some[k] = weight[i]
		}
		return func(views []rubickView, _ []int, c int) float64 { return meanHalfAfter(&views[0], some, c) }
	})
}
