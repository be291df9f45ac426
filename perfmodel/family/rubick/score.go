package rubick

import (
	"math"
	"slices"
	"strings"

	"github.com/pacer-ml/pacer/perfmodel"
	"github.com/pacer-ml/pacer/perfmodel/internal/gp"
	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// card describes the fit to ms, the measurements of m.rows.
func (m *Model) card(ms []spec.Measurement) perfmodel.Card {
	c := perfmodel.Card{Key: m.key, Family: "rubick", NFit: len(ms), NHeldOut: len(ms),
		Params: map[string]perfmodel.Param{}}
	for i, p := range priors {
		c.Params[p.name] = perfmodel.Param{Value: m.post.e[i], Unit: p.unit}
	}
	ape, covered := m.post.leaveOneOut()
	c.MAPE, c.P95APE = perfmodel.ErrorSummary(ape)
	c.MAPEAll, c.Coverage = c.MAPE, covered
	if weak := m.post.weaklyIdentified(); len(weak) > 0 {
		c.Warnings = append(c.Warnings, "rubick: the rows hardly identify "+strings.Join(weak, ", ")+": these stay near the prior")
	}
	if m.post.split {
		c.Warnings = append(c.Warnings, "rubick: pipelines are assumed to be fed sample by sample, which fits better than the recorded single micro-batch")
	}
	if assumed := m.post.terms[0].assumed.names(); len(assumed) > 0 {
		c.Warnings = append(c.Warnings, "rubick: unknown values, assumed: "+strings.Join(assumed, ", "))
	}
	return c
}

// LeftOut returns, for every fitted row, measured - predicted ln T with the prediction from the other rows, and
// its standard deviation; nil if that is not finite.
func (m *Model) LeftOut() (off, deviation []float64) { return m.post.leftOut() }

// leaveOneOut returns the absolute relative error of every row's step time, predicted from the other rows, and
// the share of rows inside their 90 % interval.
func (p *posterior) leaveOneOut() (ape []float64, covered float64) {
	off, sd := p.leftOut()
	inside := 0
	for i, e := range off {
		ape = append(ape, math.Abs(math.Expm1(-e)))
		if math.Abs(e) <= p.half*sd[i] {
			inside++
		}
	}
	return ape, float64(inside) / float64(max(len(off), 1))
}

// leftOut returns, for every row, measured - predicted ln T with the prediction from the other rows, and its
// standard deviation. For a linear Gaussian model with covariance V of the rows, residual i is [V⁻¹r]i/[V⁻¹]ii
// and its variance 1/[V⁻¹]ii (Rasmussen and Williams, Gaussian Processes for Machine Learning, 2006, section
// 5.4.2).
func (p *posterior) leftOut() (off, deviation []float64) {
	_, sd := priorOf(&p.terms[0])
	n := len(p.terms)
	v, ok := gp.NewCholesky(n, func(i, j int) float64 {
		s := covarianceOf(&p.terms[i], &p.terms[j], i == j)
		for a := range sd {
			s += p.jac[i][a] * p.jac[j][a] * sd[a] * sd[a]
		}
		return s
	})
	if !ok {
		return nil, nil
	}
	resid := p.linearResiduals()
	v.Solve(resid)
	for i, d := range v.InverseDiagonal() {
		off, deviation = append(off, resid[i]/d), append(deviation, 1/math.Sqrt(d))
	}
	return off, deviation
}

// linearResiduals returns measured - predicted ln T of every row at the prior mean, with the formula linearised
// at the fit.
func (p *posterior) linearResiduals() []float64 {
	prior, _ := priorOf(&p.terms[0])
	out := slices.Clone(p.weight)
	p.residual.Multiply(out) // inverts the solve
	for i := range out {
		for a := range prior {
			out[i] += p.jac[i][a] * (p.mean[a] - prior[a])
		}
	}
	return out
}

// weaklyIdentified returns the parameters that some row depends on, but for which the rows reduced the standard
// deviation by less than a fifth.
func (p *posterior) weaklyIdentified() []string {
	_, sd := priorOf(&p.terms[0])
	var out []string
	for a := range sd {
		var unit vec
		unit[a] = 1
		p.precise.Forward(unit[:])
		uses := slices.ContainsFunc(p.jac, func(j vec) bool { return j[a] != 0 })
		if uses && math.Sqrt(gp.Dot(unit[:], unit[:])) > 0.8*sd[a] {
			out = append(out, priors[a].name)
		}
	}
	return out
}
