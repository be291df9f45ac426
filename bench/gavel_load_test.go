package bench

import (
	"math"
	"path/filepath"
	"testing"

	"github.com/pacer-ml/pacer/datasets"
	"github.com/pacer-ml/pacer/datasets/trace"
	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/perfmodel/spec/spectest"
	"github.com/pacer-ml/pacer/scheduler/report"
)

// gavelJobs generates jobs from the throughput table of simulations.
func gavelJobs(tb testing.TB, o trace.GavelOptions) []spec.Job {
	tb.Helper()
	rows, err := datasets.ReadGavelTable(tb.Context(), filepath.Join(spectest.Shared(tb), "data", "gavel", "throughputs", "simulation_throughputs.json"))
	if err != nil {
		tb.Fatal(err)
	}
	jobs, err := trace.GenerateGavel(rows, o)
	if err != nil {
		tb.Fatal(err)
	}
	return jobs
}

// A window of 1000 jobs of one device, at 4.0 jobs an hour on 36 devices of each type, is simulated
// in less than 0.5 s on one idle core.
func TestGavelWindow(t *testing.T) {
	_, cluster, table := gavelRun{input: gavelStatic, cluster: gavelLarge}.world(t)
	r := gavelRun{policy: "gavel-las", jobs: gavelJobs(t, trace.GavelOptions{Jobs: 8000, PerHour: 4}), score: report.Score{First: "4000", Last: "4999"}}
	out := r.simulate(t, cluster, table)
	s := report.Summarize(out, r.score)
	t.Logf("mean %.2f h, %d finished, utilisation %.2f, in %v", float64(s.AvgJCT)/3600, s.Finished, float64(s.Utilisation), out.Elapsed)
	if s.Finished != 1000 {
		t.Errorf("%d jobs of the window finish, want 1000", s.Finished)
	}
}

// Continuous runs in the published semantics, with the published simulator's own jobs of one device
// (seed 0) on 36 devices of each type, have means of the window within 3 %.
func TestGavelContinuous(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("takes half a minute")
	}
	_, cluster, table := gavelRun{input: gavelStatic, cluster: gavelLarge}.world(t)
	for _, c := range []struct {
		policy      string
		perHour     float64
		first, last spec.JobID
		there       float64 // hours
	}{
		{"gavel-las", 4, "1000", "1499", 14.71}, {"gavel-las:agnostic", 4, "1000", "1499", 20.88},
		{"gavel-las", 5.2, "1000", "1499", 16.89}, {"gavel-las:agnostic", 5.2, "1000", "1499", 25.02},
		{"gavel-las", 4, "4000", "4999", 17.12},
	} {
		r := gavelRun{mode: "gavel", policy: c.policy, jobs: gavelJobs(t, trace.GavelOptions{Jobs: 8000, PerHour: c.perHour}),
			score: report.Score{First: c.first, Last: c.last}}
		s := report.Summarize(r.simulate(t, cluster, table), r.score)
		here := float64(s.AvgJCT) / 3600
		t.Logf("%s, %g/h, jobs %s to %s: %.2f h, there %.2f h (%+.1f %%)", c.policy, c.perHour, c.first, c.last, here, c.there, 100*(here/c.there-1))
		if s.Finished < s.Jobs || math.Abs(here/c.there-1) > 0.03 {
			t.Errorf("%s, %g/h: %d of %d jobs finish, mean %.2f h, there %.2f h", c.policy, c.perHour, s.Finished, s.Jobs, here, c.there)
		}
	}
}
