package gp

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/optimize"

	"github.com/pacer-ml/pacer/perfmodel"
)

// search looks for the kernel of the highest posterior density of processes that share it: prior times marginal
// likelihood (Rasmussen and Williams 2006, equations 5.8 and 5.9), by L-BFGS on the logarithms of the parameters, in
// standard deviations from their mean.
type search struct {
	of   []*pairs
	mean []float64
	sd   [hypers]float64

	x     []float64 // the last place
	cost  float64
	slope []float64
}

// pairs is a process with its pairs of rows, (1, 0), (2, 0), (2, 1), ...
type pairs struct {
	*Process
	apart []float64 // differences of each pair in the dimensions that vary
	alike []float64 // of each pair, the part of the covariance with Spread
}

func pairsOf(r *Process) *pairs {
	p := &pairs{Process: r}
	n := len(r.At)
	p.vary = varying(r.At)
	p.apart, p.alike = make([]float64, 0, n*(n-1)/2*len(p.vary)), make([]float64, n*(n-1)/2)
	var d [dims]float64
	for i := range n {
		for j := range i {
			r.At[i].between(&r.At[j], d[:])
			for _, q := range p.vary {
				p.apart = append(p.apart, d[q])
			}
		}
	}
	return p
}

// varying returns the dimensions in which points differ.
func varying(at []Point) (out []int) {
	var d [dims]float64
	differ := [dims]bool{}
	for i := 1; i < len(at); i++ {
		at[i].between(&at[0], d[:])
		for q, v := range d {
			differ[q] = differ[q] || v != 0
		}
	}
	for q, yes := range differ {
		if yes {
			out = append(out, q)
		}
	}
	return out
}

func pairAt(i, j int) int { return i*(i-1)/2 + j }

// fit is that of the process.
func (p *pairs) fit() error {
	k, m := &p.Kernel, len(p.vary)
	weights := make([]float64, m)
	for a, q := range p.vary {
		weights[a] = k.Weights[q]
	}
	for i := range p.At {
		f := k.factor(&p.At[i]) * k.Spread * k.Spread
		for j := range i {
			at := pairAt(i, j)
			distance := 0.0
			for a, v := range p.apart[at*m : (at+1)*m] {
				distance += weights[a] * v
			}
			p.alike[at] = f * k.factor(&p.At[j]) * math.Exp(-distance)
		}
	}
	return p.fitBy(func(i, j int) float64 {
		v := p.alike[pairAt(i, j)]
		if p.At[i].sameSite(&p.At[j]) {
			v += k.Site * k.Site
		}
		return v
	})
}

func newSearch(h *Hyper, of ...*Process) *search {
	s := &search{mean: h.Mean.logs(), sd: h.SD, slope: make([]float64, hypers)}
	for _, r := range of {
		s.of = append(s.of, pairsOf(r))
	}
	return s
}

// run fits the processes with the best kernel, starting at that of the first. The error is that of ctx, or wraps
// perfmodel.ErrNotFinite.
func (s *search) run(ctx context.Context, steps int) error {
	start := s.of[0].Kernel.logs()
	for i := range start {
		start[i] = (start[i] - s.mean[i]) / s.sd[i]
	}
	s.x = nil // the processes may have changed
	p := optimize.Problem{
		Func:   func(x []float64) float64 { s.at(x); return s.cost },
		Grad:   func(slope, x []float64) { s.at(x); copy(slope, s.slope) },
		Status: func() (optimize.Status, error) { return optimize.NotTerminated, ctx.Err() },
	}
	settings := &optimize.Settings{MajorIterations: steps, GradientThreshold: 1e-2, Converger: &optimize.FunctionConverge{Absolute: 1e-3, Iterations: 3}}
	found, err := optimize.Minimize(p, start, settings, &optimize.LBFGS{})
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if found == nil || math.IsInf(found.F, 0) || math.IsNaN(found.F) {
		return fmt.Errorf("gp: no kernel for %d rows: %w", len(s.of[0].At), errors.Join(err, perfmodel.ErrNotFinite))
	}
	for _, r := range s.of {
		r.Kernel = s.kernel(found.X)
		if err := r.fit(); err != nil {
			return err
		}
	}
	return nil
}

func (s *search) kernel(x []float64) Kernel {
	v := make([]float64, hypers)
	for i := range v {
		v[i] = s.mean[i] + x[i]*s.sd[i]
	}
	return kernelOf(v)
}

// at computes cost and slope at x.
func (s *search) at(x []float64) {
	if slices.Equal(x, s.x) {
		return
	}
	s.x = append(s.x[:0], x...)
	s.cost = 0
	clear(s.slope)
	for _, p := range s.of {
		p.Kernel = s.kernel(x)
		if p.fit() != nil {
			s.cost = math.Inf(1)
			return
		}
		s.cost -= p.evidence()
		p.addSlopes(s.slope)
	}
	for i := range s.slope {
		s.slope[i] = x[i] - s.slope[i]*s.sd[i]
		s.cost += x[i] * x[i] / 2
	}
}

// addSlopes adds the derivatives of the evidence by the logarithms of the parameters.
func (p *pairs) addSlopes(out []float64) {
	n, k, m := len(p.At), &p.Kernel, len(p.vary)
	inv := p.Chol.inverse()
	by := make([]float64, m)
	for i := range p.repeats {
		out[3] += p.repeats[i].slope(k.Noise)
	}
	for i := range n {
		a := &p.At[i]
		routed := 0.0
		if a.routed() {
			routed = 1
		}
		own := p.alpha[i]*p.alpha[i] - inv.Data[i*n+i]
		spread := own * k.factor(a) * k.factor(a) * k.Spread * k.Spread
		out[0] += spread
		out[1] += own * k.Site * k.Site
		out[2] += routed * spread
		out[3] += own * k.Noise * k.Noise
		for j := range i {
			b := &p.At[j]
			both := p.alpha[i]*p.alpha[j] - inv.Data[j*n+i]
			if a.sameSite(b) {
				out[1] += 2 * both * k.Site * k.Site
			}
			at := pairAt(i, j)
			both *= p.alike[at]
			out[0] += 2 * both
			out[2] += routed * both
			if b.routed() {
				out[2] += both
			}
			for q, v := range p.apart[at*m : (at+1)*m] {
				by[q] -= both * v
			}
		}
	}
	for a, q := range p.vary {
		out[scalars+q] += by[a] * k.Weights[q]
	}
}
