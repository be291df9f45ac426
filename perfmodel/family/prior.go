package family

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"gonum.org/v1/gonum/mat"

	"github.com/pacer-ml/pacer/perfmodel"
	"github.com/pacer-ml/pacer/perfmodel/internal/bayes"
	"github.com/pacer-ml/pacer/perfmodel/memory"
	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// Prior is what is believed of step times before a row of a job has been seen:
// a Gaussian over the logarithms of the analytic model's constants, common to
// all, and of the effects of the frameworks and sites it was trained on.
type Prior struct {
	belief     bayes.Gaussian // params, then the effects of frameworks, then of sites
	frameworks []string
	sites      []site
	wide       widths
	trained    Training
	seen       *domain
	mem        *memory.Calibration
	opaque     *opaquePrior // of jobs without a shape
	physics    *physics
}

// Training says what a Prior was trained on.
type Training struct {
	Rows    int            `json:"rows"`
	Sources map[string]int `json:"sources"` // rows of each
	Hash    string         `json:"hash"`    // of the rows, see perfmodel.HashRows
}

// Half of the variance between sites is that between frameworks, half that
// between the kinds of machine of one framework.
var effectShare = math.Sqrt(0.5)

// untrained is the Prior before any training run was seen: the physics of base.
func untrained() *Prior {
	mean, sd := make([]float64, len(params)), make([]float64, len(params))
	for i, p := range params {
		sd[i] = p.sd
	}
	return newPrior(bayes.Independent(mean, sd), nil, nil, widths{Scale: 1.645}, Training{}, domainOf(nil), memory.Prior(), &opaquePrior{})
}

// newPrior builds the physics that goes with a belief.
func newPrior(g bayes.Gaussian, frameworks []string, sites []site, w widths, t Training, seen *domain, mem *memory.Calibration, opaque *opaquePrior) *Prior {
	p := &Prior{belief: g, frameworks: frameworks, sites: sites, wide: w, trained: t, seen: seen, mem: mem, opaque: opaque}
	lay := layout{frameworks: frameworks, sites: sites}
	if w.Cov == nil {
		p.wide = lay.widths(&g, -1, -1, "", launchCompiled)
		p.wide.Floor, p.wide.Scale = rowNoise, w.Scale
	}
	p.physics = lay.physics(&g, p.wide, mem)
	return p
}

// layout says where the parameters of a fit are.
type layout struct {
	frameworks []string
	sites      []site
	// pace is ln of how many times as long everything takes at a site than its
	// stack and devices suggest; absent = 0.
	pace map[site]float64
}

func (l *layout) size() int { return len(params) + len(effects)*(len(l.frameworks)+len(l.sites)) }

// framework and site return where effects begin, -1 for those not in the fit.
func (l *layout) framework(name string) int {
	i := slices.Index(l.frameworks, name)
	if i < 0 {
		return -1
	}
	return len(params) + len(effects)*i
}

func (l *layout) site(s site) int {
	i := slices.Index(l.sites, s)
	if i < 0 {
		return -1
	}
	return len(params) + len(effects)*(len(l.frameworks)+i)
}

// add puts frameworks and sites not in l there; it reports how many it added.
func (l *layout) add(rows []spec.Measurement) {
	for i := range rows {
		c := &rows[i].Config
		if !slices.Contains(l.frameworks, c.Framework) {
			l.frameworks = append(l.frameworks, c.Framework)
		}
		if s := siteOf(c); !slices.Contains(l.sites, s) {
			l.sites = append(l.sites, s)
		}
	}
	slices.Sort(l.frameworks)
	slices.SortFunc(l.sites, compareSites)
}

func compareSites(a, b site) int {
	if c := strings.Compare(a.framework, b.framework); c != 0 {
		return c
	}
	return strings.Compare(a.accelerator, b.accelerator)
}

// constants applies x to base for one site; a negative place is no effect.
func (l *layout) constants(x []float64, framework, at int, k *constants) {
	*k = base
	k.move(params, x[:len(params)])
	l.effects(x, framework, k)
	l.effects(x, at, k)
}

func (l *layout) effects(x []float64, at int, k *constants) {
	if at >= 0 {
		k.move(effects, x[at:at+len(effects)])
	}
}

// physics returns the model at the mean of g.
func (l *layout) physics(g *bayes.Gaussian, w widths, mem *memory.Calibration) *physics {
	ph := &physics{any: &constants{}, sites: map[site]*constants{}, frameworks: map[string]*constants{}, wide: w, mem: mem}
	l.constants(g.Mean, -1, -1, ph.any)
	for _, f := range l.frameworks {
		k := &constants{}
		l.constants(g.Mean, l.framework(f), -1, k)
		ph.frameworks[f] = k
	}
	for _, s := range l.sites {
		k := &constants{}
		l.constants(g.Mean, l.framework(s.framework), l.site(s), k)
		k.slow(math.Exp(l.pace[s]))
		ph.sites[s] = k
	}
	return ph
}

