package analytic

import (
	"cmp"
	"context"
	"errors"
	"math"
	"slices"

	"gonum.org/v1/gonum/mat"

	"github.com/pacer-ml/pacer/perfmodel"
	"github.com/pacer-ml/pacer/perfmodel/internal/bayes"
	"github.com/pacer-ml/pacer/perfmodel/memory"
	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/perfmodel/spec/stats"
)

// Fit returns the posterior of the constants under prior; sd is the standard deviation of what the constants leave of a
// row. Errors are those of ctx or of package bayes.
func (c *Calibration) Fit(ctx context.Context, prior bayes.Gaussian, sd float64) (bayes.Posterior, error) {
	mode, err := c.findMode(ctx, prior, nil, math.Hypot(rowNoise, sd))
	if err != nil {
		return bayes.Posterior{}, err
	}
	return mode.Posterior()
}

// Try adds a configuration without a step time. It reports false if the analytic model does not cover it.
func (c *Calibration) Try(of *spec.Config) bool {
	var pr Prepared
	p := of.Plan.Normal()
	if unknown.Open(of, "", &pr) != nil {
		return false
	}
	if _, err := pr.Estimate(&p); err != nil {
		return false
	}
	c.add(&spec.Measurement{Config: *of}, &pr, &p, 0)
	return true
}

// add adds a row with its plan, opened.
func (c *Calibration) add(m *spec.Measurement, pr *Prepared, p *spec.Plan, y float64) {
	own := pr.owned(p)
	pr.own = &own
	c.Rows, c.opened, c.plan, c.Y = append(c.Rows, *m), append(c.opened, *pr), append(c.plan, *p), append(c.Y, y)
}

// Calibration is a fit of the constants to rows. It is not safe for concurrent use.
type Calibration struct {
	Layout
	Rows   []spec.Measurement // rows that the analytic model covers
	plan   []spec.Plan
	opened []Prepared // one per row; the fit sets their constants
	groups []rowGroup
	Y      []float64
	Noise  []float64 // additional standard deviation of each row; nil = none
}

// rowGroup is the set of rows of one site.
type rowGroup struct {
	of              Site
	framework, site int // index of their effects in the parameters
	rows            []int
	slopes          *slopes // nil before the first derivatives
}

// unknown is the model without training. Fits set the constants of rows that it opened.
var unknown = &Physics{any: &base, Memory: memory.Shipped()}

// NewCalibration returns a calibration of the usable rows that the analytic model covers. The error is that of
// ctx, or of a row that cannot be read.
func NewCalibration(ctx context.Context, rows []spec.Measurement) (*Calibration, error) {
	n := len(rows)
	c := &Calibration{Rows: make([]spec.Measurement, 0, n), plan: make([]spec.Plan, 0, n),
		opened: make([]Prepared, 0, n), Y: make([]float64, 0, n)}
	for _, m := range rows {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if !perfmodel.UsableOrAlone(m) {
			continue
		}
		var pr Prepared
		p := m.Config.Plan.Normal()
		err := unknown.Open(&m.Config, "", &pr)
		if err == nil {
			_, err = pr.Estimate(&p)
		}
		if errors.Is(err, perfmodel.ErrNotCovered) {
			continue
		}
		if err != nil {
			return nil, err
		}
		c.add(&m, &pr, &p, math.Log(m.MedianStepSec()))
		if sd := m.StepNoise(); sd > 0 {
			c.Noise = append(c.Noise, make([]float64, len(c.Rows)-len(c.Noise))...)
			c.Noise[len(c.Rows)-1] = sd
		}
	}
	if c.Noise != nil {
		c.Noise = append(c.Noise, make([]float64, len(c.Rows)-len(c.Noise))...)
	}
	return c, nil
}

// gather groups the rows by site, using the layout.
func (c *Calibration) gather() {
	at := map[Site]int{}
	for i := range c.Rows {
		s := SiteOf(&c.Rows[i].Config)
		g, ok := at[s]
		if !ok {
			g = len(c.groups)
			at[s] = g
			c.groups = append(c.groups, rowGroup{of: s, framework: c.FrameworkAt(s.Framework), site: c.Layout.SiteAt(s)})
		}
		c.groups[g].rows = append(c.groups[g].rows, i)
	}
}

// constantsOf returns the constants of one site's rows at x.
func (c *Calibration) constantsOf(g *rowGroup, x []float64) (k constants) {
	c.constants(x, g.framework, g.site, &k)
	return k
}

// rowsPerCheck is the number of rows between checks of the context: a row takes microseconds, with derivatives
// up to a millisecond.
const rowsPerCheck = 64

// Predict writes the logarithm of every row's step time at parameters x to out. The error is that of ctx.
func (c *Calibration) Predict(ctx context.Context, x, out []float64) error {
	done := 0
	for g := range c.groups {
		k := c.constantsOf(&c.groups[g], x)
		for _, i := range c.groups[g].rows {
			if done++; done%rowsPerCheck == 0 {
				if err := ctx.Err(); err != nil {
					return err
				}
			}
			out[i] = math.Log(c.seconds(i, &k))
		}
	}
	return ctx.Err()
}

// rowNoise is the standard deviation of a row's unexplained error, in log time. Errors up to it have full
// weight.
const rowNoise = 0.06

