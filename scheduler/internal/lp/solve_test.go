package lp

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
)

// sparseProblem returns a feasible, bounded problem of many variables and rows.
func sparseProblem(seed uint64, n, m int) *Problem {
	r := rand.New(rand.NewPCG(seed, 13))
	p := New(Minimize)
	at := make([]float64, n) // a point that satisfies all
	for j := range n {
		at[j] = float64(r.IntN(5))
		upper := Inf
		if r.IntN(3) == 0 {
			upper = at[j] + float64(r.IntN(3))
		}
		p.Var("", 0, upper, r.ExpFloat64())
	}
	for range m {
		var terms []Term
		activity := 0.0
		for range 2 + r.IntN(6) {
			t := Term{Var(r.IntN(n)), r.NormFloat64()}
			terms = append(terms, t)
			activity += t.Coef * at[t.Var]
		}
		switch r.IntN(3) {
		case 0:
			p.Equal("", activity, terms...)
		case 1:
			p.AtLeast("", activity, terms...)
		default:
			p.Row("", activity-r.Float64(), activity+r.Float64(), terms...)
		}
	}
	return p
}

// transport returns dense equations: the sums out of each source and into each sink, one of them redundant.
func transport(seed uint64, n int) *Problem {
	r := rand.New(rand.NewPCG(seed, 14))
	p := New(Minimize)
	out, in := make([][]Term, n), make([][]Term, n)
	for i := range n {
		for j := range n {
			x := p.Var("", 0, Inf, float64(1+r.IntN(100)))
			out[i], in[j] = append(out[i], Term{x, 1}), append(in[j], Term{x, 1})
		}
	}
	for i := range n {
		p.Equal("", 10, out[i]...)
		p.Equal("", 10, in[i]...)
	}
	return p
}

// spoil multiplies rows and variables by powers of ten between 1e-3 and 1e3, so that coefficients differ by 1e6 and
// more.
func spoil(p *Problem, seed uint64) *Problem {
	r := rand.New(rand.NewPCG(seed, 15))
	scale := func() float64 { return math.Pow(10, 6*r.Float64()-3) }
	q := New(p.sense)
	col := make([]float64, len(p.vars))
	for j, v := range p.vars {
		col[j] = scale()
		q.Var("", v.lower/col[j], v.upper/col[j], v.cost*col[j])
	}
	for i, row := range p.rows {
		s := scale()
		var terms []Term
		for _, t := range p.rowTerms(i) {
			terms = append(terms, Term{t.Var, t.Coef * col[t.Var] * s})
		}
		q.Row("", row.lower*s, row.upper*s, terms...)
	}
	return q
}

func solve(t *testing.T, p *Problem) *Solution {
	t.Helper()
	s, err := p.Solve(context.Background(), Options{})
	if err != nil {
		t.Fatal(err)
	}
	if s.Residuals.Max() > 1e-8 {
		t.Errorf("residuals %v", s.Residuals)
	}
	return s
}

func near(t *testing.T, what string, got, want float64) {
	t.Helper()
	if math.Abs(got-want) > 1e-7*(1+math.Abs(want)) {
		t.Errorf("%s is %v, want %v", what, got, want)
	}
}

// The standard product mix: maximise 3x + 5y with x <= 4, 2y <= 12, 3x + 2y <= 18 (Hillier and Lieberman, Introduction
// to Operations Research, chapter 3). x = 2, y = 6, and an additional hour is worth 0, 3/2 and 1.
func TestSolveByHand(t *testing.T) {
	p := New(Maximize)
	x, y := p.Var("doors", 0, Inf, 3), p.Var("windows", 0, Inf, 5)
	a := p.AtMost("plant 1", 4, Term{x, 1})
	b := p.AtMost("plant 2", 12, Term{y, 2})
	c := p.AtMost("plant 3", 18, Term{x, 3}, Term{y, 2})
	s := solve(t, p)
	near(t, "the objective", s.Objective, 36)
	near(t, "x", s.Value(x), 2)
	near(t, "y", s.Value(y), 6)
	near(t, "an hour of plant 1", s.Dual(a), 0)
	near(t, "an hour of plant 2", s.Dual(b), 1.5)
	near(t, "an hour of plant 3", s.Dual(c), 1)
}

