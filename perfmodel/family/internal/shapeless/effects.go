package shapeless

import (
	"context"
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/mat"

	"github.com/pacer-ml/pacer/perfmodel/internal/bayes"
)

// sharedEffects is the posterior, given cells, of the logarithms of a form's constants for any model at any
// site:
//
//	θ(model, site) = μ + m(model) + a(site) + own(model, site)
//
// All terms are Gaussian except own, which is Student's t with tail degrees of freedom, because some cells are
// outliers. Each cell is a measurement of its θ, with the cell's covariance as error. mean and cov are of μ,
// then m of each model, then a of each site.
//
// The spreads of m, a and own are fitted by expectation maximisation (Dempster, Laird and Rubin 1977). The
// form's spreads are their prior, with the weight of spreadCells cells. Student's t is a Gaussian with a weight
// per cell (Lange, Little and Taylor 1989).
type sharedEffects struct {
	form          *form
	cells         []cell
	covs          []*mat.SymDense // of the cells
	models, sites []string
	spread        []variances
	ownScale      [][]float64 // by cell and constant: variance of own relative to spread
	mean          []float64
	cov           *mat.SymDense
}

// variances are the variances of a constant's logarithm between models, between sites, and of the remainder.
type variances struct{ model, site, own float64 }

const (
	commonSD    = 2 // standard deviation of μ around the form's medians
	spreadCells = 6
	spreadSteps = 12
	tail        = 1
)

func newEffects(ctx context.Context, f *form, cells []cell) (*sharedEffects, error) {
	e := &sharedEffects{form: f, cells: cells}
	for _, p := range f.params {
		e.spread = append(e.spread, variances{p.model * p.model, p.site * p.site, p.own * p.own})
	}
	for i := range cells {
		c := &cells[i]
		cov, err := c.covariance(len(f.params))
		if err != nil {
			return nil, err
		}
		e.covs = append(e.covs, cov)
		e.ownScale = append(e.ownScale, slices.Repeat([]float64{1}, len(f.params)))
		if !slices.Contains(e.models, c.Model) {
			e.models = append(e.models, c.Model)
		}
		if !slices.Contains(e.sites, c.Site) {
			e.sites = append(e.sites, c.Site)
		}
	}
	for range spreadSteps - 1 {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if err := e.solve(); err != nil {
			return nil, err
		}
		if err := e.updateSpread(); err != nil {
			return nil, err
		}
	}
	return e, e.solve()
}

// blocks returns the index of the first effect of each known part: μ, the model, the site.
func (e *sharedEffects) blocks(model, site string) []int {
	n := len(e.form.params)
	out := []int{0}
	if i := slices.Index(e.models, model); i >= 0 {
		out = append(out, n*(1+i))
	}
	if i := slices.Index(e.sites, site); i >= 0 {
		out = append(out, n*(1+len(e.models)+i))
	}
	return out
}

func (e *sharedEffects) hasModel(model string) bool { return slices.Contains(e.models, model) }

// precision returns the inverse of the covariance of cell k around the sum of its effects.
func (e *sharedEffects) precision(k int) (*mat.SymDense, error) {
	n := len(e.form.params)
	s, w := mat.NewSymDense(n, nil), mat.NewSymDense(n, nil)
	s.CopySym(e.covs[k])
	for i := range n {
		s.SetSym(i, i, s.At(i, i)+e.spread[i].own*e.ownScale[k][i])
	}
	var chol mat.Cholesky
	if !chol.Factorize(s) || chol.InverseTo(w) != nil {
		return nil, fmt.Errorf("hybrid: prior of %s on %s: its covariance is not positive definite", e.cells[k].Model, e.cells[k].Site)
	}
	return w, nil
}

// solve computes the effects for the present spreads: the posterior of a linear model.
func (e *sharedEffects) solve() error {
	n := len(e.form.params)
	size := n * (1 + len(e.models) + len(e.sites))
	a, b := mat.NewSymDense(size, nil), mat.NewVecDense(size, nil)
	for i := range size {
		v := e.priorVariance(i)
		a.SetSym(i, i, 1/v)
		if i < n {
			b.SetVec(i, math.Log(e.form.params[i].median)/v)
		}
	}
	for k := range e.cells {
		w, err := e.precision(k)
		if err != nil {
			return err
		}
		e.add(a, b, w, &e.cells[k])
	}
	var chol mat.Cholesky
	var mean mat.VecDense
	e.cov = mat.NewSymDense(size, nil)
	if !chol.Factorize(a) || chol.InverseTo(e.cov) != nil || chol.SolveVecTo(&mean, b) != nil {
		return fmt.Errorf("hybrid: the effects of %d cells have no finite posterior", len(e.cells))
	}
	e.mean = mean.RawVector().Data
	return nil
}

