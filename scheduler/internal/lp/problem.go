package lp

import (
	"errors"
	"fmt"
	"math"
	"strconv"
)

// Sense is the direction of the objective.
type Sense int

// The zero value is Minimize.
const (
	Minimize Sense = iota
	Maximize
)

// Var is a variable of the problem that returned it: its index in the order of creation.
type Var int

// Row is a constraint of the problem that returned it: its index in the order of creation.
type Row int

// Term is one coefficient times one variable of a row.
type Term struct {
	Var  Var
	Coef float64
}

// Inf as an upper bound, or -Inf as a lower one, means no bound.
var Inf = math.Inf(1)

// Problem is a linear programme under construction. The zero value is an empty minimisation. Solve reports malformed
// variables and rows. Concurrent solves are safe while no goroutine changes the problem.
type Problem struct {
	sense Sense
	vars  []variable
	rows  []constraint
	terms []Term // of all rows, one after the other
}

type variable struct {
	name         string
	lower, upper float64
	cost         float64
}

type constraint struct {
	name         string
	lower, upper float64
	end          int // its terms are terms[end of the row before : end]
}

// New returns an empty problem.
func New(s Sense) *Problem { return &Problem{sense: s} }

// Var adds a variable with bounds lower and upper, which may be infinite, and its cost in the objective. Messages use
// the name; without one they use the index.
func (p *Problem) Var(name string, lower, upper, cost float64) Var {
	p.vars = append(p.vars, variable{name: name, lower: lower, upper: upper, cost: cost})
	return Var(len(p.vars) - 1)
}

// Row adds the constraint lower <= Σ terms <= upper; either bound may be infinite. Coefficients of a repeated variable
// are added. The terms are copied.
func (p *Problem) Row(name string, lower, upper float64, terms ...Term) Row {
	p.terms = append(p.terms, terms...)
	p.rows = append(p.rows, constraint{name: name, lower: lower, upper: upper, end: len(p.terms)})
	return Row(len(p.rows) - 1)
}

// AtMost adds the constraint Σ terms <= upper.
func (p *Problem) AtMost(name string, upper float64, terms ...Term) Row {
	return p.Row(name, -Inf, upper, terms...)
}

// AtLeast adds the constraint Σ terms >= lower.
func (p *Problem) AtLeast(name string, lower float64, terms ...Term) Row {
	return p.Row(name, lower, Inf, terms...)
}

// Equal adds the constraint Σ terms = value.
func (p *Problem) Equal(name string, value float64, terms ...Term) Row {
	return p.Row(name, value, value, terms...)
}

// SetCost changes the coefficient of v in the objective.
func (p *Problem) SetCost(v Var, cost float64) { p.vars[v].cost = cost }

// SetBounds changes the bounds of v.
func (p *Problem) SetBounds(v Var, lower, upper float64) {
	p.vars[v].lower, p.vars[v].upper = lower, upper
}

// NumVars returns the number of variables.
func (p *Problem) NumVars() int { return len(p.vars) }

// VarName returns the name of v, "x[3]" for the fourth variable if it has none.
func (p *Problem) VarName(v Var) string { return nameOr(p.vars[v].name, "x", int(v)) }

// RowName returns the name of r, "row[3]" for the fourth row if it has none.
func (p *Problem) RowName(r Row) string { return nameOr(p.rows[r].name, "row", int(r)) }

func nameOr(name, kind string, i int) string {
	if name != "" {
		return name
	}
	return kind + "[" + strconv.Itoa(i) + "]"
}

// rowTerms returns the terms of row i; the caller must not change them.
func (p *Problem) rowTerms(i int) []Term {
	if i == 0 {
		return p.terms[:p.rows[0].end]
	}
	return p.terms[p.rows[i-1].end:p.rows[i].end]
}

// validate returns all malformed parts, by name, as one error that wraps ErrInvalid. Crossing bounds are valid: they
// make the problem infeasible.
func (p *Problem) validate() error {
	var errs []error
	bad := func(format string, args ...any) {
		errs = append(errs, fmt.Errorf("lp: %w: "+format, append([]any{ErrInvalid}, args...)...))
	}
	for j, v := range p.vars {
		if !finite(v.cost) {
			bad("variable %s costs %g; give a finite cost", p.VarName(Var(j)), v.cost)
		}
		if !boundsMakeSense(v.lower, v.upper) {
			bad("variable %s has bounds [%g, %g]; give numbers, -Inf below or +Inf above", p.VarName(Var(j)), v.lower, v.upper)
		}
	}
	for i, r := range p.rows {
		if !boundsMakeSense(r.lower, r.upper) {
			bad("row %s has bounds [%g, %g]; give numbers, -Inf below or +Inf above", p.RowName(Row(i)), r.lower, r.upper)
		}
		for _, t := range p.rowTerms(i) {
			switch {
			case t.Var < 0 || int(t.Var) >= len(p.vars):
				bad("row %s names variable %d of %d", p.RowName(Row(i)), t.Var, len(p.vars))
			case !finite(t.Coef):
				bad("row %s has the coefficient %g of %s; give a finite one", p.RowName(Row(i)), t.Coef, p.VarName(t.Var))
			}
		}
	}
	return errors.Join(errs...)
}

func finite(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) }

// boundsMakeSense reports whether lower is a valid lower bound and upper a valid upper bound.
func boundsMakeSense(lower, upper float64) bool {
	return !math.IsNaN(lower) && !math.IsNaN(upper) && lower != Inf && upper != -Inf
}
