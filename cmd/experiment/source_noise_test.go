package experiment

import (
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/pacer-ml/pacer/perfmodel/measured"
	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/scheduler"
)

// manyPlans are measured configurations of one model with a throughput of 8 samples/s.
func manyPlans(n int) (rows []spec.Measurement) {
	for i := range n {
		rows = append(rows, measuredOn("m", spec.Plan{DP: 1, MicroBatch: 8 * (i + 1)}.Normal(), spec.NewShape(1), float64(i+1)))
	}
	return rows
}

// TestNoise: ln(speed) has errors of the standard deviation asked for around the truth, the intervals have their 90 %
// of them, and they depend on seed and configuration alone.
func TestNoise(t *testing.T) {
	const n, sigma = 2000, 0.3
	rows := manyPlans(n)
	table := measured.New(rows)
	source := &Source{predictor: table, noise: sigma}
	p, again, other := source.noisy(1), source.noisy(1), source.noisy(2)
	sum, squares, inside, equal := 0.0, 0.0, 0, 0
	for i := range rows {
		got, err := p.Predict(t.Context(), rows[i].Config)
		if err != nil {
			t.Fatal(err)
		}
		exact, err := table.Predict(t.Context(), rows[i].Config)
		if err != nil {
			t.Fatal(err)
		}
		z := math.Log(got.Throughput / exact.Throughput)
		sum, squares = sum+z, squares+z*z
		if got.Lo <= exact.Throughput && exact.Throughput <= got.Hi {
			inside++
		}
		if q, _ := other.Predict(t.Context(), rows[i].Config); q.Throughput == got.Throughput {
			equal++
		}
	}
	// Bounds are four standard errors.
	if mean := sum / n; math.Abs(mean) > 4*sigma/math.Sqrt(n) {
		t.Errorf("mean error %g of ln(speed)", mean)
	}
	if sd := math.Sqrt(squares / n); math.Abs(sd/sigma-1) > 4/math.Sqrt(2*n) {
		t.Errorf("errors of standard deviation %g, want %g", sd, sigma)
	}
	if share := float64(inside) / n; math.Abs(share-0.9) > 4*math.Sqrt(0.9*0.1/n) {
		t.Errorf("%.3f of the intervals have the truth, want 0.9", share)
	}
	if equal > 0 {
		t.Errorf("%d configurations have one error with seeds 1 and 2", equal)
	}
	for _, i := range []int{n - 1, 0, n - 1} { // other order
		a, _ := p.Predict(t.Context(), rows[i].Config)
		if b, _ := again.Predict(t.Context(), rows[i].Config); a.Throughput != b.Throughput {
			t.Error("two errors of one configuration with one seed")
		}
	}
	if _, err := p.Predict(t.Context(), measuredOn("unknown", oneOf, spec.NewShape(1), 1).Config); !errors.Is(err, measured.ErrNotMeasured) {
		t.Errorf("error of the truth: %v", err)
	}
	if (&Source{predictor: table}).noisy(1) != source.predictor {
		t.Error("a belief without noise has other speeds than its source")
	}
}

// slowed is a colocator under which every job has a speed of 2 samples/s.
type slowed struct{}

func (slowed) Beside(a, b spec.Config) (float64, error) { return 2, nil }

// TestNoiseOfPairs: a job that shares devices has the error that it has alone.
func TestNoiseOfPairs(t *testing.T) {
	rows := manyPlans(2)
	source := &Source{predictor: measured.New(rows), noise: 0.3}
	source.pairs = source.noisyPairs(func(uint64) scheduler.Colocator { return slowed{} })
	oracle, ok := newOracle(source, &Source{pairs: func(uint64) scheduler.Colocator { return slowed{} }}, 1).(scheduler.Colocator)
	if !ok {
		t.Fatal("no speeds of pairs")
	}
	alone, err := source.noisy(1).Predict(t.Context(), rows[0].Config)
	if err != nil {
		t.Fatal(err)
	}
	beside, err := oracle.Beside(rows[0].Config, rows[1].Config)
	if want := 2 * alone.Throughput / 8; err != nil || math.Abs(beside-want) > 1e-12 {
		t.Errorf("%g samples/s, %v; want %g", beside, err, want)
	}
}

// TestNoisyBelief: noisy:SIGMA is the truth with errors.
func TestNoisyBelief(t *testing.T) {
	simulation := func(truth, belief string) (*Simulation, error) {
		return New(t.Context(), Options{Workload: "synthetic:jobs=2,models=BERT-large", Cluster: "1x8xH100", Policy: "pacer", Truth: truth, Belief: belief, Seed: 3})
	}
	s, err := simulation("fitted:analytic", "noisy:0.3")
	if err != nil {
		t.Fatal(err)
	}
	f, err := s.Runs()[0].Frame(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	g := &s.Cluster.Groups[0]
	c := spec.Config{Model: s.Jobs[0].Model, SeqLen: s.Jobs[0].Model.SeqLen, Accelerator: g.Accelerator, Link: g.Link, Plan: s.Jobs[0].Plan, Shape: spec.NewShape(s.Jobs[0].Devices)}
	exact, err := s.truth.predictor.Predict(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	got, err := f.Deps.Oracle.Predict(t.Context(), c)
	if want := exact.Throughput * (noise{0.3, 3}).factor(&c); err != nil || math.Abs(got.Throughput/want-1) > 1e-12 {
		t.Errorf("policies believe %g samples/s, %v; want %g", got.Throughput, err, want)
	}
	for _, c := range []struct{ truth, belief, why string }{
		{"fitted:analytic", "noisy:x", `"x" is not a standard deviation of ln(speed) in 0..3`},
		{"fitted:analytic", "noisy:-1", `"-1" is not a standard deviation`},
		{"fitted:analytic", "noisy:NaN", `"NaN" is not a standard deviation`},
		{"fitted:analytic", "noisy:", `"" is not a standard deviation`},
		{"duration", "noisy:0.3", "cannot be used with"},
	} {
		if _, err := simulation(c.truth, c.belief); err == nil || !strings.Contains(err.Error(), c.why) {
			t.Errorf("%s under %s: %v, want %s", c.belief, c.truth, err, c.why)
		}
	}
}