// Duals and reduced costs are the derivatives of the optimum by the bounds.
func TestDualsAreDerivatives(t *testing.T) {
	for _, sense := range []Sense{Minimize, Maximize} {
		p := New(sense)
		cost := 1.0
		if sense == Maximize {
			cost = -1
		}
		x, y := p.Var("", 1, Inf, 2*cost), p.Var("", -Inf, Inf, cost)
		r := p.AtLeast("", 5, Term{x, 1}, Term{y, 1})
		s := solve(t, p)
		p.rows[r].lower = 5.5
		near(t, "the change with the row", solve(t, p).Objective-s.Objective, 0.5*s.Dual(r))
		p.rows[r].lower = 5
		p.SetBounds(x, 1.5, Inf)
		near(t, "the change with the variable", solve(t, p).Objective-s.Objective, 0.5*s.Reduced[x])
	}
}

func TestEmptyProblems(t *testing.T) {
	p := New(Minimize)
	near(t, "nothing", solve(t, p).Objective, 0)
	p.Row("no terms", -1, 1)
	near(t, "a row without terms", solve(t, p).Objective, 0)
	x := p.Var("x", 2, 9, -1)
	near(t, "a variable without rows", solve(t, p).Value(x), 9)
	p.Row("impossible", 1, 2)
	if _, err := p.Solve(context.Background(), Options{}); !errors.Is(err, ErrInfeasible) {
		t.Errorf("error %v, want infeasible", err)
	}
}

// Klee and Minty's cube, where the simplex method may visit every vertex (How good is the simplex algorithm?, 1972).
func TestKleeMinty(t *testing.T) {
	const n = 10
	p := New(Maximize)
	for j := range n {
		p.Var("", 0, Inf, math.Exp2(float64(n-1-j)))
	}
	for i := range n {
		var terms []Term
		for j := range i {
			terms = append(terms, Term{Var(j), math.Exp2(float64(i - j + 1))})
		}
		p.AtMost("", math.Pow(5, float64(i+1)), append(terms, Term{Var(i), 1})...)
	}
	near(t, "the objective", solve(t, p).Objective, math.Pow(5, n))
}

// Beale's problem, where the simplex method may cycle (Naval Research Logistics Quarterly 2, 1955).
func TestDegenerate(t *testing.T) {
	p := New(Minimize)
	x := []Var{p.Var("", 0, Inf, -0.75), p.Var("", 0, Inf, 150), p.Var("", 0, Inf, -0.02), p.Var("", 0, Inf, 6)}
	p.AtMost("", 0, Term{x[0], 0.25}, Term{x[1], -60}, Term{x[2], -0.04}, Term{x[3], 9})
	p.AtMost("", 0, Term{x[0], 0.5}, Term{x[1], -90}, Term{x[2], -0.02}, Term{x[3], 3})
	p.AtMost("", 1, Term{x[2], 1})
	near(t, "the objective", solve(t, p).Objective, -0.05)
}

// Repeated, negated and scaled rows change nothing.
func TestRedundantRows(t *testing.T) {
	for seed := range uint64(50) {
		p := sparseProblem(seed, 40, 20)
		want := solve(t, p).Objective
		for i := range p.rows {
			r := p.rows[i]
			terms := append([]Term(nil), p.rowTerms(i)...)
			p.Row("", r.lower, r.upper, terms...)
			for k := range terms {
				terms[k].Coef *= -3
			}
			p.Row("", -3*r.upper, -3*r.lower, terms...)
		}
		near(t, "the objective", solve(t, p).Objective, want)
	}
}

// Dependent equations, without presolve.
func TestDependentEquations(t *testing.T) {
	p := transport(1, 25)
	s := solve(t, p)
	sum := 0.0
	for _, v := range s.X {
		sum += v
	}
	near(t, "what is moved", sum, 250)
}

