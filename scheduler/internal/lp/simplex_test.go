package lp

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"gonum.org/v1/gonum/mat"
	gonum "gonum.org/v1/gonum/optimize/convex/lp"
)

// random returns a problem with integer data and up to maxVars variables and maxRows rows of every kind. Many are
// infeasible, unbounded or degenerate.
func random(r *rand.Rand, maxVars, maxRows int) *Problem {
	p := New(Sense(r.IntN(2)))
	n, m := r.IntN(maxVars+1), r.IntN(maxRows+1)
	for range n {
		lower, upper := randomBounds(r)
		p.Var("", lower, upper, float64(r.IntN(11)-5))
	}
	anywhere := r.IntN(3) == 0
	for range m {
		var terms []Term
		activity := 0.0 // at a point between the bounds of the variables
		for j := range n {
			if r.IntN(2) == 0 {
				terms = append(terms, Term{Var(j), float64(r.IntN(9) - 4)})
				activity += terms[len(terms)-1].Coef * math.Max(p.vars[j].lower, math.Min(p.vars[j].upper, 0))
			}
		}
		lower, upper := randomBounds(r)
		if !anywhere {
			lower, upper = math.Min(lower, activity), math.Max(upper, activity)
		}
		p.Row("", lower, upper, terms...)
	}
	return p
}

func randomBounds(r *rand.Rand) (lower, upper float64) {
	lower = float64(r.IntN(7) - 3)
	upper = lower + float64(r.IntN(5))
	switch r.IntN(6) {
	case 0:
		return -Inf, upper
	case 1, 2:
		return lower, Inf
	case 3:
		return -Inf, Inf
	}
	return lower, upper
}

// simplex solves p with gonum's simplex and returns the optimum in p's sense.
func simplex(p *Problem) (float64, error) {
	f := p.compile()
	// x = s - t with s, t >= 0; every bound is a row s - t (- or +) slack = bound.
	type row struct {
		coef  map[int]float64
		slack float64
		rhs   float64
	}
	n := len(f.c)
	var rows []row
	add := func(coef map[int]float64, lower, upper float64) {
		if lower == upper {
			rows = append(rows, row{coef, 0, lower})
			return
		}
		if !math.IsInf(lower, -1) {
			rows = append(rows, row{coef, -1, lower})
		}
		if !math.IsInf(upper, 1) {
			rows = append(rows, row{coef, 1, upper})
		}
	}
	byRow := f.a.Transpose()
	for i := range f.lr {
		coef := map[int]float64{}
		for k := byRow.Ptr[i]; k < byRow.Ptr[i+1]; k++ {
			coef[byRow.Idx[k]] = byRow.Val[k]
		}
		add(coef, f.lr[i], f.ur[i])
	}
	for j := range f.l {
		add(map[int]float64{j: 1}, f.l[j], f.u[j])
	}
	if len(rows) == 0 {
		return 0, errors.New("no rows")
	}
	cols := 2*n + len(rows)
	a := mat.NewDense(len(rows), cols, nil)
	b, c := make([]float64, len(rows)), make([]float64, cols)
	for j, v := range f.c {
		c[j], c[n+j] = v, -v
	}
	for i, r := range rows {
		for j, v := range r.coef {
			a.Set(i, j, v)
			a.Set(i, n+j, -v)
		}
		a.Set(i, 2*n+i, r.slack)
		b[i] = r.rhs
	}
	return dropDependent(p, c, a, b)
}