// findMode returns the mode of the posterior under prior, with the given weights of rows; nil = 1. sd is the standard
// deviation of a row's unexplained error.
func (c *Calibration) findMode(ctx context.Context, prior bayes.Gaussian, weight []float64, sd float64) (bayes.Mode, error) {
	noise := make([]float64, len(c.Y))
	for i := range noise {
		noise[i] = sd
		if c.Noise != nil {
			noise[i] = math.Hypot(sd, c.Noise[i])
		}
	}
	p := bayes.Regression{Prior: prior, Y: c.Y, Noise: noise, Weight: weight, Tail: 1}
	p.Predict = func(x, out []float64) error { return c.Predict(ctx, x, out) }
	p.Differentiate = func(x, _ []float64, jac *mat.Dense) error { return c.Differentiate(ctx, x, jac) }
	return p.FindMode()
}

// scales returns the scale for networks without and with routed experts. The latter is no less than that of all rows, since
// few sources have such experts.
func (c *Calibration) scales(left []LeftOut, w *Widths) (dense, routed float64) {
	every := func(*spec.Model) bool { return true }
	experts := func(m *spec.Model) bool { return m.Experts > 0 }
	dense = c.scale(left, w, func(m *spec.Model) bool { return !experts(m) })
	return dense, max(c.scale(left, w, every), c.scale(left, w, experts))
}

// scale returns the factor on intervals with which a row of some models falls inside with a probability of 90 % if its whole
// source is left out. left has the errors then. In the 90 % quantile of |residual|/sd all rows of a source together weigh as
// much as the source of the next row, see hierarchicalQuantile.
func (c *Calibration) scale(left []LeftOut, w *Widths, of func(*spec.Model) bool) float64 {
	var sources [][]float64
	for _, l := range left {
		var z []float64
		for j, e := range l.Errors {
			i := l.Rows[j]
			if !of(&c.Rows[i].Config.Model) {
				continue
			}
			p := c.plan[i]
			est := c.opened[i].at(&p, &base)
			load := LoadOf(&est.Parts, math.Exp(est.Log))
			sd := math.Hypot(math.Sqrt(w.Variance(&load)), est.Between)
			if c.Noise != nil {
				sd = math.Hypot(sd, c.Noise[i])
			}
			z = append(z, math.Abs(e)/sd)
		}
		if len(z) > 0 {
			sources = append(sources, z)
		}
	}
	if len(sources) == 0 {
		return stats.Normal90
	}
	return max(hierarchicalQuantile(sources, 0.9), 1.2)
}

// hierarchicalQuantile returns the value below which a value of a further group is with a probability of p, if groups are
// exchangeable (Lee, Barber and Willett 2023, "Distribution-free inference with hierarchical data", section 3). Too few groups
// have no such value: then it is the largest of the same quantiles of each group (Lei et al. 2018, section 2.2).
func hierarchicalQuantile(groups [][]float64, p float64) float64 {
	type weighted struct{ value, weight float64 }
	var all []weighted
	largest := 0.0
	for _, g := range groups {
		slices.Sort(g)
		n := len(g)
		largest = max(largest, g[min(int(math.Ceil(p*float64(n+1))), n)-1])
		for _, v := range g {
			all = append(all, weighted{v, 1 / float64(n)})
		}
	}
	slices.SortFunc(all, func(a, b weighted) int { return cmp.Compare(a.value, b.value) })
	rest := p * float64(len(groups)+1)
	for _, a := range all {
		if rest -= a.weight; rest <= 1e-9 {
			return a.value
		}
	}
	return largest
}

// Arrange lays out the effects of the frameworks and sites of the rows and of others, and groups the rows by
// site.
func (c *Calibration) Arrange(others ...spec.Measurement) {
	c.Add(c.Rows)
	c.Add(others)
	c.gather()
}

// ArrangeAs uses the layout of other, which must contain all sites of the rows, and groups the rows by site.
func (c *Calibration) ArrangeAs(other *Calibration) {
	c.Layout = other.Layout
	c.gather()
}

// SiteWidths returns the uncertainty of the effects at each site under the distribution g.
func (c *Calibration) SiteWidths(g *bayes.Gaussian) map[Site]Widths {
	out := map[Site]Widths{}
	for i := range c.groups {
		of := &c.groups[i]
		m := &c.opened[of.rows[0]].machine
		out[of.of] = c.widths(g, of.framework, of.site, generations[m.sheet.generation].arch, m.stack.launch)
	}
	return out
}

// Loads returns the load of every row at parameters x, and the index of its site in the layout.
func (c *Calibration) Loads(x []float64) (loads []Load, sites []int) {
	loads, sites = make([]Load, len(c.Rows)), make([]int, len(c.Rows))
	for g := range c.groups {
		of := &c.groups[g]
		k := c.constantsOf(of, x)
		for _, i := range of.rows {
			p := c.plan[i]
			e := c.opened[i].at(&p, &k)
			loads[i], sites[i] = LoadOf(&e.Parts, math.Exp(e.Log)), slices.Index(c.Sites, of.of)
		}
	}
	return loads, sites
}

// HalfWidths returns half the width of the 90 % interval of every row under the prior p, with its noise. Weigh comes later.
func (c *Calibration) HalfWidths(p *Prior) []float64 {
	out, x := make([]float64, len(c.Rows)), p.DistributionOf(&c.Layout).Mean
	for g := range c.groups {
		k := c.constantsOf(&c.groups[g], x)
		for _, i := range c.groups[g].rows {
			plan := c.plan[i]
			e := c.opened[i].at(&plan, &k)
			routed := c.Rows[i].Config.Model.Experts > 0
			out[i] = math.Hypot(p.Widths.HalfWidth(routed, &e.Parts, math.Exp(e.Log)), stats.Normal90*e.Between)
			if c.Noise != nil {
				out[i] = math.Hypot(out[i], p.Widths.ScaleOf(routed)*c.Noise[i])
			}
		}
	}
	return out
}
