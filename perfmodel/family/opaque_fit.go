package family

import (
	"math"

	"gonum.org/v1/gonum/mat"

	"github.com/pacer-ml/pacer/perfmodel"
	"github.com/pacer-ml/pacer/perfmodel/internal/bayes"
	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// opaqueData is rows of one form, repeats merged.
type opaqueData struct {
	form *opaqueForm
	at   []opaquePoint
	y    []float64 // ln s
}

// newOpaqueData takes the rows that have the form.
func newOpaqueData(form *opaqueForm, rows []spec.Measurement) *opaqueData {
	d := &opaqueData{form: form}
	for _, m := range perfmodel.MergeRepeats(rows) {
		if f, x := opaqueFormOf(&m.Config); f == form {
			d.at, d.y = append(d.at, x), append(d.y, math.Log(m.MedianStepSec()))
		}
	}
	return d
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

// opaqueFitted predicts one model on one site.
type opaqueFitted struct {
	form  *opaqueForm
	prior bayes.Gaussian
	data  *opaqueData
	mode  []float64

	jac      *mat.Dense
	residual cholesky  // of the covariance of all rows about what the prior says
	weight   []float64 // its inverse times those deviations
	leftOut  []float64 // errors of each row, without it
}

// The kernel of what no form explains, linearised in log time. Its parts are
// of the work of a replica, by batch; of that of several, by placement; and of
// the step, by both.
const (
	opaqueBatchSD, opaqueBatchScale = 0.25, 3.0 // doublings of batch
	opaquePlaceSD, opaquePlaceScale = 0.35, 2.0 // doublings of devices and nodes
	opaqueStepSD                    = 0.1
	opaqueRowSD                     = 0.04
)

// opaqueSeen is a row as the kernel sees it.
type opaqueSeen struct {
	logBatch, logDevices, logNodes, logServers float64
	shares                                     [2]float64
}

func (f *opaqueFitted) seen(x *opaquePoint, grad []float64) (float64, opaqueSeen) {
	y, shares := f.form.logTime(x, f.mode, grad)
	return y, opaqueSeen{math.Log2(x.batch), math.Log2(x.devices), math.Log2(x.nodes), math.Log2(math.Max(x.servers, 1)), shares}
}

func opaqueKernel(a, b *opaqueSeen) float64 {
	byBatch := math.Abs(a.logBatch-b.logBatch) / opaqueBatchScale
	byPlace := (math.Abs(a.logDevices-b.logDevices) + math.Abs(a.logNodes-b.logNodes) + math.Abs(a.logServers-b.logServers)) / opaquePlaceScale
	return a.shares[0]*b.shares[0]*opaqueBatchSD*opaqueBatchSD*math.Exp(-byBatch) +
		a.shares[1]*b.shares[1]*opaquePlaceSD*opaquePlaceSD*math.Exp(-byPlace) +
		opaqueStepSD*opaqueStepSD*math.Exp(-byBatch-byPlace)
}

// fit conditions what p believes of key's model and site on rows of them.
func (p *opaquePrior) fit(rows []spec.Measurement, like spec.Config) (*opaqueFitted, error) {
	form, _ := opaqueFormOf(&like)
	belief, err := form.belief(*p.cells(form), like.Model.Name, opaqueSite(&like))
	if err != nil {
		return nil, err
	}
	f := &opaqueFitted{form: form, prior: belief, data: newOpaqueData(form, rows)}
	post, err := f.data.fit(belief, 1)
	if err != nil {
		return nil, err
	}
	f.mode = post.Mean
	f.condition()
	return f, nil
}

func (f *opaqueFitted) condition() {
	n, np := len(f.data.y), len(f.mode)
	if n == 0 {
		return
	}
	f.jac = mat.NewDense(n, np, nil)
	seen, dev := make([]opaqueSeen, n), make([]float64, n)
	for i := range n {
		g := f.jac.RawRowView(i)
		var y float64
		y, seen[i] = f.seen(&f.data.at[i], g)
		dev[i] = f.data.y[i] - y - f.toPrior(g)
	}
	var jv mat.Dense
	jv.Mul(f.jac, f.prior.Cov)
	rowVar := make([]float64, n)
	for i := range rowVar {
		rowVar[i] = opaqueRowSD * opaqueRowSD
	}
	for range 2 {
		f.residual, _ = newCholesky(n, func(i, j int) float64 {
			v := opaqueKernel(&seen[i], &seen[j])
			a, b := jv.RawRowView(i), f.jac.RawRowView(j)
			for k := range a {
				v += a[k] * b[k]
			}
			if i == j {
				v += rowVar[i]
			}
			return v
		})
		f.weight = append([]float64(nil), dev...)
		f.residual.forward(f.weight)
		f.residual.backward(f.weight)
		f.leaveOut(rowVar)
	}
}

func (f *opaqueFitted) leaveOut(rowVar []float64) {
	n := len(f.weight)
	f.leftOut = make([]float64, n)
	e := make([]float64, n)
	for i := range n {
		clear(e)
		e[i] = 1
		f.residual.forward(e)
		q := 0.0
		for _, v := range e {
			q += v * v
		}
		f.leftOut[i] = f.weight[i] / q
		z := math.Abs(f.leftOut[i]) * math.Sqrt(q) / 2.5
		if z > 1 {
			rowVar[i] *= z * z
		}
	}
}

// toPrior is the change of a prediction from the mode to the prior's mean.
func (f *opaqueFitted) toPrior(grad []float64) float64 {
	d := 0.0
	for k, g := range grad {
		d += g * (f.prior.Mean[k] - f.mode[k])
	}
	return d
}

func (f *opaqueFitted) predict(x *opaquePoint) (logSec, sd float64) {
	grad := make([]float64, len(f.mode))
	y, s := f.seen(x, grad)
	y += f.toPrior(grad)
	jv := make([]float64, len(grad))
	for i := range jv {
		for k, g := range grad {
			jv[i] += f.prior.Cov.At(i, k) * g
		}
	}
	v := opaqueKernel(&s, &s) + opaqueRowSD*opaqueRowSD
	for k, g := range grad {
		v += g * jv[k]
	}
	n := len(f.data.y)
	cov := make([]float64, n)
	for i := range n {
		_, si := f.seen(&f.data.at[i], nil)
		cov[i] = opaqueKernel(&s, &si)
		for k, g := range f.jac.RawRowView(i) {
			cov[i] += g * jv[k]
		}
		y += cov[i] * f.weight[i]
	}
	if n > 0 {
		f.residual.forward(cov)
	}
	for _, c := range cov {
		v -= c * c
	}
	return y, math.Sqrt(math.Max(v, 1e-8))
}
