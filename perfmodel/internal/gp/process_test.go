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
	if err := r.choose(context.Background(), correlations(at)); err != nil {
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
		want := math.Sqrt(variance + RepeatSD*RepeatSD + sd[i]*sd[i])
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
		far.Num[k] += 40
	}
	mean, variance := r.Predict(&far)
	if math.Abs(mean) > 1e-6 || math.Abs(variance-r.Kernel.SD*r.Kernel.SD) > 1e-9 {
		t.Errorf("far from the rows: %g, variance %g, want 0 and %g", mean, variance, r.Kernel.SD*r.Kernel.SD)
	}
	if mean, variance = r.Predict(&at[7]); math.Abs(mean-e[7]) > 0.04 || variance > r.Kernel.SD*r.Kernel.SD/2 {
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
	k := Kernel{0.1, 1}
	many, _ := NewProcess(at, e, sd, k)
	all := &Process{At: at, Off: e, ExtraSD: sd, Kernel: k}
	if _, ok := all.fit(correlations(at)(k.Steep)); !ok || !many.Large() {
		t.Fatal("not fitted")
	}
	exact := func(p *Point) (mean, variance float64) {
		c := make([]float64, len(at))
		for i := range at {
			c[i] = k.At(p.Distance(&at[i]))
		}
		mean = Dot(c, all.alpha)
		all.Chol.Forward(c)
		return mean, k.SD*k.SD - Dot(c, c)
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
