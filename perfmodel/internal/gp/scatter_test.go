package gp

import (
	"math"
	"math/rand/v2"
	"testing"
)

// TestScatter: intervals are wide near rows with larger errors than expected, narrow near rows with smaller
// ones, and typical far from all rows.
func TestScatter(t *testing.T) {
	at, _, _ := wavy(40)
	e, v := make([]float64, 40), make([]float64, 40)
	for i := range at {
		e[i], v[i] = 0.05, 0.01
		if i >= 20 {
			at[i].Cat[0], e[i] = "another model", 0.2
		}
	}
	s := NewScatter(at, SquaredRatios(e, v))
	far := at[0]
	far.Num[0] += 1000
	quiet, wild, typical := s.Near(&at[5], -1), s.Near(&at[25], -1), s.Near(&far, -1)
	if !(quiet < 0.9*typical && typical < 0.9*wild) {
		t.Errorf("near quiet rows %.2f, far from all %.2f, near wild ones %.2f", quiet, typical, wild)
	}
	const prior = 1 / (2 * siteSD * siteSD) // rows of mean square 1
	if want := math.Sqrt((prior + 20*0.25 + 20*4) / (prior + 40)); math.Abs(typical-want) > 1e-9 {
		t.Errorf("far from all %g, want %g", typical, want)
	}
	if q, err := s.Quantile(t.Context()); err != nil || q > 2/quiet || q < 2/wild {
		t.Errorf("quantile %.2f of errors that are at most 2 of what was expected", q)
	}
}

// TestQuantileOfManyRows: of more than ExactRows rows only evenly spaced ones count, here two of five, which have a
// smaller ratio than the rest.
func TestQuantileOfManyRows(t *testing.T) {
	const n = 2.5 * ExactRows
	s := &Scatter{At: make([]Point, n), Z2: make([]float64, n), typical: 1}
	for i := range s.Z2 {
		s.Z2[i] = 4
	}
	for k := range ExactRows {
		s.Z2[k*5/2] = 1
	}
	got, err := s.Quantile(t.Context())
	if want := 1 / s.Near(&s.At[0], 0); err != nil || math.Abs(got-want) > 1e-9 {
		t.Errorf("quantile %g, %v, want %g", got, err, want)
	}
	s.At, s.Z2 = s.At[:ExactRows], s.Z2[:ExactRows] // all of them count
	if got, err := s.Quantile(t.Context()); err != nil || math.Abs(got-2/s.Near(&s.At[1], 1)) > 1e-9 {
		t.Errorf("of %d rows quantile %g, %v, want that of all", ExactRows, got, err)
	}
}

// TestQuantileOf: equal values give that value, the numbers one to a thousand give their 90th percentile, and
// the result is continuous in the number of values.
func TestQuantileOf(t *testing.T) {
	if q := quantileOf([]float64{3, 3, 3}, 0.9); math.Abs(q-3) > 1e-9 {
		t.Errorf("of threes: %g", q)
	}
	var many []float64
	for i := range 1000 {
		many = append(many, float64(i+1))
	}
	if q := quantileOf(many, 0.9); math.Abs(q-900.5) > 1 {
		t.Errorf("of 1 to 1000: %g, want 900", q)
	}
	few := []float64{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}
	if a, b := quantileOf(few, 0.899), quantileOf(few, 0.901); b <= a || b > a+0.05 {
		t.Errorf("%g at 0.899, %g at 0.901", a, b)
	}
}

// TestHalfOver compares the interval with draws: a normal residual of unit variance times a log-normal scale.
func TestHalfOver(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for _, n := range []int{1, 5, 30} {
		s := math.Sqrt(1 / (1/(siteSD*siteSD) + 2*float64(n)))
		inside, draws, half := 0, 400_000, HalfOver(n)
		for range draws {
			if math.Abs(rng.NormFloat64()*math.Exp(s*rng.NormFloat64())) < half {
				inside++
			}
		}
		if got := float64(inside) / float64(draws); math.Abs(got-0.9) > 0.01 {
			t.Errorf("%d rows: %.3f of draws are inside, want 0.9", n, got)
		}
	}
}
