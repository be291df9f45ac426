package lp

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"testing"
)

// levelsOneByOne fills by the definition. At each level a linear programme per job decides whether it can have more
// while no other has less.
func levelsOneByOne(t *testing.T, p *MaxMin) ([]float64, error) {
	t.Helper()
	jobs := len(p.Rates)
	now := &MaxMin{Rates: p.Rates, Sizes: p.Sizes, Capacity: p.Capacity, Base: make([]float64, jobs), Slope: make([]float64, jobs)}
	levels := make([]float64, jobs)
	left := 0
	for m := range jobs {
		now.Base[m], now.Slope[m], levels[m] = p.base(m), p.slope(m), math.NaN()
		if p.slope(m) > 0 {
			left++
		}
	}
	for left > 0 {
		s, err := now.general().Solve(context.Background(), Options{Tolerance: 1e-7})
		if err != nil {
			return nil, err
		}
		var stop []int
		for m := range jobs {
			if now.Slope[m] == 0 {
				continue
			}
			alone := &MaxMin{Rates: p.Rates, Sizes: p.Sizes, Capacity: p.Capacity, Base: make([]float64, jobs), Slope: make([]float64, jobs)}
			for n := range jobs {
				alone.Base[n] = now.Base[n] + now.Slope[n]*(s.Objective-1e-9)
			}
			alone.Base[m], alone.Slope[m] = now.Base[m], now.Slope[m]
			most, err := alone.general().Solve(context.Background(), Options{Tolerance: 1e-7})
			if err != nil {
				return nil, err
			}
			if most.Objective < s.Objective+1e-6 {
				stop = append(stop, m)
			}
		}
		for _, m := range stop {
			levels[m] = s.Objective
			now.Base[m] += now.Slope[m] * (s.Objective - 1e-9)
			now.Slope[m] = 0
			left--
		}
		if len(stop) == 0 {
			return nil, errors.New("no job stops")
		}
	}
	return levels, nil
}

func TestWaterFillAgreesWithOneByOne(t *testing.T) {
	compared, rounds := 0, 0
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 5))
		p := randomMaxMin(r, seed%2 == 0, 0.5)
		got, err := p.WaterFill(context.Background())
		want, wantErr := levelsOneByOne(t, p)
		if errors.Is(err, ErrInfeasible) && errors.Is(wantErr, ErrInfeasible) {
			continue
		}
		if err != nil || wantErr != nil {
			t.Errorf("seed %d: %v; one by one: %v", seed, err, wantErr)
			continue
		}
		compared++
		rounds += got.Rounds
		checkShares(t, seed, &MaxMin{Rates: p.Rates, Sizes: p.Sizes, Capacity: p.Capacity, Slope: make([]float64, len(p.Rates))}, &Shares{X: got.X})
		for m, l := range got.Levels {
			if math.IsNaN(l) != math.IsNaN(want[m]) || math.Abs(l-want[m]) > 1e-5*(1+math.Abs(want[m])) {
				t.Errorf("seed %d: levels %v, one by one %v", seed, got.Levels, want)
				break
			}
			rate := 0.0
			for k, v := range got.X[m] {
				rate += v * p.Rates[m][k]
			}
			if target := p.base(m) + p.slope(m)*l; !math.IsNaN(l) && rate < target-1e-7*(1+math.Abs(target)) {
				t.Errorf("seed %d: job %d gets %g, its level means %g", seed, m, rate, target)
			}
		}
	}
	if compared < 175 || 2*rounds < 3*compared {
		t.Errorf("%d compared with %d rounds: too few to mean anything", compared, rounds)
	}
}

// With room for all, every job reaches its top rate, and all those levels are found in one round.
func TestWaterFillWithRoomForAll(t *testing.T) {
	p := &MaxMin{Capacity: []float64{500, 500}}
	for m := range 500 {
		p.Rates = append(p.Rates, []float64{1, 1 + float64(m)})
		p.Sizes = append(p.Sizes, 1)
	}
	f, err := p.WaterFill(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	for m, l := range f.Levels {
		if want := 1 + float64(m); math.Abs(l-want) > 1e-6*want {
			t.Errorf("job %d stops at %g, want %g", m, l, want)
		}
	}
	if f.Rounds > 2 {
		t.Errorf("%d rounds, want 2 at most", f.Rounds)
	}
}

func BenchmarkWaterFill(b *testing.B) {
	for _, some := range []bool{false, true} {
		name := "scarce=all"
		if some {
			name = "scarce=some"
		}
		b.Run("jobs=2048/types=3/"+name, func(b *testing.B) {
			p := invented(1, 2048, 3).scaled()
			if some { // the slowest type is plentiful, the next half so
				p.Capacity[2] *= 16
				p.Capacity[1] *= 4
			}
			done := reportCPU(b)
			rounds := 0
			for b.Loop() {
				f, err := p.WaterFill(context.Background())
				if err != nil {
					b.Fatal(err)
				}
				rounds = f.Rounds
			}
			done()
			b.ReportMetric(float64(rounds), "rounds")
		})
	}
}
