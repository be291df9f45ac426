package bench

import (
	"context"
	"math"
	"path/filepath"
	"testing"
	"time"

	"github.com/pacer-ml/pacer/datasets"
	"github.com/pacer-ml/pacer/datasets/trace"
	"github.com/pacer-ml/pacer/perfmodel/colocation"
	"github.com/pacer-ml/pacer/perfmodel/measured"
	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/perfmodel/spec/spectest"
	"github.com/pacer-ml/pacer/planner"
	"github.com/pacer-ml/pacer/scheduler"
	"github.com/pacer-ml/pacer/scheduler/policy"
	"github.com/pacer-ml/pacer/scheduler/policy/gavel"
	"github.com/pacer-ml/pacer/scheduler/report"
	"github.com/pacer-ml/pacer/scheduler/sim"
)

// gavelRun is a simulation of a workload of Gavel's baselines, with its throughput table as truth
// and belief.
type gavelRun struct {
	mode      string // as --compat, "" = Pacer's own semantics
	policy    string
	input     string
	cluster   string
	startCost time.Duration
	seed      uint64
	jobs      []spec.Job   // instead of the input's
	score     report.Score // jobs the run is about
}

// world returns the jobs, the cluster and the table.
func (r gavelRun) world(tb testing.TB) ([]spec.Job, spec.Cluster, *measured.Table) {
	tb.Helper()
	shared := spectest.Shared(tb)
	w, err := trace.Open(tb.Context(), filepath.Join(shared, "baselines", "gavel", "inputs", r.input), "gavel")
	if err != nil || len(w.Bad) > 0 {
		tb.Fatal(err, w.Bad)
	}
	rows, err := datasets.ReadGavelTable(context.Background(), filepath.Join(shared, "data", "gavel", "throughputs", "simulation_throughputs.json"))
	if err != nil {
		tb.Fatal(err)
	}
	cluster := mustCluster(tb, r.cluster)
	return w.Jobs, cluster, measured.New(rows)
}

// oracleOf predicts the rows of a table and no other configuration.
func oracleOf(t *measured.Table) scheduler.Oracle {
	return planner.New(t, planner.Options{Space: planner.NewMeasured(t.Configs())})
}

func (r gavelRun) run(tb testing.TB) *sim.Result {
	tb.Helper()
	jobs, cluster, t := r.world(tb)
	r.jobs = jobs
	return r.simulate(tb, cluster, t)
}

// simulate runs r.jobs.
func (r gavelRun) simulate(tb testing.TB, cluster spec.Cluster, t *measured.Table) *sim.Result {
	tb.Helper()
	c := sim.Config{Cluster: cluster, Jobs: r.jobs, PolicyName: r.policy, Score: r.score.Has}
	oracle := pairedOracle{oracleOf(t).(*planner.Planner), colocation.New(gavelPairs(tb, "simulation_throughputs.json"))}
	c.Truth = sim.Predicted{Predictor: t, Cluster: cluster, Pairs: oracle}
	if r.startCost > 0 {
		c.Costs = sim.PerStart(func(spec.Job) time.Duration { return r.startCost })
	}
	d := policy.Deps{Oracle: oracle, Seed: r.seed}
	if r.mode != "" {
		m := mustMode(tb, r.mode)
		parts := m.Parts()
		c.Round, c.Rules, d.Variants = m.Round, parts.Rules, parts.Variants
		d.Placer = mustPlacer(tb, parts, m.Placement)
	}
	c.Policy = mustPolicy(tb, mustSpec(tb, r.policy), d)
	return mustSimulate(tb, c)
}

const (
	gavelLAS      = "trace_max_min_fairness.trace.csv"
	gavelMakespan = "trace_minimize_makespan.trace.csv"
	gavelStatic   = "static100_multi_seed0.csv"
	gavelLarge    = "v100=36,p100=36,k80=36"
	gavelPhysical = "v100=8,p100=16,k80=24"
)

// gavelJCTs returns the completion times of a run of the published simulator, by job.
func gavelJCTs(t *testing.T, name string) map[spec.JobID]float64 {
	t.Helper()
	out := map[spec.JobID]float64{}
	for _, row := range spectest.Table(t, "baselines/gavel/runs/"+name+".jobs.csv") {
		out[spec.JobID(row["job_id"])] = number(t, row["jct_s"])
	}
	return out
}

