package lp

import (
	"context"
	"fmt"
	"slices"
)

// SolveOnly returns an optimum of p with all variables outside keep at 0, which must be within their bounds. It serves
// column generation, where most variables stay at 0. Values and reduced costs cover all variables. It fails as Solve
// does.
func (p *Problem) SolveOnly(ctx context.Context, keep []bool, o Options) (*Solution, error) {
	if len(keep) != len(p.vars) {
		return nil, fmt.Errorf("lp: %w: keep has %d entries for %d variables", ErrInvalid, len(keep), len(p.vars))
	}
	if err := p.validate(); err != nil {
		return nil, err
	}
	sub, at := &Problem{sense: p.sense}, make([]Var, len(p.vars))
	for j, v := range p.vars {
		if at[j] = -1; keep[j] {
			at[j] = Var(len(sub.vars))
			sub.vars = append(sub.vars, v)
		}
	}
	for i, r := range p.rows {
		for _, t := range p.rowTerms(i) {
			if at[t.Var] >= 0 {
				sub.terms = append(sub.terms, Term{at[t.Var], t.Coef})
			}
		}
		r.end = len(sub.terms)
		sub.rows = append(sub.rows, r)
	}
	s, err := sub.Solve(ctx, o)
	if err != nil {
		return nil, err
	}
	x := make([]float64, len(p.vars))
	for j := range x {
		if at[j] >= 0 {
			x[j] = s.X[at[j]]
		}
	}
	return p.solution(p.compile(), outcome{x: x, y: p.minimisedDuals(s.Duals), residuals: s.Residuals, iterations: s.Iterations}), nil
}

// Certify measures x and duals, by variable and row, against the optimality conditions of p. It returns them as the
// solution if no residual exceeds the tolerance of o. It fails with [ErrInvalid], [ErrNumerical] or the error of
// Options.Validate.
func (p *Problem) Certify(x, duals []float64, o Options) (*Solution, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	if err := p.validate(); err != nil {
		return nil, err
	}
	if len(x) != len(p.vars) || len(duals) != len(p.rows) {
		return nil, fmt.Errorf("lp: %w: %d values and %d duals for %d variables and %d rows", ErrInvalid, len(x), len(duals), len(p.vars), len(p.rows))
	}
	f := p.compile()
	out := outcome{status: optimal, x: slices.Clone(x), y: p.minimisedDuals(duals)}
	f.clamp(out.x)
	if out.residuals = f.residuals(out.x, out.y); !(out.residuals.Max() <= o.tolerance()) {
		return nil, &NumericalError{Residuals: out.residuals, Tolerance: o.tolerance()}
	}
	return p.solution(f, out), nil
}
