package gp

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// TestNearestByDistance: the rows nearest in the dimensions in which rows differ are those nearest in all dimensions, also
// to points that differ from all rows in the others.
func TestNearestByDistance(t *testing.T) {
	rng := rand.New(rand.NewPCG(11, 12))
	for try := range 20 {
		at := make([]Point, ExactRows+1+rng.IntN(50))
		for d := range NumDims {
			if rng.IntN(3) == 0 { // in the other dimensions all rows are alike
				for i := range at {
					at[i].Num[d] = float64(rng.IntN(8)) * rng.Float64()
				}
			}
		}
		for d := range CatDims {
			if rng.IntN(2) == 0 {
				for i := range at {
					at[i].Cat[d] = fmt.Sprint(rng.IntN(3))
				}
			}
		}
		k := usual
		for d := range k.Weights {
			k.Weights[d] = rng.ExpFloat64()
		}
		r, err := NewProcess(at, make([]float64, len(at)), make([]float64, len(at)), k)
		if err != nil {
			t.Fatal(err)
		}
		for without := -1; without < 3; without++ {
			p := at[rng.IntN(len(at))]
			if without >= 0 {
				p = at[without]
			} else {
				for d := range p.Num {
					p.Num[d] += rng.NormFloat64()
				}
				p.Cat[rng.IntN(CatDims)] = "new"
			}
			var all, near []float64
			for i := range at {
				if i != without {
					all = append(all, k.Weights.distance(&p, &at[i]))
				}
			}
			slices.Sort(all)
			rows := r.nearest(&p, without)
			for _, i := range rows {
				near = append(near, k.Weights.distance(&p, &at[i]))
			}
			if distinct := slices.Compact(slices.Sorted(slices.Values(rows))); len(distinct) != nearestRows || slices.Contains(rows, without) {
				t.Fatalf("try %d: rows %v, want %d without %d", try, rows, nearestRows, without)
			}
			for i := range near {
				if math.Abs(near[i]-all[i]) > 1e-9 {
					t.Fatalf("try %d: row %d of the nearest is %g away, want %g", try, i, near[i], all[i])
				}
			}
		}
	}
}
