package family

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// wavy returns n configurations, and residuals that go up and down with two of
// their dimensions.
func wavy(n int) (at []point, e, sd []float64) {
	for i := range n {
		c := analyticConfig(spec.Plan{DP: 1 << (i % 5), TP: 1 << (i / 5 % 4), MicroBatch: 1 + i/20, Precision: spec.BF16})
		p := pointOf(&c)
		at, e, sd = append(at, p), append(e, 0.1*math.Sin(p.num[2])+0.05*p.num[3]), append(sd, 0)
	}
	return at, e, sd
}

func residualOf(t testing.TB, at []point, e, sd []float64) *residual {
	t.Helper()
	r := &residual{at: at, e: e, sd: sd}
	if err := r.choose(context.Background(), correlations(at)); err != nil {
		t.Fatal(err)
	}
	return r
}

// TestResidualLeftOut compares the short cut with processes that never saw the
// row.
func TestResidualLeftOut(t *testing.T) {
	at, e, sd := wavy(30)
	sd[4] = 0.3
	r := residualOf(t, at, e, sd)
	off, spread, err := r.leftOut(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	for i := range at {
		without, _ := withKernel(slices.Delete(slices.Clone(at), i, i+1), slices.Delete(slices.Clone(e), i, i+1),
			slices.Delete(slices.Clone(sd), i, i+1), r.kernel)
		mean, variance := without.predict(&at[i])
		want := math.Sqrt(variance + residualNoise*residualNoise + sd[i]*sd[i])
		if math.Abs(off[i]-(e[i]-mean)) > 1e-9 || math.Abs(spread[i]-want) > 1e-9 {
			t.Errorf("row %d: off %g +- %g, without it %g +- %g", i, off[i], spread[i], e[i]-mean, want)
		}
	}
}

// Far from every row nothing is corrected, and what is uncertain is the whole
// of the process.
func TestResidualFallsBack(t *testing.T) {
	at, e, sd := wavy(30)
	r := residualOf(t, at, e, sd)
	far := at[0]
	for k := range far.num {
		far.num[k] += 40
	}
	mean, variance := r.predict(&far)
	if math.Abs(mean) > 1e-6 || math.Abs(variance-r.kernel.SD*r.kernel.SD) > 1e-9 {
		t.Errorf("far from the rows: %g, variance %g, want 0 and %g", mean, variance, r.kernel.SD*r.kernel.SD)
	}
	if mean, variance = r.predict(&at[7]); math.Abs(mean-e[7]) > 0.04 || variance > r.kernel.SD*r.kernel.SD/2 {
		t.Errorf("at a row: %g, variance %g, measured %g", mean, variance, e[7])
	}
}

// Above residualRows the near rows answer: nearly what all rows together would,
// never surer, and left out as those do that never saw the row.
func TestResidualOfManyRows(t *testing.T) {
	at, e, sd := wavy(residualRows + 1)
	rng := rand.New(rand.NewPCG(3, 4))
	for i := range at {
		at[i].num[10] = 12 + rng.Float64() // sequence
		e[i] += residualNoise * rng.NormFloat64()
	}
	k := kernel{0.1, 1}
	many, _ := withKernel(at, e, sd, k)
	all := &residual{at: at, e: e, sd: sd, kernel: k}
	if _, ok := all.fit(correlations(at)(k.Steep)); !ok || !many.many() {
		t.Fatal("not fitted")
	}
	exact := func(p *point) (mean, variance float64) {
		c := make([]float64, len(at))
		for i := range at {
			c[i] = k.at(p.distance(&at[i]))
		}
		mean = dot(c, all.alpha)
		all.chol.forward(c)
		return mean, k.SD*k.SD - dot(c, c)
	}
	for i := 0; i < len(at); i += 50 {
		p := at[i]
		p.num[2] += 0.5
		mean, variance := many.predict(&p)
		want, least := exact(&p)
		if math.Abs(mean-want) > 0.4*math.Sqrt(least) || variance < least-1e-12 || variance > 1.3*least {
			t.Errorf("row %d: %g, variance %g, of all rows %g, %g", i, mean, variance, want, least)
		}
	}
	off, spread, err := many.leftOut(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(at); i += 100 {
		without, _ := withKernel(slices.Delete(slices.Clone(at), i, i+1), slices.Delete(slices.Clone(e), i, i+1), slices.Delete(slices.Clone(sd), i, i+1), k)
		mean, variance := without.predict(&at[i])
		if want := math.Sqrt(variance + residualNoise*residualNoise); math.Abs(off[i]-(e[i]-mean)) > 0.4*want || math.Abs(spread[i]/want-1) > 0.1 {
			t.Errorf("row %d: off %g +- %g, without it %g +- %g", i, off[i], spread[i], e[i]-mean, want)
		}
	}
}
