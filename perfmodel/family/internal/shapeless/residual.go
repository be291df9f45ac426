package shapeless

import (
	"context"
	"math"

	"gonum.org/v1/gonum/mat"

	"github.com/pacer-ml/pacer/perfmodel"
	"github.com/pacer-ml/pacer/perfmodel/internal/design"
	"github.com/pacer-ml/pacer/perfmodel/internal/gp"
	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// formKernel is the covariance of the residual of log time. It has three parts: one for the work of a single
// replica, by batch; one for the work of replicas together, by placement, each multiplied by its shares of the
// steps; and one for the whole step, by both. All decrease exponentially with distance.
type formKernel struct {
	batchSD, batchScale float64 // scale in doublings of batch
	placeSD, placeScale float64 // in doublings of devices, nodes and servers
	stepSD              float64
	rowSD               float64 // independent, for each row
	serversSD           float64 // for each number of parameter servers above one
}

// features holds the values of a point that the kernel uses.
type features struct {
	logBatch, logDevices, logNodes, logServers float64 // base 2
	shares                                     [2]float64
}

func (k *formKernel) covariance(a, b *features) float64 {
	batch := math.Exp(-math.Abs(a.logBatch-b.logBatch) / k.batchScale)
	steps := math.Abs(a.logDevices-b.logDevices) + math.Abs(a.logNodes-b.logNodes) + math.Abs(a.logServers-b.logServers)
	place := math.Exp(-steps / k.placeScale)
	together := k.placeSD * k.placeSD * place
	if a.logServers == b.logServers && a.logServers > 0 {
		together += k.serversSD * k.serversSD
	}
	return a.shares[0]*b.shares[0]*k.batchSD*k.batchSD*batch + a.shares[1]*b.shares[1]*together + k.stepSD*k.stepSD*batch*place
}

// posterior is the joint posterior of constants and residual, with the form linearised at the mode. Rows are
// Gaussian around the prediction at the prior's mean, with covariance J·Σ·Jᵀ + kernel + noise, where J is the
// matrix of derivatives by the constants and Σ their prior covariance.
type posterior struct {
	kernel   *formKernel
	seen     []features
	jac      *mat.Dense // J
	spread   *mat.Dense // J·Σ
	centered []float64  // rows minus the prediction at the prior's mean
	noise    []float64  // independent variance of each row
	factor   gp.Cholesky
	weight   []float64 // inverse covariance times about
}

// Rows further than outlierSDs standard deviations from their left-out prediction get additional noise that
// explains the distance, in outlierRounds rounds.
const (
	outlierSDs    = 2.5
	outlierRounds = 2
)

func (f *Fitted) newPosterior(ctx context.Context) (*posterior, error) {
	n := len(f.data.y)
	r := &posterior{kernel: &f.form.kernel}
	if n == 0 {
		return r, nil
	}
	r.jac, r.spread = mat.NewDense(n, len(f.mode), nil), &mat.Dense{}
	r.seen, r.centered, r.noise = make([]features, n), make([]float64, n), make([]float64, n)
	for i := range n {
		g := r.jac.RawRowView(i)
		var y float64
		y, r.seen[i] = f.linearized(&f.data.at[i], g)
		r.centered[i], r.noise[i] = f.data.y[i]-y, r.kernel.rowSD*r.kernel.rowSD
	}
	r.spread.Mul(r.jac, f.prior.Cov)
	for round := range outlierRounds {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if err := r.solve(); err != nil {
			return nil, err
		}
		if round < outlierRounds-1 {
			if err := r.widen(ctx); err != nil {
				return nil, err
			}
		}
	}
	return r, nil
}

// linearized returns the form's prediction at the prior's mean, linearised at the mode, and writes its
// derivatives by the constants to grad, which must be all zeros.
func (f *Fitted) linearized(x *formPoint, grad []float64) (float64, features) {
	y, shares := f.form.logTime(x, f.mode, grad)
	for k, g := range grad {
		y += g * (f.prior.Mean[k] - f.mode[k])
	}
	return y, features{logBatch: math.Log2(x.batch), logDevices: math.Log2(x.devices), logNodes: math.Log2(x.nodes),
		logServers: math.Log2(math.Max(x.servers, 1)), shares: shares}
}

func (r *posterior) solve() error {
	n := len(r.centered)
	var ok bool
	r.factor, ok = gp.NewCholesky(n, func(i, j int) float64 {
		v := r.kernel.covariance(&r.seen[i], &r.seen[j]) + gp.Dot(r.spread.RawRowView(i), r.jac.RawRowView(j))
		if i == j {
			v += r.noise[i]
		}
		return v
	})
	if !ok {
		return perfmodel.ErrNotFinite
	}
	r.weight = append(r.weight[:0], r.centered...)
	r.factor.Forward(r.weight)
	r.factor.Backward(r.weight)
	return nil
}

// leftOut returns, for each row, its error against the prediction from all other rows, and the standard
// deviation of that error (Rasmussen and Williams 2006, section 5.4.2). The error returned is that of ctx.
func (r *posterior) leftOut(ctx context.Context) (e, sd []float64, err error) {
	n := len(r.weight)
	e, sd = make([]float64, n), make([]float64, n)
	column := make([]float64, n)
	for i := range n {
		if err := ctx.Err(); err != nil {
			return nil, nil, err
		}
		clear(column)
		column[i] = 1
		r.factor.Forward(column)
		q := gp.Dot(column, column) // diagonal element of the inverse
		e[i], sd[i] = r.weight[i]/q, 1/math.Sqrt(q)
	}
	return e, sd, nil
}

// widen adds noise to outliers.
func (r *posterior) widen(ctx context.Context) error {
	e, sd, err := r.leftOut(ctx)
	for i := range e {
		if z := math.Abs(e[i]) / sd[i] / outlierSDs; z > 1 {
			r.noise[i] += sd[i] * sd[i] * (z*z - 1)
		}
	}
	return err
}

// at returns the mean and standard deviation of the log time of a row at x.
func (f *Fitted) at(x *formPoint) (mean, sd float64) {
	grad, spread := make([]float64, len(f.mode)), make([]float64, len(f.mode))
	mean, s := f.linearized(x, grad)
	for i := range spread {
		for k, g := range grad {
			spread[i] += f.prior.Cov.At(i, k) * g
		}
	}
	r := f.post
	v := r.kernel.covariance(&s, &s) + r.kernel.rowSD*r.kernel.rowSD + gp.Dot(grad, spread)
	cov := make([]float64, len(r.weight))
	for i := range cov {
		cov[i] = r.kernel.covariance(&s, &r.seen[i]) + gp.Dot(r.jac.RawRowView(i), spread)
	}
	mean += gp.Dot(cov, r.weight)
	if len(cov) > 0 {
		r.factor.Forward(cov)
	}
	return mean, math.Sqrt(math.Max(v-gp.Dot(cov, cov), 1e-8))
}

// LinearForm returns the posterior of the log times of configurations cs of f's form, as candidates of a
// design.
func (f *Fitted) LinearForm(cs []spec.Config) design.LinearForm {
	n, r := len(cs), f.post
	jac, seen := mat.NewDense(n, len(f.mode), nil), make([]features, n)
	for k := range cs {
		_, x := formOf(&cs[k])
		_, seen[k] = f.linearized(&x, jac.RawRowView(k))
	}
	var spread mat.Dense
	spread.Mul(jac, f.prior.Cov)
	return design.LinearForm{Factor: 1, Grad: jac.RawMatrix(), Spread: spread.RawMatrix(),
		White: r.factor.Whiten(n, len(r.seen), func(k, row int) float64 {
			return r.kernel.covariance(&seen[k], &r.seen[row]) + gp.Dot(spread.RawRowView(k), r.jac.RawRowView(row))
		}),
		Rest: func(k, l int) float64 { return r.kernel.covariance(&seen[k], &seen[l]) },
	}
}
