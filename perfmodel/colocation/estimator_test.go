package colocation

import (
	"errors"
	"fmt"
	"math"
	"testing"

	"github.com/pacer-ml/pacer/perfmodel"
	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// keeps returns the share of its speed that a kind keeps beside another. Kinds are of three sorts, by their
// number; the sorts differ by accelerator.
func keeps(accelerator string, a, b int) float64 {
	table := [3][3]float64{{0.9, 0.6, 0.4}, {0.8, 0.5, 0.3}, {0.5, 0.7, 0.2}}
	if accelerator == "y" {
		return table[b%3][a%3]
	}
	return table[a%3][b%3]
}

func name(kind int) string { return fmt.Sprintf("m%02d", kind) }

// speed returns the samples/s of a kind alone, the same on both accelerators.
func speed(c spec.Config) (float64, error) {
	var kind int
	if _, err := fmt.Sscanf(c.Model.Name, "m%d", &kind); err != nil {
		return 0, err
	}
	return 10 + float64(kind), nil
}

// sorts returns the measurements of all pairs of 12 kinds.
func sorts() (rows []spec.Colocation) {
	for _, acc := range []string{"x", "y"} {
		for a := range 12 {
			for b := range a + 1 {
				rows = append(rows, spec.Colocation{A: config(name(a), acc, 1), B: config(name(b), acc, 1),
					RateA: keeps(acc, a, b) * (10 + float64(a)), RateB: keeps(acc, b, a) * (10 + float64(b))})
			}
		}
	}
	return rows
}

// TestEstimatorRecovers: kinds that behave like references are estimated exactly from three pairs on each
// accelerator, for any choice of references.
func TestEstimatorRecovers(t *testing.T) {
	for seed := range uint64(5) {
		e, err := NewEstimator(sorts(), speed, Options{References: 9, Profiled: 6, Ridge: 1e-6, Seed: seed})
		if err != nil {
			t.Fatal(err)
		}
		if len(e.references) != 9 {
			t.Fatalf("%d references, want 9", len(e.references))
		}
		for _, acc := range []string{"x", "y"} {
			for a := range 12 {
				for b := range 12 {
					want := keeps(acc, a, b) * (10 + float64(a))
					if got, err := e.Beside(config(name(a), acc, 1), config(name(b), acc, 1)); err != nil || math.Abs(got-want) > 1e-9 {
						t.Errorf("seed %d: %s beside %s on %s: %g, %v, want %g", seed, name(a), name(b), acc, got, err, want)
					}
				}
			}
		}
	}
}

// TestEstimatorLearns: a pair is known, in both directions, once it ran and not before.
func TestEstimatorLearns(t *testing.T) {
	rows := sorts()
	for i := range rows { // unlike all others: two kinds of one sort that slow each other down
		if r := &rows[i]; r.A.Model.Name == name(10) && r.B.Model.Name == name(7) {
			r.RateA, r.RateB = 1, 2
		}
	}
	for seed := range uint64(50) {
		e, err := NewEstimator(rows, speed, Options{References: 9, Profiled: 6, Seed: seed})
		if err != nil {
			t.Fatal(err)
		}
		a, b := config(name(10), "x", 1), config(name(7), "x", 1)
		if e.Known(a, b) {
			continue // references, or profiled
		}
		if got, err := e.Beside(a, b); err != nil || got < 5 {
			t.Fatalf("before they ran: %g, %v, want what others of their sorts keep", got, err)
		}
		if !e.Ran(b, a) || e.Ran(a, b) || e.Ran(b, a) {
			t.Fatal("the first time they ran is news, and no other")
		}
		for _, c := range []struct {
			a, b spec.Config
			want float64
		}{{a, b, 1}, {b, a, 2}} {
			if got, err := e.Beside(c.a, c.b); err != nil || got != c.want {
				t.Fatalf("after they ran: %g, %v, want %g", got, err, c.want)
			}
		}
		return
	}
	t.Fatal("no seed leaves the pair unknown")
}

func TestEstimatorRefuses(t *testing.T) {
	e, err := NewEstimator(sorts(), speed, Options{Profiled: 2})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range [][2]spec.Config{
		{config("m99", "x", 1), config(name(1), "x", 1)}, // measured only with references that it cannot share devices with
		{config(name(1), "z", 1), config(name(2), "z", 1)},
		{config(name(1), "x", 2), config(name(2), "x", 2)},
	} {
		if got, err := e.Beside(c[0], c[1]); !errors.Is(err, perfmodel.ErrNotCovered) {
			t.Errorf("%v beside %v: %g, %v, want ErrNotCovered", c[0].Model.Name, c[1].Model.Name, got, err)
		}
	}
	if e, err := NewEstimator(nil, speed, Options{Profiled: 1}); err != nil {
		t.Errorf("without measurements: %v", err)
	} else if _, err := e.Beside(config(name(1), "x", 1), config(name(2), "x", 1)); !errors.Is(err, perfmodel.ErrNotCovered) {
		t.Errorf("without measurements: %v, want ErrNotCovered", err)
	}
	for _, o := range []Options{{}, {Profiled: -1}, {Profiled: 1, References: -1}, {Profiled: 1, Rank: -1}, {Profiled: 1, Ridge: math.NaN()}, {Profiled: 1, Ridge: math.Inf(1)}} {
		if _, err := NewEstimator(nil, speed, o); err == nil {
			t.Errorf("%+v is accepted", o)
		}
	}
}