func TestBadlyScaled(t *testing.T) {
	for seed := range uint64(100) {
		p := sparseProblem(seed, 60, 30)
		near(t, "the objective", solve(t, spoil(p, seed)).Objective, solve(t, p).Objective)
	}
}

// The answer does not depend on the order of rows and variables. With several optima it is the centre, to about five
// digits.
func TestOrderDoesNotMatter(t *testing.T) {
	p := transport(3, 6)
	q := New(Minimize)
	n := len(p.vars)
	for j := range n {
		q.Var("", p.vars[n-1-j].lower, p.vars[n-1-j].upper, 1) // all the same cost: any plan is optimal
		p.vars[j].cost = 1
	}
	for i := len(p.rows) - 1; i >= 0; i-- {
		var terms []Term
		for _, t := range p.rowTerms(i) {
			terms = append(terms, Term{Var(n-1) - t.Var, t.Coef})
		}
		q.Row("", p.rows[i].lower, p.rows[i].upper, terms...)
	}
	a, b := solve(t, p), solve(t, q)
	for j := range n {
		if math.Abs(a.X[j]-10.0/6) > 1e-4 || math.Abs(b.X[n-1-j]-10.0/6) > 1e-4 {
			t.Errorf("variable %d is %v, %v in the other order, want %v", j, a.X[j], b.X[n-1-j], 10.0/6)
		}
	}
}

func TestSameBitsEveryTime(t *testing.T) {
	p := sparseProblem(5, 200, 100)
	a, b := solve(t, p), solve(t, p)
	for j := range a.X {
		if math.Float64bits(a.X[j]) != math.Float64bits(b.X[j]) {
			t.Fatalf("variable %d is %v, then %v", j, a.X[j], b.X[j])
		}
	}
}

// A certificate alone proves infeasibility: with it, rows and bounds add up to 0 >= 1.
func TestCertificateOfInfeasibility(t *testing.T) {
	checked := 0
	for seed := range uint64(600) {
		p := random(rand.New(rand.NewPCG(seed, 1)), 8, 8)
		_, err := p.Solve(context.Background(), Options{})
		var e *InfeasibleError
		if !errors.As(err, &e) || e.Crossed != "" {
			continue
		}
		checked++
		d := make([]float64, len(p.vars))
		sum := 0.0
		add := func(y, lower, upper float64) {
			switch {
			case y > 0 && !math.IsInf(lower, 0):
				sum += y * lower
			case y < 0 && !math.IsInf(upper, 0):
				sum += y * upper
			case math.Abs(y) > 1e-8:
				t.Errorf("seed %d: multiplier %g of a side without bound", seed, y)
			}
		}
		for i, y := range e.Multipliers {
			add(y, p.rows[i].lower, p.rows[i].upper)
			for _, t := range p.rowTerms(i) {
				d[t.Var] -= y * t.Coef
			}
		}
		for j, v := range d {
			add(v, p.vars[j].lower, p.vars[j].upper)
		}
		if math.Abs(sum-1) > 1e-6 {
			t.Errorf("seed %d: the rows add up to %g, want 1", seed, sum)
		}
	}
	if checked < 50 {
		t.Errorf("only %d were infeasible", checked)
	}
}

// The ray keeps every constraint and improves the objective.
func TestCertificateOfUnboundedness(t *testing.T) {
	checked := 0
	for seed := range uint64(600) {
		p := random(rand.New(rand.NewPCG(seed, 1)), 8, 8)
		_, err := p.Solve(context.Background(), Options{})
		var e *UnboundedError
		if !errors.As(err, &e) {
			continue
		}
		checked++
		slope := 0.0
		inside := func(v, lower, upper float64) {
			if v < -1e-7 && !math.IsInf(lower, -1) || v > 1e-7 && !math.IsInf(upper, 1) {
				t.Errorf("seed %d: the ray leaves a bound at speed %g", seed, v)
			}
		}
		for j, v := range e.Ray {
			slope += p.sign() * p.vars[j].cost * v
			inside(v, p.vars[j].lower, p.vars[j].upper)
		}
		for i, r := range p.rows {
			v := 0.0
			for _, t := range p.rowTerms(i) {
				v += t.Coef * e.Ray[t.Var]
			}
			inside(v, r.lower, r.upper)
		}
		if slope > -1e-6 {
			t.Errorf("seed %d: the objective changes by %g along the ray", seed, slope)
		}
	}
	if checked < 100 {
		t.Errorf("only %d were unbounded", checked)
	}
}

