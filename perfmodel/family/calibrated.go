package family

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/pacer-ml/pacer/perfmodel"
	"github.com/pacer-ml/pacer/perfmodel/internal/bayes"
	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// calibrated is the analytic model with its constants moved to measured rows,
// and a Gaussian process over what is left. Without rows it is the prior.
type calibrated struct {
	layout layout    // of x
	x      []float64 // the fitted constants and effects, see layout
	rest   *residual // nil without rows
	wide   map[site]widths
	others widths // of sites without rows
	scale  float64
	left   []float64 // left-out errors of the rows, and their standard deviations
	leftSD []float64

	physics *physics
	seen    *domain
	scatter *scatter // nil without rows
}

func (p *Prior) uncalibrated() *calibrated {
	return &calibrated{physics: p.physics, seen: p.seen, others: p.wide, scale: p.wide.Scale}
}

// calibrate moves the prior to rows. Rows that are not usable or not covered
// are left out; with none left the result is the prior.
func (p *Prior) calibrate(ctx context.Context, rows *calibration) (*calibrated, error) {
	if len(rows.rows) == 0 {
		return p.uncalibrated(), nil
	}
	c := rows
	c.add(c.rows)
	c.gather()
	post, j, err := p.posterior(ctx, c)
	if err != nil {
		return nil, err
	}
	out := &calibrated{layout: c.layout, x: post.Mean, wide: map[site]widths{}, others: p.wide}
	for i := range c.groups {
		g := &c.groups[i]
		of := &c.config[g.rows[0]]
		arch := generations[c.opened[g.rows[0]].machine.sheet.generation].arch
		out.wide[siteOf(of)] = c.layout.widths(&post.Gaussian, g.framework, g.site, arch, stackOf(of.Framework).launch)
	}
	if err := out.explain(ctx, c, j, &post); err != nil {
		return nil, err
	}
	out.complete(p)
	return out, nil
}

// explain fits the process to what the constants leave, and works out the
// left-out errors and from them the half width over the standard deviation that
// covers nine in ten. post is that of j.
func (m *calibrated) explain(ctx context.Context, c *calibration, j *joint, post *bayes.Posterior) error {
	at := c.points()
	e := make([]float64, len(at))
	c.predict(m.x, e)
	for i := range e {
		e[i] = c.y[i] - e[i]
	}
	sd := wildness(e)
	for i, row := range j.rows {
		sd[row] = j.all.sd[i]
	}
	var ok bool
	if m.rest, ok = withKernel(at, e, sd, j.all.kernel); !ok {
		return errNotFinite
	}
	var err error
	if len(j.rows) == len(at) {
		m.left, m.leftSD, err = j.all.leftOut(ctx)
	} else if m.left, m.leftSD, err = m.rest.leftOut(ctx); err == nil {
		for i := range m.leftSD { // the constants hardly know a row of so many
			m.leftSD[i] = math.Sqrt(m.leftSD[i]*m.leftSD[i] + post.Variance(post.Gradient(i)))
		}
	}
	if err != nil {
		return err
	}
	m.score()
	return nil
}

// posterior fits c, which has been gathered: what its rows say of the constants
// and of the effects in its layout, and the joint that says so, nil without rows.
func (p *Prior) posterior(ctx context.Context, c *calibration) (bayes.Posterior, *joint, error) {
	belief := p.beliefOf(&c.layout)
	post, err := c.fitPaced(ctx, belief)
	if err != nil || len(c.y) == 0 {
		return post, nil, err
	}
	j, err := newJoint(ctx, belief, &post, c.points())
	if err != nil {
		return post, nil, err
	}
	post.Gaussian, err = j.constants()
	return post, j, err
}

// points returns where the rows are.
func (c *calibration) points() []point {
	at := make([]point, len(c.config))
	for i := range at {
		at[i] = pointOf(&c.config[i])
	}
	return at
}

// beliefOf is what p believes of the constants and of the effects in l.
func (p *Prior) beliefOf(l *layout) bayes.Gaussian {
	own := layout{frameworks: p.frameworks, sites: p.sites}
	known := own.common(l)
	belief := narrow(&p.belief, &own, &known)
	return extend(&belief, &known, l)
}

