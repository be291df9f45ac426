package gp

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/pacer-ml/pacer/perfmodel/internal/perftest"
	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// wavy returns n configurations, and residuals that are periodic in two of their dimensions.
func wavy(n int) (at []Point, e, sd []float64) {
	for i := range n {
		c := perftest.GPT(spec.Plan{DP: 1 << (i % 5), TP: 1 << (i / 5 % 4), MicroBatch: 1 + i/20, Precision: spec.BF16})
		p := PointOf(&c)
		at, e, sd = append(at, p), append(e, 0.1*math.Sin(p.Num[2])+0.05*p.Num[3]), append(sd, 0)
	}
	return at, e, sd
}

func residualOf(t testing.TB, at []Point, e, sd []float64) *Process {
	t.Helper()
	r := &Process{At: at, Off: e, ExtraSD: sd}
	if err := r.choose(context.Background(), Untaught()); err != nil {
		t.Fatal(err)
	}
	return r
}

// TestResidualLeftOut compares the formula with processes that were not fitted to the row.
func TestResidualLeftOut(t *testing.T) {
	at, e, sd := wavy(30)
	sd[4] = 0.3
	r := residualOf(t, at, e, sd)
	off, spread, err := r.LeftOut(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	for i := range at {
		without, _ := NewProcess(slices.Delete(slices.Clone(at), i, i+1), slices.Delete(slices.Clone(e), i, i+1),
			slices.Delete(slices.Clone(sd), i, i+1), r.Kernel)
		mean, variance := without.Predict(&at[i])
		want := math.Sqrt(variance + r.Kernel.Noise*r.Kernel.Noise + sd[i]*sd[i])
		if math.Abs(off[i]-(e[i]-mean)) > 1e-9 || math.Abs(spread[i]-want) > 1e-9 {
			t.Errorf("row %d: off %g +- %g, without it %g +- %g", i, off[i], spread[i], e[i]-mean, want)
		}
	}
}

// TestResidualFallsBack: far from every row the mean is 0 and the variance is that of the process.
func TestResidualFallsBack(t *testing.T) {
	at, e, sd := wavy(30)
	r := residualOf(t, at, e, sd)
	far := at[0]
	for k := range far.Num {
		far.Num[k] += 400
	}
	far.Cat[1] = "another device"
	mean, variance := r.Predict(&far)
	if math.Abs(mean) > 1e-6 || math.Abs(variance-r.Kernel.Variance(&far)) > 1e-9 {
		t.Errorf("far from the rows: %g, variance %g, want 0 and %g", mean, variance, r.Kernel.Variance(&far))
	}
	if mean, variance = r.Predict(&at[7]); math.Abs(mean-e[7]) > 0.04 || variance > r.Kernel.Variance(&at[7])/2 {
		t.Errorf("at a row: %g, variance %g, measured %g", mean, variance, e[7])
	}
}

// TestResidualOfManyRows: with more than ExactRows rows, predictions from the near rows are close to those from
// all rows, with no smaller variance, and left-out predictions do not use the row.
func TestResidualOfManyRows(t *testing.T) {
	at, e, sd := wavy(ExactRows + 1)
	rng := rand.New(rand.NewPCG(3, 4))
	for i := range at {
		at[i].Num[10] = 12 + rng.Float64() // sequence
		e[i] += RepeatSD * rng.NormFloat64()
	}
	k := usual
	k.Site = 0.02
	many, _ := NewProcess(at, e, sd, k)
	all := &Process{At: at, Off: e, ExtraSD: sd, Kernel: k}
	if err := all.fit(); err != nil || !many.Large() {
		t.Fatal("not fitted")
	}
	exact := func(p *Point) (mean, variance float64) {
		c := make([]float64, len(at))
		for i := range at {
			c[i] = k.Covariance(p, &at[i])
		}
		mean = Dot(c, all.alpha)
		all.Chol.Forward(c)
		return mean, k.Variance(p) - Dot(c, c)
	}
	for i := 0; i < len(at); i += 50 {
		p := at[i]
		p.Num[2] += 0.5
		mean, variance := many.Predict(&p)
		want, least := exact(&p)
		if math.Abs(mean-want) > 0.4*math.Sqrt(least) || variance < least-1e-12 || variance > 1.3*least {
			t.Errorf("row %d: %g, variance %g, of all rows %g, %g", i, mean, variance, want, least)
		}
	}
	off, spread, err := many.LeftOut(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(at); i += 100 {
		without, _ := NewProcess(slices.Delete(slices.Clone(at), i, i+1), slices.Delete(slices.Clone(e), i, i+1), slices.Delete(slices.Clone(sd), i, i+1), k)
		mean, variance := without.Predict(&at[i])
		if want := math.Sqrt(variance + RepeatSD*RepeatSD); math.Abs(off[i]-(e[i]-mean)) > 0.4*want || math.Abs(spread[i]/want-1) > 0.1 {
			t.Errorf("row %d: off %g +- %g, without it %g +- %g", i, off[i], spread[i], e[i]-mean, want)
		}
	}
}

// TestSlopes compares the derivatives of the evidence with differences, for rows of two sites with and without experts, and
// repeats.
func TestSlopes(t *testing.T) {
	at, e, sd := wavy(24)
	for i := range at {
		if i%3 == 0 {
			at[i].Num[experts], at[i].Num[expertFFN] = 3, 9
		}
		if i%5 == 0 {
			at[i].Cat[1] = "another device"
		}
		sd[i] = 0.01 * float64(i%2)
	}
	trend := make([]float64, len(at)*len(at))
	for i := range at {
		for j := range i + 1 {
			trend[i*len(at)+j] = 0.01 * at[i].Num[2] * at[j].Num[2]
		}
	}
	s := newSearch(Untaught(), &Process{At: at, Off: e, ExtraSD: sd, trend: trend, repeats: []Repeats{{-0.1, 0.1}, {-0.2, 0, 0.05, 0.15}, {0, 0}}})
	x := make([]float64, hypers)
	for i := range x {
		x[i] = 0.3 * math.Sin(float64(i))
	}
	s.at(x)
	slopes := slices.Clone(s.slope)
	for i := range x {
		const step = 1e-5
		cost := func(by float64) float64 {
			to := slices.Clone(x)
			to[i] += by
			s.at(to)
			return s.cost
		}
		if want := (cost(step) - cost(-step)) / (2 * step); math.Abs(slopes[i]-want) > 1e-5*(1+math.Abs(want)) {
			t.Errorf("parameter %d: %g, differences give %g", i, slopes[i], want)
		}
	}
}

// TestLearn: a kernel learnt from rows that one drew is more probable than that without training, and reaches further
// in the dimension in which the drawn residuals do not vary.
func TestLearn(t *testing.T) {
	truth := usual
	truth.Spread, truth.Noise, truth.Weights[2], truth.Weights[3] = 0.25, 0.01, 0.004, 0.6
	rng := rand.New(rand.NewPCG(5, 6))
	var tasks []Task
	for range 6 {
		at, e, sd := wavy(60)
		r := &Process{At: at, Off: e, ExtraSD: sd, Kernel: truth}
		if err := r.fit(); err != nil {
			t.Fatal(err)
		}
		for i := range e {
			e[i] = rng.NormFloat64()
		}
		r.Chol.Correlate(e)
		tasks = append(tasks, Task{At: at, Off: e})
	}
	h, err := Learn(t.Context(), tasks)
	if err != nil {
		t.Fatal(err)
	}
	k := h.Mean
	if math.Abs(math.Log(k.Spread/truth.Spread)) > 0.4 || k.Weights[2] > 0.04 || k.Weights[3] < 0.3 {
		t.Errorf("spread %.3f, weights of dp %.3f and tp %.3f; the rows were drawn with %.3f, %.3f, %.3f", k.Spread, k.Weights[2], k.Weights[3], truth.Spread, truth.Weights[2], truth.Weights[3])
	}
	if none, err := Learn(t.Context(), nil); err != nil || none.Mean != usual {
		t.Errorf("without tasks %+v, %v", none, err)
	}
}

// TestSite: rows of a site that are all slow say so of its other configurations, and nothing of another site.
func TestSite(t *testing.T) {
	at, e, sd := wavy(10)
	for i := range e {
		e[i] = 0.7
	}
	r := residualOf(t, at, e, sd)
	far := at[0]
	for k := range far.Num {
		far.Num[k] += 4
	}
	other := far
	other.Cat[1], other.Cat[0] = "another device", "another model"
	same, _ := r.Predict(&far)
	apart, _ := r.Predict(&other)
	if same < 0.35 || apart > same-0.1 {
		t.Errorf("rows twice as slow: %.2f far from them at their site, %.2f at another", same, apart)
	}
}