func TestErrorsNameWhatIsWrong(t *testing.T) {
	inf := math.Inf(1)
	for want, build := range map[string]func(p *Problem){
		`variable x costs NaN`:           func(p *Problem) { p.Var("x", 0, 1, math.NaN()) },
		`variable x has bounds [+Inf`:    func(p *Problem) { p.Var("x", inf, inf, 0) },
		`row r names variable 3 of 1`:    func(p *Problem) { p.AtMost("r", 1, Term{p.Var("x", 0, 1, 0), 1}, Term{3, 1}) },
		`the coefficient +Inf of x[0]`:   func(p *Problem) { p.AtMost("r", 1, Term{p.Var("", 0, 1, 0), inf}) },
		`row row[0] has bounds [NaN, 1]`: func(p *Problem) { p.Row("", math.NaN(), 1) },
		`the bounds of variable x cross`: func(p *Problem) { p.Var("x", 1, 0, 0) },
		`the bounds of row r cross`:      func(p *Problem) { p.Row("r", 1, 0) },
		`rows ["much" "little"]`: func(p *Problem) {
			x := p.Var("x", -inf, inf, 0)
			p.AtLeast("much", 2, Term{x, 2})
			p.AtMost("little", 1, Term{x, 3})
		},
		`along variables ["x"]`: func(p *Problem) { p.Var("x", 0, inf, -1) },
	} {
		p := New(Minimize)
		build(p)
		if _, err := p.Solve(context.Background(), Options{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want one with %q", err, want)
		}
	}
	p := New(Minimize)
	for _, o := range []Options{{Tolerance: -1}, {Tolerance: math.NaN()}, {MaxIterations: -1}} {
		if _, err := p.Solve(context.Background(), o); err == nil {
			t.Errorf("no error for %+v", o)
		}
	}
	if _, err := sparseProblem(1, 50, 20).Solve(context.Background(), Options{MaxIterations: 2}); !errors.Is(err, ErrNumerical) {
		t.Errorf("error %v after two iterations, want ErrNumerical", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := sparseProblem(1, 50, 20).Solve(ctx, Options{}); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want that of the context", err)
	}
}

// Solve returns for any numbers, and its optima satisfy the problem as stated.
func FuzzSolve(f *testing.F) {
	f.Add([]byte{2, 2, 1, 0, 9, 3, 0, 9, 1, 5, 1, 2, 0, 7})
	f.Add([]byte{3, 1, 255, 128, 3, 7, 0, 0, 200, 130, 120, 1})
	f.Fuzz(func(t *testing.T, data []byte) {
		next := func() float64 {
			if len(data) == 0 {
				return 1
			}
			b := data[0]
			data = data[1:]
			switch b {
			case 255:
				return Inf
			case 254:
				return -Inf
			case 253:
				return 1e9
			case 252:
				return 1e-9
			}
			return float64(int(b)-126) / 4
		}
		p := New(Maximize)
		n, m := int(math.Abs(math.Min(next(), 20)))%9, int(math.Abs(math.Min(next(), 20)))%9
		for range n {
			p.Var("", next(), next(), next())
		}
		for range m {
			var terms []Term
			for j := range n {
				terms = append(terms, Term{Var(j), next()})
			}
			p.Row("", next(), next(), terms...)
		}
		s, err := p.Solve(context.Background(), Options{})
		if err != nil {
			return
		}
		c := p.compile()
		y := append([]float64(nil), s.Duals...)
		for i := range y {
			y[i] = -y[i]
		}
		if r := c.residuals(s.X, y); r.Max() > 1e-8 {
			t.Errorf("residuals %v", r)
		}
	})
}
