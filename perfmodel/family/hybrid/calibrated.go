package hybrid

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/pacer-ml/pacer/perfmodel"
	"github.com/pacer-ml/pacer/perfmodel/family/analytic"
	"github.com/pacer-ml/pacer/perfmodel/internal/bayes"
	"github.com/pacer-ml/pacer/perfmodel/internal/gp"
	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/perfmodel/spec/stats"
)

// calibrated is the analytic model with constants fitted to measured rows, plus a Gaussian process on the
// residuals. Without rows it is the prior. It is immutable once complete.
type calibrated struct {
	layout    analytic.Layout // of x
	x         []float64       // the fitted parameters
	residual  *gp.Process     // Gaussian process on the residuals, nil without rows
	wide      map[analytic.Site]analytic.Widths
	elsewhere analytic.Widths // for sites without rows
	loads     []analytic.Load // of the rows
	sites     []int           // of the rows, as in layout.Sites
	ranks     []bool          // of the rows: of one rank alone
	left      []float64       // left-out errors of the rows; leftSD has their standard deviations
	leftSD    []float64

	physics *analytic.Physics
	seen    *domain

	// Intervals are scaled by the errors of all rows. Only the uncertainty of traffic is scaled by those of whole steps: that
	// ranks alone, which have none, are predicted well says nothing about it. Without ranks alone the two are the same.
	all, whole spread

	// most is the largest ratio of a left-out error to the half width without rows, and at least 1: where the rows are as near
	// as an interval without them says, no interval is wider than it.
	most float64
}

// spread scales intervals.
type spread struct {
	scale   float64     // ratio of half width to standard deviation, of nine in ten rows
	scatter *gp.Scatter // nil without rows of any kind
}

func (p *Prior) uncalibrated() *calibrated {
	all := spread{scale: p.consts.Widths.Scale}
	return &calibrated{physics: p.consts.Physics, seen: p.seen, elsewhere: p.consts.Widths, all: all, whole: all}
}

// calibrate conditions the prior on rows and the scatter of repeats, and returns the joint distribution of the rows' errors.
// Without rows the result is the prior, and nil.
func (p *Prior) calibrate(ctx context.Context, rows *analytic.Calibration, repeats []gp.Repeats) (*calibrated, *gp.Joint, error) {
	if len(rows.Rows) == 0 {
		return p.uncalibrated(), nil, nil
	}
	c := rows
	c.Arrange()
	before := c.HalfWidths(p.consts)
	c.Weigh(p.consts)
	post, j, err := p.posterior(ctx, c, repeats)
	if err != nil {
		return nil, nil, err
	}
	out := &calibrated{layout: c.Layout, x: post.Mean, wide: c.SiteWidths(&post.Gaussian), elsewhere: p.consts.Widths}
	if err := out.explain(ctx, c, j, &post, before); err != nil {
		return nil, nil, err
	}
	out.complete(p)
	return out, j, nil
}

// explain fits the process to the residuals, and computes the left-out errors and the scale of the intervals.
// post is the posterior of the constants, as part of j.
func (m *calibrated) explain(ctx context.Context, c *analytic.Calibration, j *gp.Joint, post *bayes.Posterior, before []float64) error {
	at := pointsOf(c.Rows)
	e := make([]float64, len(at))
	if err := c.Predict(ctx, m.x, e); err != nil {
		return err
	}
	for i := range e {
		e[i] = c.Y[i] - e[i]
	}
	sd := outlierNoise(e, c.Noise, &j.Process.Kernel)
	for i, row := range j.Rows {
		sd[row] = j.Process.ExtraSD[i]
	}
	var err error
	if m.residual, err = gp.NewProcess(at, e, sd, j.Process.Kernel); err != nil {
		return err
	}
	m.loads, m.sites = c.Loads(m.x)
	m.setPhysics()
	if len(j.Rows) == len(at) {
		m.left, m.leftSD, err = j.Process.LeftOut(ctx)
	} else if m.left, m.leftSD, err = m.residual.LeftOut(ctx); err == nil {
		for i := range m.leftSD { // one of many rows hardly changes the constants
			if err := ctx.Err(); err != nil {
				return err
			}
			m.leftSD[i] = math.Sqrt(m.leftSD[i]*m.leftSD[i] + post.Variance(post.Gradient(i)))
		}
	}
	if err != nil {
		return err
	}
	return m.score(ctx, c, before)
}

// posterior returns the posterior of the constants and effects in the layout of c, and the joint distribution
// with the residuals; the latter is nil without rows.
func (p *Prior) posterior(ctx context.Context, c *analytic.Calibration, repeats []gp.Repeats) (bayes.Posterior, *gp.Joint, error) {
	prior := p.consts.DistributionOf(&c.Layout)
	post, err := c.Fit(ctx, prior, p.kernels.Mean.Spread)
	if err != nil || len(c.Y) == 0 {
		return post, nil, err
	}
	j, err := gp.NewJoint(ctx, prior, &post, pointsOf(c.Rows), c.Noise, repeats, p.kernels)
	if err != nil {
		return post, nil, err
	}
	post.Gaussian, err = j.Constants()
	return post, j, err
}

