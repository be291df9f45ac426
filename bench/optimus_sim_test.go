package bench

import (
	"testing"
	"time"

	"github.com/pacer-ml/pacer/perfmodel"
	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/planner"
	"github.com/pacer-ml/pacer/scheduler/compat/pollux"
	"github.com/pacer-ml/pacer/scheduler/goodput"
	"github.com/pacer-ml/pacer/scheduler/loss"
	"github.com/pacer-ml/pacer/scheduler/online"
	"github.com/pacer-ml/pacer/scheduler/policy"
	"github.com/pacer-ml/pacer/scheduler/report"
	"github.com/pacer-ml/pacer/scheduler/sim"
)

// profiledT4 returns family optimus and at most 8 rows of each model on T4, measured by the authors
// of Pollux; Sia's tables for T4 are the same.
func profiledT4(t *testing.T) (f perfmodel.Family, profiled []spec.Measurement) {
	t.Helper()
	f = mustFamily(t, "optimus")
	for key, rows := range perfmodel.GroupByKey(importAll(t, "sia")) {
		if key.Accelerator != "T4" {
			continue
		}
		fit, _, err := perfmodel.Split(f, rows, 8)
		if err != nil {
			t.Fatal(err)
		}
		profiled = append(profiled, fit...)
	}
	return f, profiled
}

// Optimus as published is compared with the variant that knows the remaining steps and speed of
// each job. As published, remaining steps follow from losses with 2 % noise, and speeds from 8 rows
// of each model and from observed step times with 2 % noise. It restarts jobs less often than the
// variant, which decides anew every round.
func TestOptimusFitted(t *testing.T) {
	t.Parallel()
	jobs, tables := polluxJobs(t, "workloads", "workload-6.csv"), goodputTables(t, "pollux")
	f, rows := profiledT4(t)
	oracle := report.Summarize(runPollux(t, "pollux", "optimus-oracle", jobs, tables), report.Score{})
	t.Logf("optimus-oracle: average JCT %.0f s, makespan %.0f s, %d restarts", float64(oracle.AvgJCT), float64(oracle.Makespan), oracle.Restarts)
	for _, c := range []struct {
		name  string
		learn bool
	}{{"speeds known", false}, {"speeds fitted", true}} {
		t.Run(c.name, func(t *testing.T) {
			var jct, span, restarts []float64
			for seed := range uint64(5) {
				r := runPolluxWith(t, "pollux", "optimus", jobs, tables, func(d *policy.Deps, s *sim.Config) {
					d.Losses = &loss.Synthetic{Steps: s.Truth.Steps, Sigma: 0.02, Seed: seed}
					if !c.learn {
						return
					}
					o, err := online.New(t.Context(), online.Options{Family: f, Rows: rows, Every: 10 * time.Minute, Planner: planner.Options{Space: goodput.Space{Tables: tables.With(goodput.Adjustment{Limits: pollux.Limits})}}})
					if err != nil {
						t.Fatal(err)
					}
					d.Oracle, s.Observations = o, &sim.Observations{Learner: o, Sigma: 0.02, Seed: seed}
				})
				s := report.Summarize(r, report.Score{})
				if s.Finished != len(jobs) {
					t.Errorf("seed %d: %d of %d jobs finished", seed, s.Finished, len(jobs))
				}
				if r.Learned != nil {
					t.Logf("seed %d: %+v", seed, *r.Learned)
				}
				jct, span, restarts = append(jct, float64(s.AvgJCT)), append(span, float64(s.Makespan)), append(restarts, float64(s.Restarts))
			}
			mean := func(v []float64) report.Interval { return report.StudentT(v, 0.95) }
			t.Logf("average JCT %.0f ± %.0f s, makespan %.0f ± %.0f s, %.0f ± %.0f restarts of %d jobs", mean(jct).Mean, mean(jct).HalfWidth(),
				mean(span).Mean, mean(span).HalfWidth(), mean(restarts).Mean, mean(restarts).HalfWidth(), len(jobs))
			if n := mean(restarts).Mean; n > report.Number(oracle.Restarts) {
				t.Errorf("%.0f restarts, the oracle variant has %d", n, oracle.Restarts)
			}
		})
	}
}
