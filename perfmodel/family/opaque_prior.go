package family

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"sync"

	"gonum.org/v1/gonum/mat"

	"github.com/pacer-ml/pacer/perfmodel"
	"github.com/pacer-ml/pacer/perfmodel/internal/bayes"
	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// opaquePrior is what is believed of jobs known only by their batch and
// placement before a row of them was seen: what the jobs it was trained on have
// in common, by model and by site. It is safe for concurrent use and not
// changed after training; JSON keeps all of it.
type opaquePrior struct {
	AllReduce []opaqueCell `json:"all_reduce,omitempty"`
	Servers   []opaqueCell `json:"servers,omitempty"`

	reduceOnce, serversOnce sync.Once
	reduce, servers         *opaqueEffects
	reduceErr, serversErr   error
}

// opaqueCell is what the rows of one model on one site said of the constants of
// a form, with no others in view.
type opaqueCell struct {
	Model string `json:"model"`
	Site  string `json:"site"`
	Rows  int    `json:"rows"`
	// Mean and Cov are of the logarithms; Cov is the lower triangle, by rows.
	Mean []float64 `json:"mean"`
	Cov  []float64 `json:"cov"`
}

// opaqueSite names a place where times have something in common whatever the
// model: a kind of device and what trains on it.
func opaqueSite(c *spec.Config) string { return c.Accelerator.Name + "/" + c.Framework }

const (
	opaqueNoise    = 0.1 // standard deviation of log time about a form
	opaqueCellRows = 80  // most weight of a cell in training, in rows
)

// trainOpaque learns from rows of any models, accelerators and frameworks. Rows
// that are not usable or of no form are left out; a prior of none believes what
// the forms say.
func trainOpaque(rows []spec.Measurement) (*opaquePrior, error) {
	type cellKey struct{ form, model, site string }
	groups := map[cellKey][]spec.Measurement{}
	for i := range rows {
		form, _ := opaqueFormOf(&rows[i].Config)
		if form == nil || !perfmodel.Usable(rows[i]) {
			continue
		}
		k := cellKey{form.name, rows[i].Config.Model.Name, opaqueSite(&rows[i].Config)}
		groups[k] = append(groups[k], rows[i])
	}
	keys := make([]cellKey, 0, len(groups))
	for k := range groups {
		keys = append(keys, k)
	}
	slices.SortFunc(keys, func(a, b cellKey) int {
		return cmp.Or(cmp.Compare(a.form, b.form), cmp.Compare(a.model, b.model), cmp.Compare(a.site, b.site))
	})
	out := &opaquePrior{}
	for _, k := range keys {
		form, _ := opaqueFormOf(&groups[k][0].Config)
		cell, err := newOpaqueCell(form, k.model, k.site, groups[k])
		if err != nil {
			return nil, fmt.Errorf("hybrid: %s on %s: %w", k.model, k.site, err)
		}
		if form == serversForm {
			out.Servers = append(out.Servers, cell)
		} else {
			out.AllReduce = append(out.AllReduce, cell)
		}
	}
	return out, nil
}

// without returns p as if the rows of models on sites that drop names had not
// been trained on: cells are fitted each by itself.
func (p *opaquePrior) without(drop func(model, site string) bool) *opaquePrior {
	keep := func(cells []opaqueCell) []opaqueCell {
		return slices.DeleteFunc(slices.Clone(cells), func(c opaqueCell) bool { return drop(c.Model, c.Site) })
	}
	return &opaquePrior{AllReduce: keep(p.AllReduce), Servers: keep(p.Servers)}
}

// newOpaqueCell fits form to the rows of one model on one site.
func newOpaqueCell(form *opaqueForm, model, site string, rows []spec.Measurement) (opaqueCell, error) {
	d, _ := newOpaqueData(form, rows)
	post, err := d.fit(form.alone(d), math.Min(1, opaqueCellRows/float64(len(d.y))))
	if err != nil {
		return opaqueCell{}, err
	}
	c := opaqueCell{Model: model, Site: site, Rows: len(d.y)}
	for i, m := range post.Mean {
		c.Mean = append(c.Mean, sixDigits(m))
		for j := range i + 1 {
			c.Cov = append(c.Cov, sixDigits(post.Cov.At(i, j)))
		}
	}
	return c, nil
}

// sixDigits keeps what a prior is kept with short.
func sixDigits(v float64) float64 { return math.Round(v*1e6) / 1e6 }

// alone is what is believed of the constants where no cell is known, but for the
// order of magnitude of d.
func (f *opaqueForm) alone(d *opaqueData) bayes.Gaussian {
	mean, sd := make([]float64, len(f.params)), make([]float64, len(f.params))
	for i, p := range f.params {
		mean[i], sd[i] = math.Log(p.median), math.Sqrt(p.model*p.model+p.site*p.site+p.own*p.own)
	}
	f.start(d, mean)
	return bayes.Independent(mean, sd)
}

// covariance returns the cell's, of n constants.
func (c *opaqueCell) covariance(n int) (*mat.SymDense, error) {
	if len(c.Mean) != n || len(c.Cov) != n*(n+1)/2 {
		return nil, fmt.Errorf("hybrid: prior of %s on %s: %d means and %d covariances, want %d and %d",
			c.Model, c.Site, len(c.Mean), len(c.Cov), n, n*(n+1)/2)
	}
	s, at := mat.NewSymDense(n, nil), 0
	for i := range n {
		for j := range i + 1 {
			s.SetSym(i, j, c.Cov[at])
			at++
		}
	}
	return s, nil
}

// effects returns what the cells of a form have in common, worked out once.
func (p *opaquePrior) effects(form *opaqueForm) (*opaqueEffects, error) {
	if form == serversForm {
		p.serversOnce.Do(func() { p.servers, p.serversErr = newOpaqueEffects(form, p.Servers) })
		return p.servers, p.serversErr
	}
	p.reduceOnce.Do(func() { p.reduce, p.reduceErr = newOpaqueEffects(form, p.AllReduce) })
	return p.reduce, p.reduceErr
}

// knows reports whether a row of c's model was trained on, on any site.
func (p *opaquePrior) knows(c *spec.Config) bool {
	form, _ := opaqueFormOf(c)
	if form == nil {
		return false
	}
	e, err := p.effects(form)
	return err == nil && e.knows(c.Model.Name)
}

// predict says what is believed of c's step time before a row of its cell is
// seen. The error wraps perfmodel.ErrNotCovered where no cell of the form was
// trained on.
func (p *opaquePrior) predict(c *spec.Config) (spec.Prediction, error) {
	form, _ := opaqueFormOf(c)
	if form == serversForm && len(p.Servers) == 0 || form == allReduceForm && len(p.AllReduce) == 0 {
		return spec.Prediction{}, fmt.Errorf("hybrid: nothing is known of jobs like %s: %w", c.Key(), perfmodel.ErrNotCovered)
	}
	f, err := p.fit(*c, nil)
	if err != nil {
		return spec.Prediction{}, err
	}
	return f.prediction(c)
}