// setPhysics gives the process the loads of the rows.
func (m *calibrated) setPhysics() {
	f := &gp.Physics{Site: m.sites, Load: make([][]float64, len(m.loads))}
	for i := range m.loads {
		f.Load[i] = m.loads[i][:]
	}
	m.residual.SetPhysics(f)
}

// complete computes the fields that are not stored on disk. Sites and frameworks without rows have the prior's
// constants.
func (m *calibrated) complete(p *Prior) {
	m.physics = p.consts.PhysicsAt(&m.layout, m.x)
	m.seen = domainOf(m.residual.At)
}

// outlierNoise returns the additional standard deviation of each row: its residual if that exceeds three times
// the process's standard deviation, else its noise; nil = 0.
func outlierNoise(residuals, noise []float64, k *gp.Kernel) []float64 {
	sd := make([]float64, len(residuals))
	copy(sd, noise)
	for i, e := range residuals {
		if a := math.Abs(e); a > 3*k.Spread {
			sd[i] = max(a, sd[i])
		}
	}
	return sd
}

// The quantile of few left-out errors is uncertain. So it is averaged with the expected one, which has the weight of
// anchorWeight rows.
const anchorWeight = 8

// score computes the spreads from the left-out errors. before has the half widths without rows. Its error is that of ctx.
func (m *calibrated) score(ctx context.Context, c *analytic.Calibration, before []float64) (err error) {
	v := make([]float64, len(m.left))
	for i, sd := range m.leftSD { // without the additional noise of outliers
		v[i] = max(sd*sd-m.residual.ExtraSD[i]*m.residual.ExtraSD[i], gp.RepeatSD*gp.RepeatSD)
		if c.Noise != nil { // of old rows and of runs
			v[i] += c.Noise[i] * c.Noise[i]
		}
		m.leftSD[i] = math.Sqrt(v[i])
		m.ranks = append(m.ranks, c.Rows[i].Config.Alone())
	}
	m.most = 1
	for i, e := range m.left {
		m.most = max(m.most, math.Abs(e)/before[i])
	}
	m.setScatter(gp.SquaredRatios(m.left, v))
	if m.all.scale, err = m.all.cover(ctx); err != nil || m.whole.scatter == m.all.scatter {
		m.whole.scale = m.all.scale
		return err
	}
	m.whole.scale, err = m.whole.cover(ctx)
	return err
}

// setScatter sets the scatter of both spreads, of rows with squared ratios z2. Without rows of ranks alone they are the same.
func (m *calibrated) setScatter(z2 []float64) {
	m.all.scatter = gp.NewScatter(m.residual.At, z2)
	m.whole.scatter = m.all.scatter
	if !slices.Contains(m.ranks, true) {
		return
	}
	var at []gp.Point
	var of []float64
	for i, alone := range m.ranks {
		if !alone {
			at, of = append(at, m.residual.At[i]), append(of, z2[i])
		}
	}
	m.whole.scatter = gp.NewScatter(at, of)
}

// cover returns the scale that covers nine in ten rows. The error is that of ctx.
func (s *spread) cover(ctx context.Context) (float64, error) {
	rows := len(s.scatter.At)
	quantile, err := s.scatter.Quantile(ctx)
	n := float64(rows)
	return max((n*quantile+anchorWeight*gp.HalfOver(rows))/(n+anchorWeight), 0.8), err
}

// Outliers are off by more than outlierFactor and outlierSDs standard deviations: predictions without measurements of a
// job are within a factor of three.
const outlierFactor, outlierSDs = 3, 4

// outliers returns the fitted rows that the others contradict.
func (m *calibrated) outliers(rows []spec.Measurement) (out []perfmodel.Outlier) {
	for i, e := range m.left {
		if a := math.Abs(e); a > math.Log(outlierFactor) && a > outlierSDs*m.leftSD[i] {
			out = append(out, perfmodel.Outlier{Row: rows[i], Factor: math.Exp(e)})
		}
	}
	return out
}

// plans predicts plans of one job on the same devices.
type plans struct {
	*calibrated
	pr     analytic.Prepared
	of     spec.Config      // all but the plan
	at     gp.Point         // with any plan
	beyond outside          // dimensions outside of the measured rows, but those of plans
	site   int              // in layout.Sites, -1 without rows of it
	wide   *analytic.Widths // of the site, nil without rows of it
}

// plansOf prepares predictions of plans of c. The error wraps perfmodel.ErrNotCovered.
func (m *calibrated) plansOf(c *spec.Config) (*plans, error) {
	at := analytic.SiteOf(c)
	s := &plans{calibrated: m, of: *c, at: gp.PointOf(c), site: slices.Index(m.layout.Sites, at)}
	if err := m.physics.Open(c, "hybrid", &s.pr); err != nil {
		return nil, err
	}
	s.beyond = m.seen.beyond(&s.at, ofAll&^ofPlan)
	if w, ok := m.wide[at]; ok {
		s.wide = &w
	}
	return s, nil
}