// What it takes to believe that everything at a site runs at another pace,
// throttled, shared or far better tuned, rather than that its rows are wild: the
// pace is log-normal about 1 with paceSD, and one site in ten has one.
const (
	paceSD    = 0.7
	pacedRare = 9
	paceLeast = 0.25 // smaller differences are for the effects
)

// fitPaced fits the rows as they are, and with each site at the pace its rows
// suggest, and keeps the likelier: a robust likelihood has a second mode where
// all rows of a site are off alike.
func (c *calibration) fitPaced(ctx context.Context, prior bayes.Gaussian) (bayes.Posterior, error) {
	plain, err := c.climb(ctx, prior, nil)
	if err != nil {
		return bayes.Posterior{}, err
	}
	paces, cost := c.suggestPaces(prior.Mean)
	if len(paces) == 0 {
		return plain.Posterior()
	}
	c.pace = paces
	paced, err := c.climb(ctx, prior, nil)
	if err == nil && paced.Cost+cost < plain.Cost {
		return paced.Posterior()
	}
	if err := ctx.Err(); err != nil {
		return bayes.Posterior{}, err
	}
	c.pace = nil
	return plain.Posterior()
}

// suggestPaces returns the median residual of each site at x where it is large,
// and minus the logarithm of how likely such paces are before any row.
func (c *calibration) suggestPaces(x []float64) (paces map[site]float64, cost float64) {
	at := make([]float64, len(c.y))
	c.predict(x, at)
	for i := range c.groups {
		g := &c.groups[i]
		var e []float64
		for _, r := range g.rows {
			e = append(e, c.y[r]-at[r])
		}
		slices.Sort(e)
		pace := (e[(len(e)-1)/2] + e[len(e)/2]) / 2
		if math.Abs(pace) < paceLeast {
			continue
		}
		if paces == nil {
			paces = map[site]float64{}
		}
		paces[g.of] = pace
		occam := math.Log(paceSD * math.Sqrt(float64(len(e))) / rowNoise)
		cost += pace*pace/(2*paceSD*paceSD) + occam + math.Log(pacedRare)
	}
	return paces, cost
}

// common returns what both layouts have.
func (l *layout) common(other *layout) (out layout) {
	for _, f := range l.frameworks {
		if other.framework(f) >= 0 {
			out.frameworks = append(out.frameworks, f)
		}
	}
	for _, s := range l.sites {
		if other.site(s) >= 0 {
			out.sites = append(out.sites, s)
		}
	}
	return out
}

// complete derives what is not kept on disk; sites and frameworks that no row
// is of are the prior's.
func (m *calibrated) complete(p *Prior) {
	g := bayes.Gaussian{Mean: m.x}
	m.physics = m.layout.physics(&g, p.wide, p.mem)
	for s, k := range p.physics.sites {
		if m.physics.sites[s] == nil {
			m.physics.sites[s] = k
		}
	}
	for f, k := range p.physics.frameworks {
		if m.physics.frameworks[f] == nil {
			m.physics.frameworks[f] = k
		}
	}
	m.seen = domainOf(m.rest.at)
}

// wildness returns the standard deviation of each residual beyond that of good
// rows: what is beyond three times what the process explains is noise.
func wildness(residuals []float64) []float64 {
	sd := make([]float64, len(residuals))
	for i, e := range residuals {
		if a := math.Abs(e); a > 3*residualSD {
			sd[i] = a
		}
	}
	return sd
}

// The quantile of few left-out errors says little: it counts as their number
// against anchorWeight rows of an anchor, which goes from the prior's own scale
// to that of a normal distribution over some anchorRows rows.
const anchorWeight, anchorRows = 8, 6

