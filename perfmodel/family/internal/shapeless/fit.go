package shapeless

import (
	"context"
	"fmt"
	"math"

	"gonum.org/v1/gonum/mat"

	"github.com/pacer-ml/pacer/perfmodel"
	"github.com/pacer-ml/pacer/perfmodel/internal/bayes"
	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/perfmodel/spec/stats"
)

// data is the points of rows with the logarithms of their times. Rows of one point are merged, with the mean of
// the logarithms.
type data struct {
	form *form
	at   []formPoint
	y    []float64 // ln s
}

// newData returns the data of the usable rows with the given form. where[i] is the index of row i in the data,
// -1 for rows without the form.
func newData(form *form, rows []spec.Measurement) (d *data, where []int) {
	d = &data{form: form}
	known := map[formPoint]int{}
	var count []float64
	for i := range rows {
		f, x := formOf(&rows[i].Config)
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

func (d *data) predict(x, out []float64) {
	for i := range d.at {
		out[i], _ = d.form.logTime(&d.at[i], x, nil)
	}
}

func (d *data) differentiate(x []float64, jac *mat.Dense) {
	for i := range d.at {
		d.form.logTime(&d.at[i], x, jac.RawRowView(i))
	}
}

// fit returns the posterior of the constants given the rows, each with the given weight.
func (d *data) fit(ctx context.Context, prior bayes.Gaussian, weight float64) (bayes.Posterior, error) {
	p := bayes.Regression{Prior: prior, Y: d.y, Tail: 1}
	p.Predict = func(x, out []float64) error {
		d.predict(x, out)
		return ctx.Err()
	}
	p.Differentiate = func(x, _ []float64, jac *mat.Dense) error {
		d.differentiate(x, jac)
		return ctx.Err()
	}
	for range d.y {
		p.Noise, p.Weight = append(p.Noise, formNoise), append(p.Weight, weight)
	}
	return p.Fit()
}

// thin keeps at most n evenly spaced rows. kept[i] is the new index of row i, -1 if it was dropped.
func (d *data) thin(n int) (out *data, kept []int) {
	out = &data{form: d.form}
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

// maxRows is the largest number of rows of a fit, because the fit keeps their covariance matrix. More rows are
// thinned.
const maxRows = 600

// Fitted predicts one model at one site. It is immutable and safe for concurrent use.
type Fitted struct {
	form  *form
	prior bayes.Gaussian
	data  *data
	mode  []float64 // logarithms of the constants at which the form is linearised
	post  *posterior
	// left and leftSD are, for each given row, the error of its log time in a fit without it, and the expected
	// standard deviation of that error; NaN and 0 for rows that were not fitted.
	left, leftSD []float64
}

// Fit conditions the prior of like's model and site on rows of both. It leaves out rows that are not usable or
// not of like's form. Without rows the result is the prior. The error wraps perfmodel.ErrNotCovered if like has
// no form, or is that of ctx.
func (p *Prior) Fit(ctx context.Context, like spec.Config, rows []spec.Measurement) (*Fitted, error) {
	form, _ := formOf(&like)
	if form == nil {
		return nil, fmt.Errorf("hybrid: plan %s is not purely data parallel: %w", like.Plan, perfmodel.ErrNotCovered)
	}
	effects, err := p.effects(ctx, form)
	if err != nil {
		return nil, err
	}
	all, where := newData(form, rows)
	data, kept := all.thin(maxRows)
	f := &Fitted{form: form, prior: effects.distribution(like.Model.Name, siteOf(&like)), data: data}
	if !effects.hasModel(like.Model.Name) {
		form.start(data, f.prior.Mean)
	}
	post, err := data.fit(ctx, f.prior, 1)
	if err != nil {
		return nil, err
	}
	f.mode = post.Mean
	if f.post, err = f.newPosterior(ctx); err != nil {
		return nil, err
	}
	return f, f.leaveOut(ctx, rows, where, kept)
}

// leaveOut computes left and leftSD. The error is that of ctx.
func (f *Fitted) leaveOut(ctx context.Context, rows []spec.Measurement, where, kept []int) error {
	e, sd, err := f.post.leftOut(ctx)
	if err != nil {
		return err
	}
	for i, k := range where {
		left, leftSD := math.NaN(), 0.0
		if k >= 0 && kept[k] >= 0 {
			// Rows of one point also differ from their mean.
			at := kept[k]
			left = e[at] + math.Log(rows[i].MedianStepSec()) - f.data.y[at]
			leftSD = sd[at]
		}
		f.left, f.leftSD = append(f.left, left), append(f.leftSD, leftSD)
	}
	return nil
}

// predict returns the mean and standard deviation of the logarithm of c's step time in seconds. The error wraps
// perfmodel.ErrNotCovered for a plan of another form.
func (f *Fitted) predict(c *spec.Config) (logSec, sd float64, err error) {
	form, x := formOf(c)
	if form != f.form {
		return 0, 0, fmt.Errorf("hybrid: plan %s does not match the fitted form %s: %w", c.Plan, f.form.name, perfmodel.ErrNotCovered)
	}
	logSec, sd = f.at(&x)
	if math.IsNaN(logSec+sd) || math.IsInf(logSec+sd, 0) {
		return 0, 0, fmt.Errorf("hybrid: %s has no finite step time: %w", c.Plan, perfmodel.ErrNotCovered)
	}
	return logSec, sd, nil
}

// Prediction returns predict as a throughput with its interval. Errors wrap perfmodel.ErrNotCovered.
func (f *Fitted) Prediction(c *spec.Config) (spec.Prediction, error) {
	mean, sd, err := f.predict(c)
	if err != nil {
		return spec.Prediction{}, err
	}
	thr, spread := float64(c.Plan.GlobalBatch())*math.Exp(-mean), math.Exp(stats.Normal90*sd)
	out := spec.Prediction{Throughput: thr, Lo: thr / spread, Hi: thr * spread, By: "hybrid"}
	if !(out.Lo > 0) || math.IsInf(out.Hi, 0) {
		return spec.Prediction{}, fmt.Errorf("hybrid: %s has no finite step time: %w", c.Plan, perfmodel.ErrNotCovered)
	}
	return out, nil
}