// Under --compat gavel jobs complete as in the published simulator; package compat has its rules.
// Policies that solve linear programmes may pick another of several optima, so their means are
// compared.
func TestGavelCompat(t *testing.T) {
	for _, c := range []struct {
		policy, input, run string
		equal              int     // jobs that complete within 0.01 s of when they did there
		mean, makespan     float64 // greatest relative differences, 0 = not compared
	}{
		{"gavel-fifo", gavelMakespan, "trace_minimize_makespan_single_fifo_perf_c8-16-24_seed0", 100, 0, 0},
		{"gavel-fifo", gavelLAS, "trace_max_min_fairness_single_fifo_perf_c8-16-24_seed0", 96, 0, 0},
		{"isolated", gavelLAS, "trace_max_min_fairness_single_isolated_c8-16-24_seed0", 96, 0, 0},
		{"gavel-las", gavelLAS, "trace_max_min_fairness_single_max_min_fairness_perf_c8-16-24_seed0", 0, 0.03, 0},
		{"gavel-las:agnostic:centre", gavelLAS, "trace_max_min_fairness_single_max_min_fairness_c8-16-24_seed0", 0, 0.03, 0},
		{"gavel-ftf:agnostic", gavelLAS, "trace_max_min_fairness_single_finish_time_fairness_c8-16-24_seed0", 0, 0.03, 0},
		{"gavel-ftf", gavelLAS, "trace_max_min_fairness_single_finish_time_fairness_perf_c8-16-24_seed0", 0, 0.03, 0},
		{"gavel-makespan", gavelMakespan, "trace_minimize_makespan_single_min_total_duration_perf_c8-16-24_seed0", 0, 0, 0.03},
		{"gavel-makespan:agnostic", gavelMakespan, "trace_minimize_makespan_single_min_total_duration_c8-16-24_seed0", 0, 0, 0.03},
		{"gavel-las", gavelMakespan, "trace_minimize_makespan_single_max_min_fairness_perf_c8-16-24_seed0", 0, 0.03, 0.03},
		{"gavel-las:agnostic:centre", gavelMakespan, "trace_minimize_makespan_single_max_min_fairness_c8-16-24_seed0", 0, 0.03, 0.03},
	} {
		t.Run(c.policy+"/"+c.input, func(t *testing.T) {
			r := gavelRun{mode: "gavel", policy: c.policy, input: c.input, cluster: gavelPhysical}.run(t)
			want := gavelJCTs(t, c.run)
			equal := 0
			var mean, meanWant, last, lastWant float64
			for _, j := range r.Jobs {
				there := want[j.Job.ID]
				if !j.Finished || there == 0 {
					t.Fatalf("job %s: finished %v, there after %g s", j.Job.ID, j.Finished, there)
				}
				if math.Abs(j.JCT().Seconds()-there) < 0.01 {
					equal++
				}
				mean, meanWant = mean+j.JCT().Seconds()/float64(len(want)), meanWant+there/float64(len(want))
				last, lastWant = max(last, j.End.Seconds()), max(lastWant, j.Job.Submit.Seconds()+there)
			}
			t.Logf("%d of %d jobs equal; mean %.4f h, there %.4f; makespan %.4f h, there %.4f; %v",
				equal, len(want), mean/3600, meanWant/3600, last/3600, lastWant/3600, r.Elapsed)
			if equal < c.equal {
				t.Errorf("%d jobs are equal, want %d", equal, c.equal)
			}
			if d := math.Abs(mean/meanWant - 1); c.mean > 0 && d > c.mean {
				t.Errorf("the mean is %.2f %% off, want at most %g %%", 100*d, 100*c.mean)
			}
			if d := math.Abs(last/lastWant - 1); c.makespan > 0 && d > c.makespan {
				t.Errorf("the makespan is %.2f %% off, want at most %g %%", 100*d, 100*c.makespan)
			}
		})
	}
}

