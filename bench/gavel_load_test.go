package bench

import (
	"math"
	"os"
	"path/filepath"
	"testing"

	"github.com/pacer-ml/pacer/datasets"
	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/perfmodel/spec/spectest"
	"github.com/pacer-ml/pacer/scheduler/report"
)

// gavelJobs generates jobs on the table of simulations.
func gavelJobs(tb testing.TB, o datasets.GavelOptions) []spec.Job {
	tb.Helper()
	rows, err := datasets.ReadGavelTable(tb.Context(), filepath.Join(spectest.Shared(tb), "data", "gavel", "throughputs", "simulation_throughputs.json"))
	if err != nil {
		tb.Fatal(err)
	}
	jobs, err := datasets.GenerateGavel(rows, o)
	if err != nil {
		tb.Fatal(err)
	}
	return jobs
}

// A window of a thousand jobs of one device each, at 4.0 jobs an hour on 36 devices
// of each type, is simulated in less than half a second of one idle core.
func TestGavelWindow(t *testing.T) {
	_, cluster, table := gavelRun{input: gavelStatic, cluster: gavelLarge}.world(t)
	r := gavelRun{policy: "gavel-las", jobs: gavelJobs(t, datasets.GavelOptions{Jobs: 8000, PerHour: 4}), score: report.Score{First: "4000", Last: "4999"}}
	out := r.simulate(t, cluster, table)
	s := report.Summarize(out, r.score)
	t.Logf("mean %.2f h, %d finished, utilisation %.2f, in %v", float64(s.AvgJCT)/3600, s.Finished, float64(s.Utilisation), out.Elapsed)
	if s.Finished != 1000 {
		t.Errorf("%d jobs of the window finish, want 1000", s.Finished)
	}
}

// How much earlier jobs are done when it is known how fast they are on every type,
// over load: jobs 1000 to 1499 of generated ones of one device, three seeds, in the
// published semantics, in which nothing else knows speeds.
func TestGavelAwareness(t *testing.T) {
	if os.Getenv("PACER_SOAK") == "" {
		t.Skip("takes minutes; set PACER_SOAK=1")
	}
	_, cluster, table := gavelRun{input: gavelStatic, cluster: gavelLarge}.world(t)
	for _, perHour := range []float64{2, 4, 5.2} {
		var ratios []float64
		for seed := range uint64(3) {
			r := gavelRun{jobs: gavelJobs(t, datasets.GavelOptions{Seed: seed, Jobs: 6000, PerHour: perHour}), score: report.Score{First: "1000", Last: "1499"}, mode: "gavel"}
			r.policy = "gavel-las"
			aware := report.Summarize(r.simulate(t, cluster, table), r.score)
			r.policy = "gavel-las:agnostic"
			agnostic := report.Summarize(r.simulate(t, cluster, table), r.score)
			ratios = append(ratios, float64(agnostic.AvgJCT/aware.AvgJCT))
			t.Logf("%g/h, seed %d: aware %.2f h, agnostic %.2f h, ratio %.2f", perHour, seed, float64(aware.AvgJCT)/3600, float64(agnostic.AvgJCT)/3600, ratios[seed])
			if aware.Finished != 500 || agnostic.Finished != 500 || ratios[seed] <= 1 {
				t.Errorf("%d and %d jobs finish; knowing speeds makes them %g times as quick", aware.Finished, agnostic.Finished, ratios[seed])
			}
		}
		mean := (ratios[0] + ratios[1] + ratios[2]) / 3
		sd := math.Sqrt((sq(ratios[0]-mean) + sq(ratios[1]-mean) + sq(ratios[2]-mean)) / 2)
		t.Logf("%g/h: ratio %.2f +- %.2f (95 %%, Student's t)", perHour, mean, 4.303*sd/math.Sqrt(3))
	}
}

func sq(x float64) float64 { return x * x }
