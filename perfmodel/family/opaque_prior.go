package family

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/mat"

	"github.com/pacer-ml/pacer/perfmodel"
	"github.com/pacer-ml/pacer/perfmodel/internal/bayes"
	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// opaqueCell is what the rows of one model on one site said of a form's
// constants.
type opaqueCell struct {
	Model string `json:"model"`
	Site  string `json:"site"` // accelerator and framework
	Rows  int    `json:"rows"`
	// Mean and Cov are of the logarithms, Cov its lower triangle by rows.
	Mean []float64 `json:"mean"`
	Cov  []float64 `json:"cov"`
}

// opaquePrior is what is believed of jobs known only by their batch and
// placement before a row of them was seen: what the jobs it was trained on have
// in common, by model and by site.
type opaquePrior struct {
	AllReduce []opaqueCell `json:"all_reduce,omitempty"`
	Servers   []opaqueCell `json:"servers,omitempty"`
}

// opaqueSite names a place where times have something in common whatever the
// model.
func opaqueSite(c *spec.Config) string { return c.Accelerator.Name + "/" + c.Framework }

// cells returns what is known of form's constants.
func (p *opaquePrior) cells(form *opaqueForm) *[]opaqueCell {
	if form == serversForm {
		return &p.Servers
	}
	return &p.AllReduce
}

// opaqueFormOf returns the form of c and what it sees of it, nil for none.
func opaqueFormOf(c *spec.Config) (*opaqueForm, opaquePoint) {
	x, ok := newOpaquePoint(c)
	switch {
	case !ok:
		return nil, x
	case x.servers > 0:
		return serversForm, x
	}
	return allReduceForm, x
}

const (
	opaqueNoise    = 0.1 // of a row about a form, standard deviation of log time
	opaqueCellRows = 80  // the weight of a cell in training, in rows
	opaqueCommonSD = 2   // of the mean over all models and sites about median
)

// trainOpaque learns from rows of any models, accelerators and frameworks. Rows
// that are not usable, or that are of another kind of job, are left out.
func trainOpaque(rows []spec.Measurement) (*opaquePrior, error) {
	out := &opaquePrior{}
	groups := perfmodel.GroupByKey(slices.DeleteFunc(slices.Clone(rows), func(m spec.Measurement) bool { return !perfmodel.Usable(m) }))
	keys := make([]spec.Key, 0, len(groups))
	for k := range groups {
		keys = append(keys, k)
	}
	slices.SortFunc(keys, perfmodel.CompareKeys)
	for _, k := range keys {
		byForm := map[[2]string][]spec.Measurement{}
		for _, m := range groups[k] {
			if form, _ := opaqueFormOf(&m.Config); form != nil {
				at := [2]string{form.name, opaqueSite(&m.Config)}
				byForm[at] = append(byForm[at], m)
			}
		}
		ats := make([][2]string, 0, len(byForm))
		for at := range byForm {
			ats = append(ats, at)
		}
		slices.SortFunc(ats, func(a, b [2]string) int { return cmp.Or(cmp.Compare(a[0], b[0]), cmp.Compare(a[1], b[1])) })
		for _, at := range ats {
			form, _ := opaqueFormOf(&byForm[at][0].Config)
			cell, err := newOpaqueCell(form, k.Model, at[1], byForm[at])
			if err != nil {
				return nil, fmt.Errorf("hybrid: %s: %w", k, err)
			}
			cells := out.cells(form)
			*cells = append(*cells, cell)
		}
	}
	return out, nil
}

// newOpaqueCell fits form to the rows of one model on one site, with no other
// in view.
func newOpaqueCell(form *opaqueForm, model, site string, rows []spec.Measurement) (opaqueCell, error) {
	d := newOpaqueData(form, rows)
	post, err := d.fit(form.alone(d), min(1, opaqueCellRows/float64(len(d.y))))
	if err != nil {
		return opaqueCell{}, err
	}
	c := opaqueCell{Model: model, Site: site, Rows: len(d.y), Mean: post.Mean}
	for i := range post.Mean {
		for j := range i + 1 {
			c.Cov = append(c.Cov, post.Cov.At(i, j))
		}
	}
	return c, nil
}

// alone is what is believed of a form's constants where nothing else is known
// but the order of magnitude of the rows.
func (f *opaqueForm) alone(d *opaqueData) bayes.Gaussian {
	mean, sd := make([]float64, len(f.params)), make([]float64, len(f.params))
	for i, p := range f.params {
		mean[i], sd[i] = math.Log(p.median), math.Sqrt(p.model*p.model+p.site*p.site+p.own*p.own)
	}
	f.start(d, mean)
	return bayes.Independent(mean, sd)
}