// extend returns a belief over the parameters of to, which has those of from
// and more: new effects are independent of everything, around none.
func extend(g *bayes.Gaussian, from, to *layout) bayes.Gaussian {
	n := to.size()
	mean, cov := make([]float64, n), mat.NewSymDense(n, nil)
	where := from.places(to)
	for i, a := range where {
		mean[a] = g.Mean[i]
		for j, b := range where[:i+1] {
			cov.SetSym(a, b, g.Cov.At(i, j))
		}
	}
	for k := len(params); k < n; k++ {
		if cov.At(k, k) == 0 {
			sd := effects[(k-len(params))%len(effects)].sd * effectShare * to.spread(k)
			cov.SetSym(k, k, sd*sd)
		}
	}
	return bayes.Gaussian{Mean: mean, Cov: cov}
}

// cpuSpread is by how much more sites on CPUs differ than sites on GPUs: in the
// BLAS, in cores shared with others, in what a step costs beside the layers.
const cpuSpread = 5

// spread returns what the usual standard deviation of the effect at k is
// multiplied by.
func (l *layout) spread(k int) float64 {
	i := (k-len(params))/len(effects) - len(l.frameworks)
	if i >= 0 && (spec.Accelerator{Name: l.sites[i].accelerator}).IsCPU() {
		return cpuSpread
	}
	return 1
}

// narrow returns the belief over only the parameters of to, which from has too.
func narrow(g *bayes.Gaussian, from, to *layout) bayes.Gaussian {
	where := to.places(from)
	n := len(where)
	out := bayes.Gaussian{Mean: make([]float64, n), Cov: mat.NewSymDense(n, nil)}
	for i, a := range where {
		out.Mean[i] = g.Mean[a]
		for j, b := range where[:i+1] {
			out.Cov.SetSym(i, j, g.Cov.At(a, b))
		}
	}
	return out
}

// places returns where each parameter of l is in other.
func (l *layout) places(other *layout) []int {
	out := make([]int, 0, l.size())
	for i := range params {
		out = append(out, i)
	}
	block := func(at int) {
		for k := range effects {
			out = append(out, at+k)
		}
	}
	for _, f := range l.frameworks {
		block(other.framework(f))
	}
	for _, s := range l.sites {
		block(other.site(s))
	}
	return out
}

// calibration is a fit of the constants to rows.
type calibration struct {
	layout
	rows   []spec.Measurement // covered ones
	config []spec.Config
	plan   []spec.Plan
	opened []prepared // of each row; constants are put in as the fit goes
	groups []rowGroup
	y      []float64
}

// rowGroup is the rows of one site.
type rowGroup struct {
	of              site
	framework, site int // where their effects are
	rows            []int
	slopes          *slopes // nil before the first derivatives
}

// newCalibration takes the usable rows that the analytic model covers.
func newCalibration(ctx context.Context, rows []spec.Measurement) (*calibration, error) {
	n := len(rows)
	c := &calibration{rows: make([]spec.Measurement, 0, n), config: make([]spec.Config, 0, n), plan: make([]spec.Plan, 0, n),
		opened: make([]prepared, 0, n), y: make([]float64, 0, n)}
	for _, m := range rows {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if !perfmodel.Usable(m) {
			continue
		}
		var pr prepared
		p := m.Config.Plan.Normal()
		err := pr.init(&base, memory.Shipped(), &m.Config)
		if err == nil {
			_, _, err = pr.seconds(&p)
		}
		if errors.Is(err, perfmodel.ErrNotCovered) {
			continue
		}
		if err != nil {
			return nil, err
		}
		c.rows, c.opened = append(c.rows, m), append(c.opened, pr)
		c.config, c.plan, c.y = append(c.config, m.Config), append(c.plan, p), append(c.y, math.Log(m.MedianStepSec()))
	}
	return c, nil
}

// gather groups the rows by site, in the layout.
func (c *calibration) gather() {
	at := map[site]int{}
	for i := range c.config {
		s := siteOf(&c.config[i])
		g, ok := at[s]
		if !ok {
			g = len(c.groups)
			at[s] = g
			c.groups = append(c.groups, rowGroup{of: s, framework: c.framework(s.framework), site: c.layout.site(s)})
		}
		c.groups[g].rows = append(c.groups[g].rows, i)
	}
}

// constantsOf returns the constants of one site's rows at x.
func (c *calibration) constantsOf(g *rowGroup, x []float64) (k constants) {
	c.constants(x, g.framework, g.site, &k)
	k.slow(math.Exp(c.pace[g.of]))
	return k
}

// predict writes the log time of every row at x.
func (c *calibration) predict(x, out []float64) {
	for g := range c.groups {
		k := c.constantsOf(&c.groups[g], x)
		for _, i := range c.groups[g].rows {
			out[i] = math.Log(c.seconds(i, &k))
		}
	}
}

// rowNoise is the error of a row that nothing explains, a standard deviation of
// log time; rows pull in full up to it.
const rowNoise = 0.06