// In Pacer's semantics, jobs complete earlier on average, although every start costs 30 s, which
// the published simulator leaves out.
func TestGavelDefaults(t *testing.T) {
	for _, input := range []struct{ name, cluster string }{
		{gavelLAS, gavelPhysical}, {gavelMakespan, gavelPhysical}, {gavelStatic, gavelLarge},
	} {
		for _, p := range []string{"gavel-las", "gavel-ftf", "gavel-las:agnostic"} {
			t.Run(p+"/"+input.name, func(t *testing.T) {
				r := gavelRun{policy: p, input: input.name, cluster: input.cluster, startCost: 30 * time.Second}
				got := report.Summarize(r.run(t), report.Score{})
				r.mode, r.startCost = "gavel", 0
				there := report.Summarize(r.run(t), report.Score{})
				t.Logf("mean %.3f h with %d restarts, as there %.3f h with %d", float64(got.AvgJCT)/3600, got.Restarts, float64(there.AvgJCT)/3600, there.Restarts)
				if got.Finished != got.Jobs || got.AvgJCT >= there.AvgJCT {
					t.Errorf("%d of %d jobs finish, after %.0f s on average; as there after %.0f s", got.Finished, got.Jobs, float64(got.AvgJCT), float64(there.AvgJCT))
				}
			})
		}
	}
}

// The least makespan under fractional sharing of devices is that of an independent solver (HiGHS,
// baselines/gavel/README.md).
func TestGavelMakespanBound(t *testing.T) {
	for _, c := range []struct {
		input, cluster string
		hours          float64
	}{
		{gavelMakespan, gavelPhysical, 17.708},
		{gavelStatic, gavelLarge, 165.798},
	} {
		r := gavelRun{input: c.input, cluster: c.cluster}
		jobs, cluster, table := r.world(t)
		var states []*scheduler.JobState
		for i := range jobs {
			states = append(states, &scheduler.JobState{Job: &jobs[i], Remaining: jobs[i].Steps})
		}
		sec, err := gavel.EarliestEnd(t.Context(), policy.Deps{Oracle: oracleOf(table)}, scheduler.NewSnapshot(0, cluster, states))
		if err != nil {
			t.Fatal(err)
		}
		if t.Logf("%s: %.4f h", c.input, sec/3600); math.Abs(sec/3600-c.hours) > 0.0006 {
			t.Errorf("%s: %.4f h, want %.3f", c.input, sec/3600, c.hours)
		}
	}
}

// Rounds approximate the fractions that they follow (section 7.5 of the paper). With free starts,
// average completion times are within 5 % of those of exact fractions, for policies that give all
// devices away. gavel-makespan ends at the least makespan.
func TestGavelIdeal(t *testing.T) {
	for _, c := range []struct {
		policy, input, cluster string
		makespan               float64 // hours, 0 = not known
	}{
		{"gavel-las:total", gavelLAS, gavelPhysical, 0}, {"gavel-ftf", gavelLAS, gavelPhysical, 0},
		{"gavel-las:total", gavelMakespan, gavelPhysical, 0}, {"gavel-makespan", gavelMakespan, gavelPhysical, 17.708},
		{"gavel-las:total", gavelStatic, gavelLarge, 0},
	} {
		t.Run(c.policy+"/"+c.input, func(t *testing.T) {
			r := gavelRun{policy: c.policy, input: c.input, cluster: c.cluster}
			rounds := report.Summarize(r.run(t), report.Score{})
			r.policy += ":ideal"
			ideal := report.Summarize(r.run(t), report.Score{})
			more := float64(rounds.AvgJCT/ideal.AvgJCT) - 1
			t.Logf("mean %.3f h, in rounds %.3f h (%+.1f %%); makespan %.3f h, in rounds %.3f h",
				float64(ideal.AvgJCT)/3600, float64(rounds.AvgJCT)/3600, 100*more, float64(ideal.Makespan)/3600, float64(rounds.Makespan)/3600)
			if ideal.Finished != ideal.Jobs || math.Abs(more) > 0.05 {
				t.Errorf("%d of %d jobs finish; rounds are %.1f %% off", ideal.Finished, ideal.Jobs, 100*more)
			}
			if got := float64(ideal.Makespan) / 3600; c.makespan > 0 && math.Abs(got-c.makespan) > 0.001 {
				t.Errorf("all done after %.4f h, want %.3f", got, c.makespan)
			}
		})
	}
}
