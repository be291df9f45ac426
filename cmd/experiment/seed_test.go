package experiment

import (
	"fmt"
	"slices"
	"testing"

	"github.com/pacer-ml/pacer/perfmodel/measured"
	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// TestForSeedDrawsJobs: another seed draws other synthetic jobs, the same seed the same ones.
func TestForSeedDrawsJobs(t *testing.T) {
	base, err := New(t.Context(), Options{Workload: "synthetic:jobs=20", Cluster: "1x8xH100", Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	submissions := func(seed uint64) (out []string) {
		s, err := base.ForSeed(t.Context(), seed)
		if err != nil {
			t.Fatal(err)
		}
		if s.Seed != seed {
			t.Errorf("seed %d, want %d", s.Seed, seed)
		}
		for _, j := range s.Jobs {
			out = append(out, fmt.Sprint(j.Submit, j.Devices))
		}
		return out
	}
	first := submissions(1)
	if !slices.Equal(submissions(1), first) {
		t.Error("two sets of jobs with one seed")
	}
	if slices.Equal(submissions(2), first) {
		t.Error("seeds 1 and 2 have the same jobs")
	}
}

// TestProfiledPairsBySeed: a belief that knows few pairs draws them by the seed of the run, not
// by that of the study.
func TestProfiledPairsBySeed(t *testing.T) {
	var alone []spec.Measurement
	var pairs []spec.Colocation
	for i := range 6 {
		alone = append(alone, measuredOn(fmt.Sprint("m", i), spec.Plan{DP: 1, MicroBatch: 8}, spec.NewShape(1), 1))
	}
	for i, a := range alone {
		for j, b := range alone {
			pairs = append(pairs, spec.Colocation{A: a.Config, B: b.Config, RateA: float64(1 + (i*j)%5), RateB: float64(1 + (i*j)%5)})
		}
	}
	source := &Source{Name: "gavel:FILE,profiled=1,references=2"}
	source.setTable(measured.New(alone))
	s := &Simulation{Seed: 1}
	if err := s.estimatePairs(t.Context(), source, pairs, "profiled=1,references=2"); err != nil {
		t.Fatal(err)
	}
	rates := func(seed uint64) (out []float64) {
		c := source.pairs(seed)
		for i := range pairs {
			rate, _ := c.Beside(pairs[i].A, pairs[i].B)
			out = append(out, rate)
		}
		return out
	}
	if !slices.Equal(rates(1), rates(1)) {
		t.Error("one seed, two beliefs")
	}
	if slices.Equal(rates(1), rates(2)) {
		t.Error("seeds 1 and 2 profile the same pairs")
	}
}
