package lp

import (
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
)

// randomConic returns a small programme of one of few patterns.
func randomConic(t *testing.T, rng *rand.Rand) *standard {
	t.Helper()
	p := &MaxMin{Capacity: []float64{3, 2, 4}}
	for range 5 + rng.IntN(3) {
		p.Rates = append(p.Rates, []float64{1 + rng.Float64(), 1 + rng.Float64(), 1 + rng.Float64()})
		p.Sizes = append(p.Sizes, float64(1+rng.IntN(2)))
	}
	f, err := p.general().prepare(Options{})
	if err != nil {
		t.Fatal(err)
	}
	return f.conic().unscaled()
}

// A system with a kept analysis has the solutions of a new one, bit by bit, also after other values of the same pattern.
func TestKeptAnalysisSolvesAlike(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	var c analyses
	systems := map[*kkt]bool{}
	for range 20 {
		s := randomConic(t, rng)
		old, release := c.take(s.a, s.free)
		systems[old] = true
		fresh := newKKT(s.a, s.free)
		d := make([]float64, s.a.Cols)
		for j := range d {
			if !s.free[j] {
				d[j] = rng.ExpFloat64()
			}
		}
		var x, y [2][]float64
		for i, k := range []*kkt{old, fresh} {
			x[i], y[i] = make([]float64, s.a.Cols), make([]float64, s.a.Rows)
			k.set(d, refineTo)
			k.solve(x[i], y[i], s.c, s.b)
		}
		release()
		if !slices.Equal(x[0], x[1]) || !slices.Equal(y[0], y[1]) {
			t.Fatal("the solutions differ")
		}
	}
	if len(systems) != 3 {
		t.Errorf("%d systems for 3 patterns", len(systems))
	}
}

// A system is given to one user at a time, and only for its own pattern and free columns.
func TestAnalysisOfThePattern(t *testing.T) {
	s := randomConic(t, rand.New(rand.NewPCG(3, 4)))
	var c analyses
	first, release := c.take(s.a, s.free)
	if second, _ := c.take(s.a, s.free); second == first {
		t.Error("one system for two users")
	}
	release()
	key := patternHash(s.a, s.free)
	free := slices.Clone(s.free)
	free[0] = !free[0]
	if c.find(key, s.a, free) != nil || patternHash(s.a, free) == key {
		t.Error("one system for other free columns")
	}
	moved := *s.a
	moved.Idx = slices.Clone(s.a.Idx)
	moved.Idx[0]++
	if c.find(key, &moved, s.free) != nil || patternHash(&moved, s.free) == key {
		t.Error("one system for other entries")
	}
	more := *s.a
	more.Rows++
	if c.find(key, &more, s.free) != nil || patternHash(&more, s.free) == key {
		t.Error("one system for more rows")
	}
	if again, _ := c.take(s.a, s.free); again != first {
		t.Error("the system is not kept")
	}
	if c.find(key, s.a, s.free) != nil || c.entries != 0 {
		t.Errorf("a system in use is found; %d entries", c.entries)
	}
}

// The memory of kept systems is bounded.
func TestAnalysesAreBounded(t *testing.T) {
	s := randomConic(t, rand.New(rand.NewPCG(3, 4)))
	k := newKKT(s.a, s.free)
	var c analyses
	for key := range uint64(2 * maxKept / k.size()) {
		c.keep(key, k)
		if c.entries > maxKept {
			t.Fatalf("%d entries, want at most %d", c.entries, maxKept)
		}
	}
	if n := len(c.systems); n*k.size() != c.entries || n == 0 {
		t.Errorf("%d systems of %d entries, counted as %d", n, k.size(), c.entries)
	}
}

// Programmes of one pattern that are solved at the same time have the solutions of one by one.
func TestAnalysesConcurrently(t *testing.T) {
	solve := func(capacity float64) (*Solution, error) {
		p := &Problem{}
		x, y := p.Var("x", 0, 4, -1), p.Var("y", 0, 4, -2)
		p.AtMost("both", capacity, Term{x, 1}, Term{y, 1})
		return p.SolveConic(t.Context())
	}
	var wg sync.WaitGroup
	for i := range 8 {
		capacity := 1 + float64(i)/2
		want, err := solve(capacity)
		if err != nil {
			t.Fatal(err)
		}
		wg.Go(func() {
			for range 20 {
				if got, err := solve(capacity); err != nil || got.Objective != want.Objective {
					t.Errorf("capacity %g: objective %v, %v, want %v", capacity, got, err, want.Objective)
				}
			}
		})
	}
	wg.Wait()
}
