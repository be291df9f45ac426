package family

import (
	"fmt"
	"math"

	"gonum.org/v1/gonum/mat"

	"github.com/pacer-ml/pacer/perfmodel"
	"github.com/pacer-ml/pacer/perfmodel/internal/bayes"
	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// opaqueData is what a form sees of rows, those it sees alike made one, with the
// mean of their log times.
type opaqueData struct {
	form *opaqueForm
	at   []opaquePoint
	y    []float64 // ln s
}

// newOpaqueData takes the usable rows that have the form; where[i] is the place
// of row i in the data, -1 for the others.
func newOpaqueData(form *opaqueForm, rows []spec.Measurement) (d *opaqueData, where []int) {
	d = &opaqueData{form: form}
	known := map[opaquePoint]int{}
	var count []float64
	for i := range rows {
		f, x := opaqueFormOf(&rows[i].Config)
		if f != form || !perfmodel.Usable(rows[i]) {
			where = append(where, -1)
			continue
		}
		k, ok := known[x]
		if !ok {
			k = len(d.at)
			known[x] = k
			d.at, d.y, count = append(d.at, x), append(d.y, 0), append(count, 0)
		}
		count[k]++
		d.y[k] += (math.Log(rows[i].MedianStepSec()) - d.y[k]) / count[k]
		where = append(where, k)
	}
	return d, where
}

func (d *opaqueData) predict(x, out []float64) {
	for i := range d.at {
		out[i], _ = d.form.logTime(&d.at[i], x, nil)
	}
}

func (d *opaqueData) differentiate(x, _ []float64, jac *mat.Dense) {
	for i := range d.at {
		d.form.logTime(&d.at[i], x, jac.RawRowView(i))
	}
}

// fit returns the constants given the rows, each of a weight.
func (d *opaqueData) fit(prior bayes.Gaussian, weight float64) (bayes.Posterior, error) {
	p := bayes.Problem{Prior: prior, Predict: d.predict, Differentiate: d.differentiate, Y: d.y, Tail: 1}
	for range d.y {
		p.Noise, p.Weight = append(p.Noise, opaqueNoise), append(p.Weight, weight)
	}
	return p.Fit()
}

// thin keeps at most n rows, evenly spread over those there are; kept[i] is
// where row i went, -1 for those left out.
func (d *opaqueData) thin(n int) (out *opaqueData, kept []int) {
	out = &opaqueData{form: d.form}
	for i := range d.at {
		if len(d.at) > n && (i+1)*n/len(d.at) == i*n/len(d.at) {
			kept = append(kept, -1)
			continue
		}
		kept = append(kept, len(out.at))
		out.at, out.y = append(out.at, d.at[i]), append(out.y, d.y[i])
	}
	return out, kept
}

// opaqueRows is how many rows a fit takes, evenly from more: their covariances
// are kept.
const opaqueRows = 600

// opaqueFitted predicts one model on one site.
type opaqueFitted struct {
	form  *opaqueForm
	prior bayes.Gaussian
	data  *opaqueData
	mode  []float64 // logarithms of the constants around which the form is linear
	rest  *opaqueResidual
	// left and leftSD are, for each row given, the error of its log time in a fit
	// without it and the standard deviation expected of that; NaN and 0 for rows
	// that were not fitted.
	left, leftSD []float64
}

// fit conditions what p believes of the model and site of like on rows of them.
// Rows that are not usable, or not of like's form, are left out; with none the
// result is the belief. The error wraps perfmodel.ErrNotCovered where like is of
// no form.
func (p *opaquePrior) fit(like spec.Config, rows []spec.Measurement) (*opaqueFitted, error) {
	form, _ := opaqueFormOf(&like)
	if form == nil {
		return nil, fmt.Errorf("hybrid: plan %s is more than data parallel: %w", like.Plan, perfmodel.ErrNotCovered)
	}
	effects, err := p.effects(form)
	if err != nil {
		return nil, err
	}
	all, where := newOpaqueData(form, rows)
	data, kept := all.thin(opaqueRows)
	f := &opaqueFitted{form: form, prior: effects.belief(like.Model.Name, opaqueSite(&like)), data: data}
	if !effects.knows(like.Model.Name) {
		form.start(data, f.prior.Mean)
	}
	post, err := data.fit(f.prior, 1)
	if err != nil {
		return nil, err
	}
	f.mode = post.Mean
	if f.rest, err = f.newResidual(); err != nil {
		return nil, err
	}
	f.leaveOut(rows, where, kept)
	return f, nil
}

// leaveOut works out left and leftSD.
func (f *opaqueFitted) leaveOut(rows []spec.Measurement, where, kept []int) {
	e, sd := f.rest.leftOut()
	for i, k := range where {
		left, leftSD := math.NaN(), 0.0
		if k >= 0 && kept[k] >= 0 {
			// Of rows seen alike, each is off by what it is from their mean besides.
			at := kept[k]
			left = e[at] + math.Log(rows[i].MedianStepSec()) - f.data.y[at]
			leftSD = sd[at]
		}
		f.left, f.leftSD = append(f.left, left), append(f.leftSD, leftSD)
	}
}

// covers reports whether predict answers for c.
func (f *opaqueFitted) covers(c *spec.Config) bool {
	form, _ := opaqueFormOf(c)
	return form == f.form
}

// predict returns the mean and standard deviation of the logarithm of c's step
// time in seconds. The error wraps perfmodel.ErrNotCovered for a plan that the
// fit is not about.
func (f *opaqueFitted) predict(c *spec.Config) (logSec, sd float64, err error) {
	form, x := opaqueFormOf(c)
	if form != f.form {
		return 0, 0, fmt.Errorf("hybrid: plan %s, fitted to %s: %w", c.Plan, f.form.name, perfmodel.ErrNotCovered)
	}
	logSec, sd = f.at(&x)
	if math.IsNaN(logSec+sd) || math.IsInf(logSec+sd, 0) {
		return 0, 0, fmt.Errorf("hybrid: %s has no finite step time: %w", c.Plan, perfmodel.ErrNotCovered)
	}
	return logSec, sd, nil
}