// climb returns the mode under prior, rows weighing weight or, if nil, 1.
func (c *calibration) climb(ctx context.Context, prior bayes.Gaussian, weight []float64) (bayes.Mode, error) {
	noise := make([]float64, len(c.y))
	for i := range noise {
		noise[i] = rowNoise
	}
	p := bayes.Problem{Prior: prior, Predict: c.predict, Differentiate: c.differentiate, Y: c.y, Noise: noise, Weight: weight, Tail: 1, Stop: ctx.Err}
	return p.Climb()
}

// sourceRows is the weight of a source in training, in rows: more of them
// repeat each other's ways.
const sourceRows = 60

// TrainPrior fits the analytic model's constants to rows of any models,
// accelerators, frameworks and sources. Rows that are not usable or not covered
// are left out. The error wraps perfmodel.ErrTooFewPoints when none is left.
func TrainPrior(ctx context.Context, rows []spec.Measurement) (*Prior, error) {
	shaped, shapeless := byShape(rows)
	opaque, err := trainOpaque(shapeless)
	if err != nil {
		return nil, err
	}
	c, err := newCalibration(ctx, shaped)
	if err != nil {
		return nil, err
	}
	if len(c.rows) == 0 {
		return nil, fmt.Errorf("hybrid: none of %d rows can be trained on: %w", len(rows), perfmodel.ErrTooFewPoints)
	}
	none := untrained()
	c.add(c.rows)
	c.gather()
	sources := map[string]int{}
	for i := range c.rows {
		sources[c.rows[i].Source]++
	}
	weight := make([]float64, len(c.rows))
	for i := range weight {
		weight[i] = min(1, sourceRows/float64(sources[c.rows[i].Source]))
	}
	mode, err := c.climb(ctx, extend(&none.belief, &layout{}, &c.layout), weight)
	if err != nil {
		return nil, fmt.Errorf("hybrid: %w", err)
	}
	post, err := mode.Posterior()
	if err != nil {
		return nil, fmt.Errorf("hybrid: %w", err)
	}
	wide := c.widths(&post.Gaussian, -1, -1, "", launchCompiled)
	wide.Floor, wide.Scale = rowNoise, 1.645
	wide.Scale = c.scale(&post, &wide)
	t := Training{Rows: len(c.rows), Sources: sources, Hash: perfmodel.HashRows(c.rows)}
	points := make([]point, len(c.config))
	for i := range points {
		points[i] = pointOf(&c.config[i])
	}
	mem, err := memory.Calibrate(rows)
	if err != nil {
		return nil, fmt.Errorf("hybrid: %w", err)
	}
	return newPrior(post.Gaussian, c.frameworks, c.sites, wide, t, domainOf(points), mem, opaque), nil
}

// Without returns p as if it had not been trained on the jobs without a shape
// that drop names: what it learns of them it learns of each by itself. What
// physics learnt stays.
func (p *Prior) Without(drop func(spec.Key) bool) *Prior {
	out := *p
	out.opaque = p.opaque.without(func(model, site string) bool {
		accelerator, _, _ := strings.Cut(site, "/")
		return drop(spec.Key{Model: model, Accelerator: accelerator})
	})
	return &out
}

// scale returns the factor that puts nine in ten rows of sources left out as a
// whole inside their interval: the 90 % quantile of |residual|/sd of each
// source, and of those the upper quartile, so that a new source is covered and
// not only the average of the known ones.
func (c *calibration) scale(post *bayes.Posterior, w *widths) float64 {
	by := map[string][]int{}
	for i := range c.rows {
		by[c.rows[i].Source] = append(by[c.rows[i].Source], i)
	}
	var quantiles []float64
	for _, rows := range by {
		var z []float64
		for j, e := range post.LeftOutTogether(rows) {
			i := rows[j]
			p := c.plan[i]
			c.opened[i].machine.use(&base)
			parts := c.opened[i].parts(&p)
			z = append(z, math.Abs(e)/w.sd(&parts, parts.Total()))
		}
		slices.Sort(z)
		quantiles = append(quantiles, z[min(int(math.Ceil(0.9*float64(len(z)+1))), len(z))-1])
	}
	slices.Sort(quantiles)
	if len(quantiles) == 0 {
		return 1.645
	}
	return max(quantiles[(3*len(quantiles)-1)/4], 1.2)
}

// Predict implements perfmodel.Predictor.
func (p *Prior) Predict(ctx context.Context, c spec.Config) (spec.Prediction, error) {
	return p.unfitted().Predict(ctx, c)
}

// Memory returns the estimator of what plans keep on the devices of c, before a
// peak of the job has been seen.
func (p *Prior) Memory(c spec.Config) (memory.Estimator, error) { return p.mem.For(c) }

// unfitted is the model that has seen no row besides.
func (p *Prior) unfitted() *Hybrid { return p.hybrid(p.uncalibrated()) }

// Params returns the name, the factor on its value before training, and the
// standard deviation of its logarithm, for each of the constants.
func (p *Prior) Params() []perfmodel.Param {
	var out []perfmodel.Param
	for i := range params {
		out = append(out, perfmodel.Param{Value: math.Exp(p.belief.Mean[i]), Unit: fmt.Sprintf("x %s, +- %.0f %%", params[i].name, 100*math.Sqrt(p.belief.Cov.At(i, i)))})
	}
	return out
}
