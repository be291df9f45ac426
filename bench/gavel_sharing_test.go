package bench

import (
	"fmt"
	"math"
	"math/rand/v2"
	"path/filepath"
	"testing"
	"time"

	"github.com/pacer-ml/pacer/datasets"
	"github.com/pacer-ml/pacer/perfmodel/colocation"
	"github.com/pacer-ml/pacer/perfmodel/measured"
	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/perfmodel/spec/spectest"
	"github.com/pacer-ml/pacer/planner"
	"github.com/pacer-ml/pacer/scheduler"
	"github.com/pacer-ml/pacer/scheduler/policy"
	"github.com/pacer-ml/pacer/scheduler/report"
)

// pairedOracle is oracleOf with the measured colocations.
type pairedOracle struct {
	*planner.Planner
	scheduler.Colocator
}

// gavelPairs returns the colocations of a Gavel table.
func gavelPairs(tb testing.TB, table string) []spec.Colocation {
	tb.Helper()
	rows, err := datasets.ReadGavelPairs(tb.Context(), filepath.Join(spectest.Shared(tb), "data", "gavel", "throughputs", table))
	if err != nil {
		tb.Fatal(err)
	}
	return rows
}

// Under --compat gavel the makespan of gandiva is that of the published simulator (21.1096 h,
// baselines/gavel/summary.csv), up to the random choice of pairs, for any seed. It is about the
// same in its own semantics.
func TestGandiva(t *testing.T) {
	const there = 21.1096 * 3600
	for seed := range uint64(3) {
		r := gavelRun{mode: "gavel", policy: "gandiva", input: gavelMakespan, cluster: gavelPhysical, seed: seed}
		s := report.Summarize(r.run(t), report.Score{})
		t.Logf("seed %d, as there: makespan %.2f h, mean %.2f h", seed, float64(s.Makespan)/3600, float64(s.AvgJCT)/3600)
		if s.Finished != s.Jobs || math.Abs(float64(s.Makespan)/there-1) > 0.05 {
			t.Errorf("seed %d: %d of %d jobs finish, the last after %.2f h, want %.2f within 5 %%", seed, s.Finished, s.Jobs, float64(s.Makespan)/3600, there/3600)
		}
		r.mode = ""
		s = report.Summarize(r.run(t), report.Score{})
		t.Logf("seed %d: makespan %.2f h, mean %.2f h", seed, float64(s.Makespan)/3600, float64(s.AvgJCT)/3600)
		if s.Finished != s.Jobs || float64(s.Makespan) > 1.1*there {
			t.Errorf("seed %d: %d of %d jobs finish, the last after %.2f h", seed, s.Finished, s.Jobs, float64(s.Makespan)/3600)
		}
	}
}

// If two jobs may share devices, the mean completion time is shorter and fewer device-hours are
// used, on both traces.
func TestGavelSharingGains(t *testing.T) {
	for _, input := range []string{gavelLAS, gavelMakespan} {
		for _, name := range []string{"gavel-las", "gavel-throughput", "gavel-makespan"} {
			r := gavelRun{policy: name, input: input, cluster: gavelPhysical, startCost: 30 * time.Second}
			alone := report.Summarize(r.run(t), report.Score{})
			r.policy += ":sharing"
			shared := report.Summarize(r.run(t), report.Score{})
			t.Logf("%s, %s: mean %.2f h, sharing %.2f h; makespan %.2f h, sharing %.2f h; %.0f device-h, sharing %.0f", input, name,
				float64(alone.AvgJCT)/3600, float64(shared.AvgJCT)/3600, float64(alone.Makespan)/3600, float64(shared.Makespan)/3600, float64(alone.DeviceHours), float64(shared.DeviceHours))
			if shared.Finished != shared.Jobs || shared.AvgJCT >= alone.AvgJCT || shared.DeviceHours >= alone.DeviceHours {
				t.Errorf("%s, %s: sharing is no gain", input, name)
			}
		}
	}
}

// sharingSnapshot returns jobs of one device, of the types of Gavel's table, each with its own work
// and weight, on a cluster with a quarter as many devices of each type.
func sharingSnapshot(tb testing.TB, t *measured.Table, jobs int) *scheduler.Snapshot {
	tb.Helper()
	cluster := mustCluster(tb, fmt.Sprintf("v100=%d,p100=%[1]d,k80=%[1]d", jobs/4))
	var kinds []spec.Config
	for _, c := range t.Configs() {
		if c.Shape.Total() == 1 && c.Accelerator.Name == cluster.Groups[0].Accelerator.Name {
			kinds = append(kinds, c)
		}
	}
	random := rand.New(rand.NewPCG(1, 0))
	states := make([]*scheduler.JobState, jobs)
	for i := range states {
		c := kinds[random.IntN(len(kinds))]
		j := &spec.Job{ID: spec.JobID(fmt.Sprintf("%05d", i)), Model: c.Model, Plan: c.Plan, Devices: 1,
			Steps: 1e4 * random.ExpFloat64(), Weight: 1 + random.Float64()}
		states[i] = &scheduler.JobState{Job: j, Remaining: j.Steps}
	}
	return scheduler.NewSnapshot(0, cluster, states)
}

// BenchmarkGavelSharing measures one decision with jobs that may share devices: the linear
// programme and the first leases.
func BenchmarkGavelSharing(b *testing.B) {
	_, _, t := gavelRun{input: gavelMakespan, cluster: gavelPhysical}.world(b)
	oracle := pairedOracle{oracleOf(t).(*planner.Planner), colocation.New(gavelPairs(b, "simulation_throughputs.json"))}
	for _, name := range []string{"gavel-las", "gavel-makespan", "gavel-throughput", "gavel-ftf"} {
		for _, jobs := range []int{128, 512} {
			b.Run(fmt.Sprintf("policy=%s:sharing/jobs=%d", name, jobs), func(b *testing.B) {
				s := sharingSnapshot(b, t, jobs)
				for b.Loop() {
					p := mustPolicy(b, policy.Spec{Name: name, Options: map[string]string{"sharing": "true"}}, policy.Deps{Oracle: oracle})
					if _, err := p.Decide(b.Context(), s); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}
