package bench

import (
	"errors"
	"math"
	"testing"

	"github.com/pacer-ml/pacer/perfmodel"
	"github.com/pacer-ml/pacer/perfmodel/colocation"
	"github.com/pacer-ml/pacer/perfmodel/measured"
	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// estimateErrors are the errors of estimates for pairs of two unprofiled jobs, as fractions of the
// speed alone.
type estimateErrors struct {
	pairs      int
	sum, plain float64 // of the estimates; of the mean of what is known
	missed     int     // can run together but are said not to
}

func (s estimateErrors) mean() float64 { return s.sum / float64(s.pairs) }

// estimate compares an estimator with the whole table.
func estimate(tb testing.TB, rows []spec.Colocation, t *measured.Table, o colocation.Options) (s estimateErrors) {
	tb.Helper()
	alone := func(c spec.Config) (float64, error) {
		p, err := t.Predict(tb.Context(), c)
		return p.Throughput, err
	}
	e, err := colocation.NewEstimator(rows, alone, o)
	if err != nil {
		tb.Fatal(err)
	}
	o.Profiled = o.References // then only pairs without a reference are not known
	full, err := colocation.NewEstimator(rows, alone, o)
	if err != nil {
		tb.Fatal(err)
	}
	exact := colocation.New(rows)
	parts, n := 0.0, 0.0
	for _, r := range rows {
		a, err := alone(r.A)
		if err != nil {
			tb.Fatal(err)
		}
		parts, n = parts+r.RateA/a, n+1
	}
	for _, r := range rows {
		if e.Known(r.A, r.B) {
			if got, err := e.Beside(r.A, r.B); err != nil || got != r.RateA {
				tb.Errorf("%s beside %s was measured: %g, %v, want %g", r.A.Model.Name, r.B.Model.Name, got, err, r.RateA)
			}
		}
		if full.Known(r.A, r.B) {
			continue
		}
		a, _ := alone(r.A)
		want, _ := exact.Beside(r.A, r.B)
		got, err := e.Beside(r.A, r.B)
		if errors.Is(err, perfmodel.ErrNotCovered) {
			s.missed++
			continue
		}
		if err != nil {
			tb.Fatal(err)
		}
		s.pairs++
		s.sum += math.Abs(got-want) / a
		s.plain += math.Abs(parts/n - want/a)
	}
	return s
}

// With 16 of Gavel's 26 job types as references, estimates of how much speed other types keep in
// colocation improve with the number of measured colocations with references. From two per device
// type on they are better than the mean.
func TestColocationEstimates(t *testing.T) {
	_, _, table := gavelRun{input: gavelMakespan, cluster: gavelPhysical}.world(t)
	rows := gavelPairs(t, "simulation_throughputs.json")
	const seeds = 10
	last := math.Inf(1)
	for _, profiled := range []int{1, 2, 4, 8, 16} {
		var all estimateErrors
		for seed := range uint64(seeds) {
			s := estimate(t, rows, table, colocation.Options{References: 16, Profiled: profiled, Seed: seed})
			all.pairs += s.pairs
			all.sum += s.sum
			all.plain += s.plain
			all.missed += s.missed
		}
		t.Logf("%2d profiled: %d pairs off by %.3f of the speed alone, by the mean %.3f; %d said not to run together", profiled, all.pairs, all.mean(), all.plain/float64(all.pairs), all.missed)
		if profiled > 1 && all.sum >= all.plain || all.mean() > 1.05*last {
			t.Errorf("%d profiled: off by %.3f, by the mean %.3f, with fewer %.3f", profiled, all.mean(), all.plain/float64(all.pairs), last)
		}
		last = all.mean()
	}
}