// dropDependent leaves out equations that follow from others, which gonum does not take, and solves.
func dropDependent(p *Problem, c []float64, a *mat.Dense, b []float64) (float64, error) {
	_, cols := a.Dims()
	used := map[int]bool{}
	for j := range cols {
		for i := range b {
			used[j] = used[j] || a.At(i, j) != 0
		}
	}
	var keep []int
	unbounded := false
	for j := range cols {
		if used[j] {
			keep = append(keep, j)
		} else if c[j] < 0 {
			unbounded = true
		}
	}
	b2 := mat.NewDense(len(b), len(keep)+1, nil)
	for i := range b {
		for k, j := range keep {
			b2.Set(i, k, a.At(i, j))
		}
		b2.Set(i, len(keep), b[i])
	}
	independent, consistent := rowEchelon(b2)
	if !consistent {
		return 0, gonum.ErrInfeasible
	}
	if len(independent) == 0 {
		if unbounded {
			return 0, gonum.ErrUnbounded
		}
		return 0, nil
	}
	a3 := mat.NewDense(len(independent), len(keep), nil)
	b3, c3 := make([]float64, len(independent)), make([]float64, len(keep))
	for r, i := range independent {
		for k := range keep {
			a3.Set(r, k, b2.At(i, k))
		}
		b3[r] = b2.At(i, len(keep))
	}
	for k, j := range keep {
		c3[k] = c[j]
	}
	if len(independent) == len(keep) {
		// A square system has one point: gonum does not take it either.
		var x mat.VecDense
		if err := x.SolveVec(a3, mat.NewVecDense(len(b3), b3)); err != nil {
			return 0, err
		}
		sum := 0.0
		for k := range keep {
			if x.AtVec(k) < -1e-9 {
				return 0, gonum.ErrInfeasible
			}
			sum += c3[k] * x.AtVec(k)
		}
		if unbounded {
			return 0, gonum.ErrUnbounded
		}
		return p.sign() * sum, nil
	}
	if !unbounded {
		v, _, err := gonum.Simplex(c3, a3, b3, 1e-10, nil)
		if !errors.Is(err, gonum.ErrUnbounded) {
			return p.sign() * v, err
		}
	}
	// Only what has a point is unbounded, whatever a ray says.
	if _, _, err := gonum.Simplex(make([]float64, len(c3)), a3, b3, 1e-10, nil); err != nil {
		return 0, err
	}
	return 0, gonum.ErrUnbounded
}

// rowEchelon returns rows of the extended matrix that span all of them, and whether the equations agree.
func rowEchelon(m *mat.Dense) (independent []int, consistent bool) {
	rows, cols := m.Dims()
	w := mat.DenseCopyOf(m)
	for i := range rows {
		// Take what earlier rows explain off row i.
		for _, k := range independent {
			lead := leading(w, k, cols-1)
			s := w.At(i, lead) / w.At(k, lead)
			for j := range cols {
				w.Set(i, j, w.At(i, j)-s*w.At(k, j))
			}
		}
		if leading(w, i, cols-1) >= 0 {
			independent = append(independent, i)
		} else if math.Abs(w.At(i, cols-1)) > 1e-9 {
			return nil, false
		}
	}
	return independent, true
}

func leading(w *mat.Dense, i, cols int) int {
	best, at := 1e-9, -1
	for j := range cols {
		if v := math.Abs(w.At(i, j)); v > best {
			best, at = v, j
		}
	}
	return at
}

func TestSolveAgreesWithSimplex(t *testing.T) {
	counts := map[string]int{}
	for seed := range uint64(1500) {
		r := rand.New(rand.NewPCG(seed, 1))
		p := random(r, 8, 8)
		want, wantErr := simplex(p)
		if wantErr != nil && !errors.Is(wantErr, gonum.ErrInfeasible) && !errors.Is(wantErr, gonum.ErrUnbounded) {
			counts["oracle: "+wantErr.Error()]++
		}
		got, err := p.Solve(context.Background(), Options{})
		switch {
		case err == nil:
			counts["optimal"]++
			if wantErr == nil && math.Abs(got.Objective-want) > 1e-7*(1+math.Abs(want)) || errors.Is(wantErr, gonum.ErrInfeasible) || errors.Is(wantErr, gonum.ErrUnbounded) {
				t.Errorf("seed %d: optimum %v, simplex says %v, %v", seed, got.Objective, want, wantErr)
			}
		case errors.Is(err, ErrInfeasible):
			counts["infeasible"]++
			if wantErr == nil || errors.Is(wantErr, gonum.ErrUnbounded) {
				t.Errorf("seed %d: %v, simplex says %v, %v", seed, err, want, wantErr)
			}
		case errors.Is(err, ErrUnbounded):
			counts["unbounded"]++
			if wantErr == nil || errors.Is(wantErr, gonum.ErrInfeasible) {
				t.Errorf("seed %d: %v, simplex says %v, %v", seed, err, want, wantErr)
			}
		default:
			t.Errorf("seed %d: %v; simplex says %v, %v", seed, err, want, wantErr)
		}
	}
	t.Log(fmt.Sprint(counts))
}