// logTime returns the mean of ln T, half the width of its 90 % interval, and the dimensions in which the normal plan p
// is outside of the measured rows. At a site without rows the constants are as uncertain as in the prior.
func (s *plans) logTime(p *spec.Plan, e *analytic.Estimate) (mean, half float64, beyond outside) {
	total := e.Parts.Total()
	at, own := s.at, s.of.RankPlan(p)
	at.SetPlan(&own)
	mean, beyond = e.Log, s.beyond|s.seen.beyond(&at, ofPlan)
	if s.residual == nil {
		beyond &^= anotherModel // the analytic model predicts other models from their shape
		half = s.elsewhere.HalfWidth(s.of.Model.Experts > 0, &e.Parts, total)
	} else {
		load, near, before := analytic.LoadOf(&e.Parts, total), 1.0, s.elsewhere.HalfWidth(s.of.Model.Experts > 0, &e.Parts, total)
		r, v := s.residual.PredictAt(&at, s.site, load[:])
		mean += r
		if s.wide != nil {
			near = s.all.scatter.Near(&at, -1)
			v += s.wide.Variance(&load)
			half = s.trafficHalf(&at, &load, near)
		} else {
			half = before
		}
		run := max(s.residual.Kernel.Noise, gp.RepeatSD) // of a single run, as in the left-out errors that set the scale
		half = math.Hypot(half, s.all.scale*math.Sqrt(near*near*(v+run*run)+beyond.widening()))
		half = min(half, s.most*before)
	}
	if e.Between > 0 {
		half = math.Hypot(half, stats.Normal90*e.Between)
	}
	return mean, half, beyond
}

// trafficHalf returns what is added to the half width of a whole step at a site with rows of ranks alone. The errors of
// these rows do not scale the uncertainty of the traffic, which is not in them. near is the scatter of all rows at p.
func (s *plans) trafficHalf(p *gp.Point, load *analytic.Load, near float64) float64 {
	if s.whole == s.all || s.of.Alone() {
		return 0
	}
	all, whole := near*s.all.scale, s.whole.scatter.Near(p, -1)*s.whole.scale
	return math.Sqrt(max(whole*whole-all*all, 0) * s.wide.Traffic(load))
}

// predict returns the throughput and memory of c.
func (m *calibrated) predict(c *spec.Config) (spec.Prediction, error) {
	s, err := m.plansOf(c)
	if err != nil {
		return spec.Prediction{}, err
	}
	out, err := s.predict(c.Plan)
	if err == nil {
		b := s.pr.Memory.Plan(c.Plan.Normal())
		b.SetMemory(&out)
	}
	return out, err
}

// prepare is predict for many plans and sequence lengths: it fixes everything else in c.
func (m *calibrated) prepare(c *spec.Config) (perfmodel.Prepared, error) {
	s, err := m.plansOf(c)
	if err != nil {
		return nil, err
	}
	return perfmodel.PreparedFunc(func(p spec.Plan, seq int) (spec.Prediction, error) {
		if seq == s.of.SeqLen {
			return s.predict(p)
		}
		other := *s
		if err := other.setSeq(seq); err != nil {
			return spec.Prediction{}, err
		}
		return other.predict(p)
	}), nil
}

// setSeq changes s to samples of seq tokens. The error wraps perfmodel.ErrNotCovered.
func (s *plans) setSeq(seq int) error {
	s.of.SeqLen = seq
	s.at = gp.PointOf(&s.of)
	s.beyond = s.seen.beyond(&s.at, ofAll&^ofPlan)
	return s.pr.SetSeq(&s.of.Model, seq)
}

// predict returns the throughput of a plan, without its memory.
func (s *plans) predict(p spec.Plan) (spec.Prediction, error) {
	p = p.Normal()
	e, err := s.pr.Estimate(&p)
	if err != nil {
		return spec.Prediction{}, err
	}
	mean, half, beyond := s.logTime(&p, &e)
	thr, spread := float64(p.GlobalBatch())*math.Exp(-mean), math.Exp(half)
	if !(thr/spread > 0) || math.IsInf(thr*spread, 0) {
		return spec.Prediction{}, fmt.Errorf("hybrid: plan %s gives a step of e^(%g +- %g) s: %w", p, mean, half, perfmodel.ErrNotCovered)
	}
	warnings := s.seen.warn(s.pr.Warnings(&p), beyond)
	return spec.Prediction{Throughput: thr, Lo: thr / spread, Hi: thr * spread, By: "hybrid", Warnings: warnings}, nil
}

// params adds the constants that differ from base, with the effects of one accelerator.
func (m *calibrated) params(accelerator string, out map[string]perfmodel.Param) {
	if m.residual == nil {
		return
	}
	m.layout.Moved(m.x, accelerator, out)
}
