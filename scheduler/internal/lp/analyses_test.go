package lp

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// A system with a kept analysis has the solutions of a new one, bit by bit, also after other values of the same pattern.
func TestKeptAnalysisSolvesAlike(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	for range 20 {
		p := &MaxMin{Capacity: []float64{3, 2, 4}}
		for range 5 + rng.IntN(3) { // few patterns, so that most are kept
			p.Rates = append(p.Rates, []float64{1 + rng.Float64(), 1 + rng.Float64(), 1 + rng.Float64()})
			p.Sizes = append(p.Sizes, float64(1+rng.IntN(2)))
		}
		f, err := p.general().prepare(Options{})
		if err != nil {
			t.Fatal(err)
		}
		s := f.conic().unscaled()
		kept, release := takeKKT(s.a, s.free)
		fresh := newKKT(s.a, s.free)
		d := make([]float64, s.a.Cols)
		for j := range d {
			if !s.free[j] {
				d[j] = rng.ExpFloat64()
			}
		}
		var x, y [2][]float64
		for i, k := range []*kkt{kept, fresh} {
			x[i], y[i] = make([]float64, s.a.Cols), make([]float64, s.a.Rows)
			k.set(d, refineTo)
			k.solve(x[i], y[i], s.c, s.b)
		}
		release()
		if !slices.Equal(x[0], x[1]) || !slices.Equal(y[0], y[1]) {
			t.Fatal("the solutions differ")
		}
	}
}