// sum returns the cell's covariance plus the diagonal of what is its own.
func (c *opaqueCell) cov(f *opaqueForm) *mat.SymDense {
	n := len(c.Mean)
	s, at := mat.NewSymDense(n, nil), 0
	for i := range n {
		for j := range i + 1 {
			s.SetSym(i, j, c.Cov[at])
			at++
		}
		s.SetSym(i, i, s.At(i, i)+f.params[i].own*f.params[i].own)
	}
	return s
}

// belief returns what cells say of the constants of a model on a site:
//
//	θ(model, site) = μ + m(model) + a(site) + own,   each Gaussian
//
// where every cell is a measurement of its θ with its covariance as error.
func (f *opaqueForm) belief(cells []opaqueCell, model, site string) (bayes.Gaussian, error) {
	e, err := f.effects(cells)
	if err != nil {
		return bayes.Gaussian{}, err
	}
	n := len(f.params)
	out := bayes.Gaussian{Mean: make([]float64, n), Cov: mat.NewSymDense(n, nil)}
	blocks := []int{0}
	if i := slices.Index(e.models, model); i >= 0 {
		blocks = append(blocks, n*(1+i))
	}
	if i := slices.Index(e.sites, site); i >= 0 {
		blocks = append(blocks, n*(1+len(e.models)+i))
	}
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
		p := f.params[i]
		v := p.own * p.own
		if !slices.Contains(e.models, model) {
			v += p.model * p.model
		}
		if !slices.Contains(e.sites, site) {
			v += p.site * p.site
		}
		out.Cov.SetSym(i, i, out.Cov.At(i, i)+v)
	}
	return out, nil
}

// opaqueEffects is the posterior of μ, then the effects of models, then of
// sites.
type opaqueEffects struct {
	models, sites []string
	mean          []float64
	cov           *mat.SymDense
}

func (f *opaqueForm) effects(cells []opaqueCell) (*opaqueEffects, error) {
	e := &opaqueEffects{}
	for _, c := range cells {
		if !slices.Contains(e.models, c.Model) {
			e.models = append(e.models, c.Model)
		}
		if !slices.Contains(e.sites, c.Site) {
			e.sites = append(e.sites, c.Site)
		}
	}
	n := len(f.params)
	size := n * (1 + len(e.models) + len(e.sites))
	precision, right := mat.NewSymDense(size, nil), mat.NewVecDense(size, nil)
	for i := range size {
		p, sd := f.params[i%n], opaqueCommonSD*1.0
		switch block := i / n; {
		case block > len(e.models):
			sd = p.site
		case block > 0:
			sd = p.model
		default:
			right.SetVec(i, math.Log(p.median)/(sd*sd))
		}
		precision.SetSym(i, i, 1/(sd*sd))
	}
	for _, c := range cells {
		blocks := []int{0, n * (1 + slices.Index(e.models, c.Model)), n * (1 + len(e.models) + slices.Index(e.sites, c.Site))}
		var chol mat.Cholesky
		w := mat.NewSymDense(n, nil)
		if !chol.Factorize(c.cov(f)) || chol.InverseTo(w) != nil {
			return nil, fmt.Errorf("hybrid: what is kept of %s on %s is no covariance", c.Model, c.Site)
		}
		for i := range n {
			wy := 0.0
			for j := range n {
				wy += w.At(i, j) * c.Mean[j]
			}
			for _, b := range blocks {
				right.SetVec(b+i, right.AtVec(b+i)+wy)
				for _, d := range blocks {
					for j := range n {
						if d+j <= b+i {
							precision.SetSym(b+i, d+j, precision.At(b+i, d+j)+w.At(i, j))
						}
					}
				}
			}
		}
	}
	var chol mat.Cholesky
	if !chol.Factorize(precision) {
		return nil, fmt.Errorf("hybrid: effects of %d cells have no posterior", len(cells))
	}
	e.cov = mat.NewSymDense(size, nil)
	if err := chol.InverseTo(e.cov); err != nil {
		return nil, fmt.Errorf("hybrid: %w", err)
	}
	var mean mat.VecDense
	if err := chol.SolveVecTo(&mean, right); err != nil {
		return nil, fmt.Errorf("hybrid: %w", err)
	}
	e.mean = mean.RawVector().Data
	return e, nil
}
