package shapeless

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
	"sync"
	"sync/atomic"

	"gonum.org/v1/gonum/mat"

	"github.com/pacer-ml/pacer/perfmodel"
	"github.com/pacer-ml/pacer/perfmodel/internal/bayes"
	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// Prior is the distribution of the constants of a job without rows, by its model and site, trained on other
// jobs. It is immutable after training and safe for concurrent use. Its JSON form is complete.
type Prior struct {
	AllReduce []cell `json:"all_reduce,omitempty"`
	Servers   []cell `json:"servers,omitempty"`

	reduce, servers lazyEffects
}

// cell is the fit of a form's constants to the rows of one model at one site.
type cell struct {
	Model string `json:"model"`
	Site  string `json:"site"`
	Rows  int    `json:"rows"`
	// Mean and Cov of the logarithms of the constants; Cov is the lower triangle, by rows.
	Mean []float64 `json:"mean"`
	Cov  []float64 `json:"cov"`
}

// siteOf returns the name of c's site: a type of device with a training stack.
func siteOf(c *spec.Config) string { return c.Accelerator.Name + "/" + c.Framework }

const (
	formNoise   = 0.1 // standard deviation of log time around a form
	maxCellRows = 80  // largest weight of a cell in training, in rows
)

// Train fits a Prior to rows of any models, accelerators and frameworks. It leaves out rows that are not usable
// or have no form. Without rows the prior is that of the forms. The error is that of ctx, or wraps
// bayes.ErrNotFinite.
func Train(ctx context.Context, rows []spec.Measurement) (*Prior, error) {
	type cellKey struct{ form, model, site string }
	groups := map[cellKey][]spec.Measurement{}
	for i := range rows {
		form, _ := formOf(&rows[i].Config)
		if form == nil || !perfmodel.Usable(rows[i]) {
			continue
		}
		k := cellKey{form.name, rows[i].Config.Model.Name, siteOf(&rows[i].Config)}
		groups[k] = append(groups[k], rows[i])
	}
	keys := slices.SortedFunc(maps.Keys(groups), func(a, b cellKey) int {
		return cmp.Or(cmp.Compare(a.form, b.form), cmp.Compare(a.model, b.model), cmp.Compare(a.site, b.site))
	})
	out := &Prior{}
	for _, k := range keys {
		form, _ := formOf(&groups[k][0].Config)
		cell, err := newCell(ctx, form, k.model, k.site, groups[k])
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

// Without returns p without the cells for which drop returns true. Cells are fitted independently, so this
// equals training without their rows.
func (p *Prior) Without(drop func(model, site string) bool) *Prior {
	keep := func(cells []cell) []cell {
		return slices.DeleteFunc(slices.Clone(cells), func(c cell) bool { return drop(c.Model, c.Site) })
	}
	return &Prior{AllReduce: keep(p.AllReduce), Servers: keep(p.Servers)}
}

// newCell fits form to the rows of one model at one site.
func newCell(ctx context.Context, form *form, model, site string, rows []spec.Measurement) (cell, error) {
	d, _ := newData(form, rows)
	post, err := d.fit(ctx, form.priorAlone(d), math.Min(1, maxCellRows/float64(len(d.y))))
	if err != nil {
		return cell{}, err
	}
	c := cell{Model: model, Site: site, Rows: len(d.y)}
	for i, m := range post.Mean {
		c.Mean = append(c.Mean, sixDigits(m))
		for j := range i + 1 {
			c.Cov = append(c.Cov, sixDigits(post.Cov.At(i, j)))
		}
	}
	return c, nil
}

// sixDigits rounds v for the stored prior.
func sixDigits(v float64) float64 { return math.Round(v*1e6) / 1e6 }

// priorAlone returns the prior of the constants without cells, at the order of magnitude of d.
func (f *form) priorAlone(d *data) bayes.Gaussian {
	mean, sd := make([]float64, len(f.params)), make([]float64, len(f.params))
	for i, p := range f.params {
		mean[i], sd[i] = math.Log(p.median), math.Sqrt(p.model*p.model+p.site*p.site+p.own*p.own)
	}
	f.start(d, mean)
	return bayes.Independent(mean, sd)
}

// covariance returns the covariance of the cell's n constants.
func (c *cell) covariance(n int) (*mat.SymDense, error) {
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

// lazyEffects is the sharedEffects of a form's cells, computed on first use. It is safe for concurrent use.
type lazyEffects struct {
	mu   sync.Mutex
	done atomic.Pointer[sharedEffects]
}

// of returns the effects of cells. It does not keep errors, such as that of ctx.
func (l *lazyEffects) of(ctx context.Context, f *form, cells []cell) (*sharedEffects, error) {
	if e := l.done.Load(); e != nil {
		return e, nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if e := l.done.Load(); e != nil {
		return e, nil
	}
	e, err := newEffects(ctx, f, cells)
	if err != nil {
		return nil, err
	}
	l.done.Store(e)
	return e, nil
}

// effects returns the shared effects of a form's cells.
func (p *Prior) effects(ctx context.Context, form *form) (*sharedEffects, error) {
	if form == serversForm {
		return p.servers.of(ctx, form, p.Servers)
	}
	return p.reduce.of(ctx, form, p.AllReduce)
}

// HasModel reports whether p was trained on rows of c's model, at any site. The error is that of ctx, or
// reports cells without a posterior.
func (p *Prior) HasModel(ctx context.Context, c *spec.Config) (bool, error) {
	form, _ := formOf(c)
	if form == nil {
		return false, nil
	}
	e, err := p.effects(ctx, form)
	return err == nil && e.hasModel(c.Model.Name), err
}

// Predict predicts c without rows of it. The error wraps perfmodel.ErrNotCovered if p has no cell of c's form.
func (p *Prior) Predict(ctx context.Context, c *spec.Config) (spec.Prediction, error) {
	form, _ := formOf(c)
	if form == serversForm && len(p.Servers) == 0 || form == allReduceForm && len(p.AllReduce) == 0 {
		return spec.Prediction{}, fmt.Errorf("hybrid: no trained prior for the kind of job of %s: %w", c.Key(), perfmodel.ErrNotCovered)
	}
	f, err := p.Fit(ctx, *c, nil)
	if err != nil {
		return spec.Prediction{}, err
	}
	return f.Prediction(c)
}