// score works out from the left-out errors how far off rows are, and the half
// width over the standard deviation that covers nine in ten.
func (m *calibrated) score() {
	v := make([]float64, len(m.left))
	for i, sd := range m.leftSD { // a wild row was not expected to be
		v[i] = max(sd*sd-m.rest.sd[i]*m.rest.sd[i], residualNoise*residualNoise)
		m.leftSD[i] = math.Sqrt(v[i])
	}
	m.scatter = newScatter(m.rest.at, m.left, v)
	n := float64(len(v))
	anchor := normal90 + (m.others.Scale-normal90)*math.Exp(-(n-1)/anchorRows)
	m.scale = max((n*m.scatter.quantile()+anchorWeight*anchor)/(n+anchorWeight), 0.8)
}

// logTime returns the mean of ln T, half the width of its 90 % interval, and in
// what c lies outside of what was measured. At a site without rows physics is
// as uncertain as the prior has it, whatever rows of others say.
func (m *calibrated) logTime(c *spec.Config, parts *Parts) (mean, half float64, beyond outside) {
	total := parts.Total()
	mean = math.Log(total)
	half = m.others.halfWidth(parts, total)
	at := pointOf(c)
	near := 1.0
	if w, ok := m.wide[siteOf(c)]; ok {
		near = m.scatter.near(&at, -1)
		half = m.scale * near * w.sd(parts, total)
	}
	beyond = m.seen.beyond(&at)
	if m.rest == nil {
		beyond &^= anotherModel // physics knows models by their shape
	} else {
		r, v := m.rest.predict(&at)
		mean += r
		half = math.Hypot(half, m.scale*math.Sqrt(near*near*(v+residualNoise*residualNoise)+beyond.widening()))
	}
	return mean, half, beyond
}

// predict returns the throughput and memory of c.
func (m *calibrated) predict(c *spec.Config) (spec.Prediction, error) {
	var pr prepared
	if err := m.physics.open(c, "hybrid", &pr); err != nil {
		return spec.Prediction{}, err
	}
	out, err := m.predictPlan(c, &pr)
	if err == nil {
		out.MemoryBytes = pr.mem.Bytes(c.Plan.Normal())
	}
	return out, err
}

// prepare fixes everything but the plan.
func (m *calibrated) prepare(c *spec.Config) (func(spec.Plan) (spec.Prediction, error), error) {
	pr := &prepared{}
	if err := m.physics.open(c, "hybrid", pr); err != nil {
		return nil, err
	}
	of := *c
	return func(p spec.Plan) (spec.Prediction, error) {
		c := of
		c.Plan = p
		return m.predictPlan(&c, pr)
	}, nil
}

func (m *calibrated) predictPlan(c *spec.Config, pr *prepared) (spec.Prediction, error) {
	p := c.Plan.Normal()
	parts, _, err := pr.seconds(&p)
	if err != nil {
		return spec.Prediction{}, err
	}
	mean, half, beyond := m.logTime(c, &parts)
	thr, spread := float64(p.GlobalBatch())*math.Exp(-mean), math.Exp(half)
	if !(thr/spread > 0) || math.IsInf(thr*spread, 0) {
		return spec.Prediction{}, fmt.Errorf("hybrid: plan %s gives a step of e^(%g +- %g) s: %w", p, mean, half, perfmodel.ErrNotCovered)
	}
	warnings := pr.machine.warnings(p.Precision)
	if beyond != 0 {
		warnings = append(slices.Clip(warnings), m.seen.warn("hybrid", beyond)...)
	}
	return spec.Prediction{Throughput: thr, Lo: thr / spread, Hi: thr * spread, By: "hybrid", Warnings: warnings}, nil
}

// params adds the figures that the rows moved by more than 2 %: factors on the
// shipped ones.
func (m *calibrated) params(out map[string]perfmodel.Param) {
	if m.rest == nil {
		return
	}
	for i, p := range params {
		if f := math.Exp(m.x[i]); math.Abs(f-1) > 0.02 {
			out[p.name] = perfmodel.Param{Value: f, Unit: "x the untrained figure"}
		}
	}
	for _, s := range m.layout.sites {
		for k, e := range effects {
			if f := math.Exp(m.x[m.layout.framework(s.framework)+k] + m.x[m.layout.site(s)+k]); math.Abs(f-1) > 0.02 {
				out[e.name+" of "+s.framework+" on "+s.accelerator] = perfmodel.Param{Value: f, Unit: "x the usual"}
			}
		}
	}
}
