package spacefill

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// drawn returns n normal errors with the given standard deviations, and half widths.
func drawn(r *rand.Rand, n int, sd, half func(i int) float64) []Error {
	out := make([]Error, n)
	for i := range out {
		out[i] = Error{sd(i) * r.NormFloat64(), half(i)}
	}
	return out
}

func alternating(a, b float64) func(int) float64 {
	return func(i int) float64 { return []float64{a, b}[i%2] }
}

func same(v float64) func(int) float64 { return func(int) float64 { return v } }

func TestEvidenceOfKnownErrors(t *testing.T) {
	// Eight errors of 0.1; half widths 0.1 and 0.4 in turn: Π h = 0.04⁴, Σ e²/h² = 4·(1 + 1/16), Σ e² = 0.08.
	eight := math.Pow(0.04, 4) * math.Pow(4.25/0.08, 4)
	var errs []Error
	for i := range 8 {
		errs = append(errs, Error{0.1 * (1 - 2*float64(i%2)), alternating(0.1, 0.4)(i)})
	}
	scaled := slices.Clone(errs)
	for i := range scaled {
		scaled[i].Off, scaled[i].HalfWidth = 7*scaled[i].Off, 3*scaled[i].HalfWidth
	}
	nine := math.Pow(0.04, 4) * 0.4 * math.Pow((4.25+1./16)/0.09, 4.5)
	for name, tc := range map[string]struct {
		errors []Error
		want   float64
		ok     bool
	}{
		"eight":         {errs, eight, true},
		"common factor": {scaled, eight, true},
		"two dates":     {append([]Error{{-0.1, 0.4}}, errs...), (nine + eight) / 2, true},
		"seven":         {errs[:7], 0, false},
		"none":          {nil, 0, false},
		"exact":         {slices.Repeat([]Error{{0, 0.1}}, 8), 0, false},
		"equal":         {slices.Repeat([]Error{{0.3, 0.1}}, 12), 1, true},
	} {
		if got, _, ok := evidence(tc.errors); math.Abs(got-tc.want) > 1e-9*tc.want || ok != tc.ok {
			t.Errorf("%s: evidence %g, %t; want %g, %t", name, got, ok, tc.want, tc.ok)
		}
	}
	huge := slices.Concat(errs, []Error{{700, 1e-150}})
	if got, _, _ := evidence(huge); math.IsInf(got, 0) || math.IsNaN(got) || got < Strong {
		t.Errorf("evidence %g of an extreme error, want a large finite number", got)
	}
}

// TestEvidenceIsRarelyWrong: right variances, off by a common factor, are strong evidence at most one time in ten.
func TestEvidenceIsRarelyWrong(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	const draws = 4000
	for _, n := range []int{8, 12, 40} {
		strong := 0
		for range draws {
			half := make([]float64, n)
			for i := range half {
				half[i] = math.Exp(r.NormFloat64())
			}
			of := func(i int) float64 { return half[i] }
			if b, _, _ := evidence(drawn(r, n, func(i int) float64 { return 5 * half[i] }, of)); b >= Strong {
				strong++
			}
		}
		if strong > draws/10 {
			t.Errorf("%d of %d draws of %d errors, want at most %d", strong, draws, n, draws/10)
		}
	}
}

// TestWatchFindsAndForgets: variances that mislead are found even after many right ones, and right ones are trusted again.
func TestWatchFindsAndForgets(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	const draws = 200
	found, early, forgotten := 0, 0, 0
	for range draws {
		var w Watch
		add := func(errors []Error) {
			for _, e := range errors {
				w.Add(e)
			}
		}
		add(drawn(r, 60, alternating(0.1, 0.5), alternating(0.1, 0.5)))
		if w.Misled {
			early++
		}
		add(drawn(r, 24, same(0.2), alternating(0.02, 0.5)))
		if !w.Misled {
			continue
		}
		found++
		if w.Factor < Strong || w.Errors < leastErrors {
			t.Fatalf("misled by a factor of %g from %d errors", w.Factor, w.Errors)
		}
		if add(drawn(r, 40, alternating(0.1, 0.5), alternating(0.1, 0.5))); !w.Misled {
			forgotten++
		}
	}
	if early > draws/10 || found < draws*9/10 || forgotten < found*9/10 {
		t.Errorf("of %d runs %d are misled by right variances, %d by wrong ones, and %d trust the model again", draws, early, found, forgotten)
	}
}

func TestSpaceVisitsTheFarthest(t *testing.T) {
	var configs []spec.Config
	for _, mb := range []int{1, 2, 4, 8, 16} {
		configs = append(configs, spec.Config{Plan: spec.Plan{MicroBatch: mb}})
	}
	s := NewSpace(configs)
	if !math.IsInf(s.Nearest[0], 1) {
		t.Errorf("distance %g before the first, want infinite", s.Nearest[0])
	}
	s.Measure(&configs[0])
	s.Measure(&configs[4])
	d := s.Nearest
	if d[0] != 0 || d[4] != 0 || d[1] != d[3] || !(d[2] > d[1]) || d[1] == 0 {
		t.Errorf("distances %v after both ends, want the middle to be the farthest", d)
	}
}