// priorVariance returns the prior variance of effect i.
func (e *sharedEffects) priorVariance(i int) float64 {
	n := len(e.form.params)
	switch block := i / n; {
	case block == 0:
		return commonSD * commonSD
	case block <= len(e.models):
		return e.spread[i%n].model
	}
	return e.spread[i%n].site
}

// add adds cell c, with precision w, to the normal equations a·x = b.
func (e *sharedEffects) add(a *mat.SymDense, b *mat.VecDense, w *mat.SymDense, c *cell) {
	n := len(c.Mean)
	wy := mat.NewVecDense(n, nil)
	wy.MulVec(w, mat.NewVecDense(n, c.Mean))
	blocks := e.blocks(c.Model, c.Site)
	for _, at := range blocks {
		for i := range n {
			b.SetVec(at+i, b.AtVec(at+i)+wy.AtVec(i))
			for _, other := range blocks {
				for j := range n {
					if other+j <= at+i {
						a.SetSym(at+i, other+j, a.At(at+i, other+j)+w.At(i, j))
					}
				}
			}
		}
	}
}

// sum returns the distribution of the sum of the effects of blocks.
func (e *sharedEffects) sum(blocks []int) bayes.Gaussian {
	n := len(e.form.params)
	out := bayes.Gaussian{Mean: make([]float64, n), Cov: mat.NewSymDense(n, nil)}
	for i := range n {
		for _, b := range blocks {
			out.Mean[i] += e.mean[b+i]
		}
		for j := range i + 1 {
			v := 0.0
			for _, b := range blocks {
				for _, c := range blocks {
					v += e.cov.At(b+i, c+j)
				}
			}
			out.Cov.SetSym(i, j, v)
		}
	}
	return out
}

// updateSpread updates the spreads, and the weight of each cell, given the effects.
func (e *sharedEffects) updateSpread() error {
	n := len(e.form.params)
	sums := make([]variances, n)
	for k := range e.cells {
		own, err := e.ownSquares(k)
		if err != nil {
			return err
		}
		for i, v := range own {
			sums[i].own += v / e.ownScale[k][i]
			e.ownScale[k][i] = (tail + v/e.spread[i].own) / (tail + 1)
		}
	}
	square := func(at int) float64 { return e.mean[at]*e.mean[at] + e.cov.At(at, at) }
	for i, p := range e.form.params {
		for m := range e.models {
			sums[i].model += square(n*(1+m) + i)
		}
		for s := range e.sites {
			sums[i].site += square(n*(1+len(e.models)+s) + i)
		}
		e.spread[i] = variances{
			model: pooled(p.model, sums[i].model, len(e.models)),
			site:  pooled(p.site, sums[i].site, len(e.sites)),
			own:   pooled(p.own, sums[i].own, len(e.cells)),
		}
	}
	return nil
}

// pooled returns the variance of n values with a sum of squares, plus spreadCells values with standard
// deviation sd.
func pooled(sd, squares float64, n int) float64 {
	return (spreadCells*sd*sd + squares) / float64(spreadCells+n)
}

// ownSquares returns the expected squares of own of cell k. The mean of own is V·W·(θ - fixed), where V is its
// variance, W the cell's precision and fixed the sum of the effects. Its variance is V - V·W·V +
// V·W·Cov(fixed)·W·V.
func (e *sharedEffects) ownSquares(k int) ([]float64, error) {
	n := len(e.form.params)
	w, err := e.precision(k)
	if err != nil {
		return nil, err
	}
	c := &e.cells[k]
	fixed := e.sum(e.blocks(c.Model, c.Site))
	d := mat.NewVecDense(n, nil)
	for i := range n {
		d.SetVec(i, c.Mean[i]-fixed.Mean[i])
	}
	var wd mat.VecDense
	wd.MulVec(w, d)
	var wf, wfw mat.Dense
	wf.Mul(w, fixed.Cov)
	wfw.Mul(&wf, w)
	out := make([]float64, n)
	for i := range out {
		v := e.spread[i].own * e.ownScale[k][i]
		m := v * wd.AtVec(i)
		out[i] = m*m + v - v*v*w.At(i, i) + v*v*wfw.At(i, i)
	}
	return out, nil
}

// distribution returns the distribution of the constants of a model at a site.
func (e *sharedEffects) distribution(model, site string) bayes.Gaussian {
	out := e.sum(e.blocks(model, site))
	for i, s := range e.spread {
		v := s.own
		if !e.hasModel(model) {
			v += s.model
		}
		if !slices.Contains(e.sites, site) {
			v += s.site
		}
		out.Cov.SetSym(i, i, out.Cov.At(i, i)+v)
	}
	return out
}
