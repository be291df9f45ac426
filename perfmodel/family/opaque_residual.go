package family

import (
	"math"

	"gonum.org/v1/gonum/mat"
)

// opaqueKernel is the covariance of what no form explains, as a process of the
// logarithm of time. Its parts are of the work of a replica, by batch, and of
// what replicas do together, by placement, each times the share of the step it is
// responsible for; and of the whole step, by both. All fall exponentially with
// distance.
type opaqueKernel struct {
	batchSD, batchScale float64 // scale in doublings of batch
	placeSD, placeScale float64 // in doublings of devices, nodes and servers
	stepSD              float64
	rowSD               float64 // what is a row's alone
	serversSD           float64 // of each number of parameter servers above one
}

// opaqueSeen is a point as the kernel sees it.
type opaqueSeen struct {
	logBatch, logDevices, logNodes, logServers float64 // base 2
	shares                                     [2]float64
}

func (k *opaqueKernel) covariance(a, b *opaqueSeen) float64 {
	batch := math.Exp(-math.Abs(a.logBatch-b.logBatch) / k.batchScale)
	steps := math.Abs(a.logDevices-b.logDevices) + math.Abs(a.logNodes-b.logNodes) + math.Abs(a.logServers-b.logServers)
	place := math.Exp(-steps / k.placeScale)
	together := k.placeSD * k.placeSD * place
	if a.logServers == b.logServers && a.logServers > 0 {
		together += k.serversSD * k.serversSD
	}
	return a.shares[0]*b.shares[0]*k.batchSD*k.batchSD*batch + a.shares[1]*b.shares[1]*together + k.stepSD*k.stepSD*batch*place
}

// opaqueResidual is the posterior of constants and kernel together, the form
// being linear around the mode: rows are Gaussian about what the prior's mean
// predicts, with covariance J·Σ·Jᵀ + kernel + noise, J the derivatives by the
// constants, Σ their prior covariance.
type opaqueResidual struct {
	kernel *opaqueKernel
	seen   []opaqueSeen
	jac    *mat.Dense // J
	spread *mat.Dense // J·Σ
	about  []float64  // rows minus what the prior's mean predicts
	noise  []float64  // variance of each row alone
	factor cholesky
	weight []float64 // inverse covariance times about
}

// Rows further from what the others say of them than opaqueWild standard
// deviations are given the noise that makes them so far, in opaqueRobust rounds.
const (
	opaqueWild   = 2.5
	opaqueRobust = 2
)

func (f *opaqueFitted) newResidual() (*opaqueResidual, error) {
	n := len(f.data.y)
	r := &opaqueResidual{kernel: &f.form.kernel}
	if n == 0 {
		return r, nil
	}
	r.jac, r.spread = mat.NewDense(n, len(f.mode), nil), &mat.Dense{}
	r.seen, r.about, r.noise = make([]opaqueSeen, n), make([]float64, n), make([]float64, n)
	for i := range n {
		g := r.jac.RawRowView(i)
		var y float64
		y, r.seen[i] = f.see(&f.data.at[i], g)
		r.about[i], r.noise[i] = f.data.y[i]-y, r.kernel.rowSD*r.kernel.rowSD
	}
	r.spread.Mul(r.jac, f.prior.Cov)
	for round := range opaqueRobust {
		if err := r.solve(); err != nil {
			return nil, err
		}
		if round < opaqueRobust-1 {
			r.widen()
		}
	}
	return r, nil
}

// see returns the form's prediction at the prior's mean, linear around the mode,
// and writes its derivatives by the constants to grad, zeros when it is called.
func (f *opaqueFitted) see(x *opaquePoint, grad []float64) (float64, opaqueSeen) {
	y, shares := f.form.logTime(x, f.mode, grad)
	for k, g := range grad {
		y += g * (f.prior.Mean[k] - f.mode[k])
	}
	return y, opaqueSeen{logBatch: math.Log2(x.batch), logDevices: math.Log2(x.devices), logNodes: math.Log2(x.nodes),
		logServers: math.Log2(math.Max(x.servers, 1)), shares: shares}
}

func (r *opaqueResidual) solve() error {
	n := len(r.about)
	var ok bool
	r.factor, ok = newCholesky(n, func(i, j int) float64 {
		v := r.kernel.covariance(&r.seen[i], &r.seen[j]) + dot(r.spread.RawRowView(i), r.jac.RawRowView(j))
		if i == j {
			v += r.noise[i]
		}
		return v
	})
	if !ok {
		return errNotFinite
	}
	r.weight = append(r.weight[:0], r.about...)
	r.factor.forward(r.weight)
	r.factor.backward(r.weight)
	return nil
}

// leftOut returns, for each row, what it is above the prediction of all others,
// and the standard deviation expected of that (Rasmussen and Williams 2006,
// section 5.4.2).
func (r *opaqueResidual) leftOut() (e, sd []float64) {
	n := len(r.weight)
	e, sd = make([]float64, n), make([]float64, n)
	column := make([]float64, n)
	for i := range n {
		clear(column)
		column[i] = 1
		r.factor.forward(column)
		q := dot(column, column) // of the inverse's diagonal
		e[i], sd[i] = r.weight[i]/q, 1/math.Sqrt(q)
	}
	return e, sd
}

// widen gives noise to wild rows.
func (r *opaqueResidual) widen() {
	e, sd := r.leftOut()
	for i := range e {
		if z := math.Abs(e[i]) / sd[i] / opaqueWild; z > 1 {
			r.noise[i] += sd[i] * sd[i] * (z*z - 1)
		}
	}
}

// at returns the mean and standard deviation of the log time of a row at x.
func (f *opaqueFitted) at(x *opaquePoint) (mean, sd float64) {
	grad, spread := make([]float64, len(f.mode)), make([]float64, len(f.mode))
	mean, s := f.see(x, grad)
	for i := range spread {
		for k, g := range grad {
			spread[i] += f.prior.Cov.At(i, k) * g
		}
	}
	r := f.rest
	v := r.kernel.covariance(&s, &s) + r.kernel.rowSD*r.kernel.rowSD + dot(grad, spread)
	cov := make([]float64, len(r.weight))
	for i := range cov {
		cov[i] = r.kernel.covariance(&s, &r.seen[i]) + dot(r.jac.RawRowView(i), spread)
	}
	mean += dot(cov, r.weight)
	if len(cov) > 0 {
		r.factor.forward(cov)
	}
	return mean, math.Sqrt(math.Max(v-dot(cov, cov), 1e-8))
}
