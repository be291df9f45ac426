package loss_test

import (
	"context"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/scheduler"
	"github.com/pacer-ml/pacer/scheduler/loss"
)

// points are the first n losses of a curve with noise of deviation sigma.
func points(c loss.Curve, n int, sigma float64, rng *rand.Rand) (out []float64) {
	for k := 1; k <= n; k++ {
		out = append(out, c.At(float64(k))*math.Exp(sigma*rng.NormFloat64()))
	}
	return out
}

// At convergence the loss falls by the criterion.
func TestConverged(t *testing.T) {
	for _, c := range []loss.Curve{{B0: 1, B1: 1}, {B0: 0.1, B1: 2, B2: 0.5}, {B0: 7, B1: 0.3, B2: 0.01}} {
		for _, least := range []float64{0.02, 1e-3, 1e-6} {
			k := c.Converged(least)
			if got := c.Falls(k); math.Abs(got/least-1) > 1e-6 {
				t.Errorf("%+v falls by %g after %g, want %g", c, got, k, least)
			}
		}
	}
	if k := (loss.Curve{B0: 1, B1: 1}).Converged(10); k != 0 {
		t.Errorf("a curve that never falls by as much converged after %g", k)
	}
}

// Curves are recovered from points without noise. From the first half with noise, the end is predicted to within a
// third.
func TestFit(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		floor := 0.05 + 0.35*rng.Float64()
		n := 40 + rng.IntN(100)
		c := loss.Curve{B1: 1 / (1 - floor), B2: floor}
		c.B0 = (5 + 40*rng.Float64()) * c.B1 / float64(n)
		got, ok := loss.Fit(points(c, n, 0, rng))
		if !ok || math.Abs(got.B2-c.B2) > 1e-3 || math.Abs(got.B0/c.B0-1) > 1e-2 {
			t.Fatalf("%+v of %d points of %+v", got, n, c)
		}
	}
	off := 0.0
	const draws = 200
	for range draws {
		c := loss.Curve{B0: 0.2, B1: 1.2, B2: 0.15}
		const n = 100
		got, ok := loss.Fit(points(c, n/2, 0.005, rng))
		if !ok {
			t.Fatal("no fit")
		}
		off += math.Abs(got.Converged(c.Falls(n))/n-1) / draws
	}
	if off > 1./3 {
		t.Errorf("half-way the end is %.0f %% off on average", 100*off)
	}
}

// A single outlier hardly changes the fit.
func TestFitOutlier(t *testing.T) {
	c := loss.Curve{B0: 0.2, B1: 1.2, B2: 0.15}
	p := points(c, 60, 0, rand.New(rand.NewPCG(1, 2)))
	p[30] *= 5
	got, ok := loss.Fit(p)
	if !ok || math.Abs(got.Converged(1e-3)/c.Converged(1e-3)-1) > 0.02 {
		t.Errorf("%+v, want %+v", got, c)
	}
}

func TestFitRefuses(t *testing.T) {
	for name, p := range map[string][]float64{
		"too few": {1, 0.5}, "none": nil, "rising": {0.1, 0.2, 0.4, 0.8, 0.9}, "zero": {0, 0, 0, 0}, "not a number": {1, math.NaN(), 0.5, math.NaN()},
	} {
		if c, ok := loss.Fit(p); ok {
			t.Errorf("%s: %+v", name, c)
		}
	}
}

// A log covers the work done and does not depend on when it is read. Its curve converges, by the job's criterion, at
// the end of the work.
func TestSynthetic(t *testing.T) {
	work := func(context.Context, *spec.Job) (float64, error) { return 5000, nil }
	m, again := &loss.Synthetic{Steps: work, Seed: 3}, &loss.Synthetic{Steps: work, Seed: 3}
	lengths := map[int]bool{}
	for order := range 50 {
		j := &scheduler.JobState{Job: &spec.Job{}, Order: order}
		begin, ok := m.Log(t.Context(), j)
		if !ok || len(begin.Values) != 0 {
			t.Fatalf("%+v of a job that has done nothing", begin)
		}
		j.Done = 5000
		l, _ := m.Log(t.Context(), j)
		other, _ := again.Log(t.Context(), j)
		if len(l.Values) != int(5000/l.Every) || l.Values[len(l.Values)-1] != other.Values[len(other.Values)-1] {
			t.Fatalf("%d losses every %g steps, again %d", len(l.Values), l.Every, len(other.Values))
		}
		lengths[len(l.Values)] = true
		c, ok := loss.Fit(l.Values)
		if got := c.Converged(l.Least) * l.Every; !ok || math.Abs(got/5000-1) > 0.02 {
			t.Errorf("a job of 5000 steps converges after %g", got)
		}
		j.Done = 2500
		if half, _ := m.Log(t.Context(), j); len(half.Values) != int(2500/l.Every) {
			t.Errorf("%d losses half-way, %d at the end", len(half.Values), len(l.Values))
		}
	}
	if len(lengths) < 20 {
		t.Errorf("only %d different numbers of stretches", len(lengths))
	}
	for _, bad := range []float64{0, math.NaN(), math.Inf(1)} {
		none := &loss.Synthetic{Steps: func(context.Context, *spec.Job) (float64, error) { return bad, nil }}
		if l, ok := none.Log(t.Context(), &scheduler.JobState{Job: &spec.Job{}}); ok {
			t.Errorf("%+v of a job of %g steps", l, bad)
		}
	}
}
