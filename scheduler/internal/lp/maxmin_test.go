package lp

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"testing"
)

// randomMaxMin returns a small problem with ties, types without devices, and jobs without any rate. Rates differ by a
// factor of about e^spread.
func randomMaxMin(r *rand.Rand, spread float64) *MaxMin {
	jobs, types := 1+r.IntN(12), 1+r.IntN(5)
	p := &MaxMin{}
	for range types {
		p.Capacity = append(p.Capacity, float64(r.IntN(9)))
	}
	ties := r.IntN(2) == 0
	for range jobs {
		row := make([]float64, types)
		for k := range row {
			if ties {
				row[k] = float64(r.IntN(4))
			} else {
				row[k] = math.Exp(spread * r.NormFloat64())
			}
		}
		p.Rates = append(p.Rates, row)
		p.Sizes = append(p.Sizes, float64(int(1)<<r.IntN(3)))
	}
	return p
}

// general states p as a linear programme. Variables are t, then the shares by job and type. Rows are rate and time of
// each job, then the types.
func (p *MaxMin) general() *Problem {
	q := New(Maximize)
	t := q.Var("t", -Inf, Inf, 1)
	used := make([][]Term, len(p.Capacity))
	for m, rates := range p.Rates {
		rate := []Term{{t, -1}}
		var time []Term
		for k, v := range rates {
			x := q.Var("", 0, Inf, 0)
			rate = append(rate, Term{x, v})
			time = append(time, Term{x, 1})
			used[k] = append(used[k], Term{x, p.Sizes[m]})
		}
		q.AtLeast("", 0, rate...)
		q.AtMost("", 1, time...)
	}
	for k, n := range p.Capacity {
		q.AtMost("", n, used[k]...)
	}
	return q
}

// checkShares reports shares that exceed capacities or miss the level.
func checkShares(t *testing.T, seed uint64, p *MaxMin, s *Shares) {
	t.Helper()
	use := make([]float64, len(p.Capacity))
	for m, row := range s.X {
		time, rate := 0.0, 0.0
		for k, v := range row {
			if v < 0 {
				t.Errorf("seed %d: job %d has the share %g", seed, m, v)
			}
			time += v
			rate += v * p.Rates[m][k]
			use[k] += v * p.Sizes[m]
		}
		if time > 1+1e-12 {
			t.Errorf("seed %d: job %d runs %g of the time", seed, m, time)
		}
		if want := s.Level; rate < want-1e-8*math.Max(1, want) {
			t.Errorf("seed %d: job %d gets %g, want %g", seed, m, rate, want)
		}
	}
	for k, n := range p.Capacity {
		if use[k] > n*(1+1e-12) {
			t.Errorf("seed %d: %g of %g devices of type %d are used", seed, use[k], n, k)
		}
	}
}

func TestMaxMinAgreesWithGeneral(t *testing.T) {
	for seed := range uint64(500) {
		p := randomMaxMin(rand.New(rand.NewPCG(seed, 4)), 2)
		want, wantErr := p.general().Solve(context.Background(), Options{})
		got, err := p.Solve(context.Background())
		if err != nil || wantErr != nil {
			t.Errorf("seed %d: %v; general: %v", seed, err, wantErr)
			continue
		}
		if math.Abs(got.Level-want.Objective) > 2e-8*(1+math.Abs(want.Objective)) {
			t.Errorf("seed %d: level %.12g, general %.12g", seed, got.Level, want.Objective)
		}
		checkShares(t, seed, p, got)
	}
}

// Two jobs share one device of each of two types; the first is 3 times as fast on type 2. If each has its own type, x1
// = (0, 1) and x2 = (1, 0) give 3 and 1. The optimum lets job 1 give up time on type 2.
func TestMaxMinByHand(t *testing.T) {
	p := &MaxMin{
		Rates:    [][]float64{{1, 3}, {1, 2}},
		Sizes:    []float64{1, 1},
		Capacity: []float64{1, 1},
	}
	s, err := p.Solve(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	// Job 1 runs y of the time on type 2 and 1-y on type 1: 1+2y; job 2 the rest: 2(1-y)+y = 2-y. Equal at y = 1/3.
	if want := 5.0 / 3; math.Abs(s.Level-want) > 1e-9 || math.Abs(s.X[0][1]-1.0/3) > 1e-8 {
		t.Errorf("level %v, job 1 on type 2 %v; want %v and 1/3", s.Level, s.X[0][1], want)
	}
}

func TestMaxMinAgreesWithGeneralOnMany(t *testing.T) {
	for types := 1; types <= 8; types++ {
		c := invented(uint64(types), 250, types)
		p := c.scaled().general()
		want := solve(t, p)
		s, err := c.scaled().Solve(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		if math.Abs(s.Level-want.Objective) > 2e-8*want.Objective {
			t.Errorf("%d types: level %.12g, general %.12g", types, s.Level, want.Objective)
		}
		checkShares(t, uint64(types), c.scaled(), s)
	}
}

// Reordered jobs get the same shares; another unit of rates scales only the level; identical jobs get identical
// shares.
func TestMaxMinInvariance(t *testing.T) {
	p := invented(3, 100, 3).scaled()
	for m := range 10 { // ten jobs multiplicity
		p.Rates[m], p.Sizes[m] = p.Rates[0], p.Sizes[0]
	}
	q := &MaxMin{Capacity: p.Capacity}
	for m := range p.Rates {
		from := len(p.Rates) - 1 - m
		row := make([]float64, 3)
		for k, r := range p.Rates[from] {
			row[k] = 1000 * r
		}
		q.Rates, q.Sizes = append(q.Rates, row), append(q.Sizes, p.Sizes[from])
	}
	a, err := p.Solve(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	b, err := q.Solve(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	near(t, "the level in other units", b.Level, 1000*a.Level)
	for m := range a.X {
		for k := range 3 {
			if got, want := b.X[len(a.X)-1-m][k], a.X[m][k]; math.Abs(got-want) > 1e-6 {
				t.Errorf("job %d has %g of type %d, %g when it comes in another order", m, want, k, got)
			}
			if m > 0 && m < 10 && math.Float64bits(a.X[m][k]) != math.Float64bits(a.X[0][k]) {
				t.Errorf("job %d has %g of type %d, job 0, which is multiplicity, %g", m, a.X[m][k], k, a.X[0][k])
			}
		}
	}
}

func TestMaxMinRejects(t *testing.T) {
	ok := func() *MaxMin {
		return &MaxMin{Rates: [][]float64{{1}}, Sizes: []float64{1}, Capacity: []float64{1}}
	}
	for name, spoil := range map[string]func(*MaxMin){
		"rate":     func(p *MaxMin) { p.Rates[0][0] = math.NaN() },
		"size":     func(p *MaxMin) { p.Sizes[0] = 0 },
		"capacity": func(p *MaxMin) { p.Capacity[0] = -1 },
		"no jobs":  func(p *MaxMin) { p.Rates, p.Sizes = nil, nil },
		"jobs":     func(p *MaxMin) { p.Sizes = nil },
		"shape":    func(p *MaxMin) { p.Capacity = nil },
	} {
		p := ok()
		spoil(p)
		if _, err := p.Solve(context.Background()); !errors.Is(err, ErrInvalid) {
			t.Errorf("%s: error %v, want ErrInvalid", name, err)
		}
	}
}
