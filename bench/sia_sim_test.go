package bench

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"testing"
	"time"

	"gonum.org/v1/gonum/stat"

	"github.com/pacer-ml/pacer/datasets"
	"github.com/pacer-ml/pacer/datasets/trace"
	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/perfmodel/spec/spectest"
	"github.com/pacer-ml/pacer/scheduler/goodput"
	"github.com/pacer-ml/pacer/scheduler/policy"
	"github.com/pacer-ml/pacer/scheduler/policy/sia"
	record "github.com/pacer-ml/pacer/scheduler/replay"
	"github.com/pacer-ml/pacer/scheduler/report"
	"github.com/pacer-ml/pacer/scheduler/sim"
)

// siaCluster is the cluster of Sia's simulations, with types in the artifact's order.
const siaCluster = "6x4xT4,2x8xA100-40GB,3x8xRTX2080Ti"

func siaJobs(t *testing.T, path ...string) []spec.Job {
	t.Helper()
	file := filepath.Join(append([]string{spectest.Shared(t), "data", "sia", "workloads"}, path...)...)
	w, err := trace.Open(t.Context(), file, "sia")
	if err != nil || len(w.Bad) > 0 {
		t.Fatal(err, w.Bad)
	}
	return w.Jobs
}

// siaRun is a simulation with the semantics of Sia's artifact, before its policy is created from
// the Deps.
func siaRun(t *testing.T, mode string, jobs []spec.Job) (sim.Config, policy.Deps, *goodput.Agents) {
	t.Helper()
	m := mustMode(t, mode)
	cluster := mustCluster(t, siaCluster)
	parts := m.Parts()
	tables := goodputTables(t, "sia").With(parts.Adjustment)
	agents := parts.Agents(tables, cluster)
	d := policy.Deps{Variants: parts.Variants, Oracle: agents.Oracle()}
	d.Placer = mustPlacer(t, parts, m.Placement)
	return sim.Config{
		Cluster: cluster, Jobs: tables.Submit(jobs, cluster), Truth: agents.Truth(),
		Round: m.Round, Rules: parts.Rules, Costs: sim.PerStart(func(j spec.Job) time.Duration { return m.StartCostOf(j.Model.Name) }),
	}, d, agents
}

// siaPolicy returns sia with options and the given Deps.
func siaPolicy(t *testing.T, d policy.Deps, options map[string]string) sia.Weigher {
	t.Helper()
	p := mustPolicy(t, policy.Spec{Name: "sia", Options: options}, d)
	return p.(sia.Weigher)
}

// siaPhilly1 has the recorded results of a workload in Sia's simulator.
const siaPhilly1 = "sia_philly_workload-1.csv"

// besideSia counts the jobs that complete in the same second as in a baseline of Sia's artifact,
// logs the first three that do not, and returns the mean difference of all completion times.
func besideSia(t *testing.T, r *sim.Result, file string) (equal int, off float64) {
	t.Helper()
	rows := spectest.Table(t, "baselines/sia/"+file)
	for i, row := range rows {
		got, jct := finished(r, row["name"]).JCT().Seconds(), number(t, row["jct"])
		if got == jct {
			equal++
		} else if equal+3 > i {
			t.Logf("job %s takes %g s, in the artifact %g", row["name"], got, jct)
		}
		off += math.Abs(got/jct-1) / float64(len(rows))
	}
	return equal, off
}

// With the recorded decisions of Sia's simulator, every job progresses in each round as it did
// there, and completes in the same second. Sia's own decisions have the same cost, up to rounding.
// The test covers training at the largest batch, as recorded, and at the owners' batch.
func TestSiaReplay(t *testing.T) {
	jobs := siaJobs(t, "philly", "workload-1.csv")
	for _, mode := range []string{"sia", "sia:owners-batch=false"} {
		t.Run(mode, func(t *testing.T) {
			file := filepath.Join(spectest.Shared(t), "baselines", "sia", "sia_philly_workload-1_rounds.csv")
			f, err := os.Open(file)
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			rounds, err := record.Read(f, file, datasets.SiaAccelerator)
			if err != nil {
				t.Fatal(err)
			}
			c, d, agents := siaRun(t, mode, jobs)
			p := record.New(rounds, siaPolicy(t, d, nil))
			agents.Watch = p.Watch
			c.Policy, c.PolicyName = p, mode
			r := mustSimulate(t, c)
			equal, off := besideSia(t, r, siaPhilly1)
			s, got := report.Summarize(r, report.Score{}), p.Report()
			t.Logf("%d jobs equal, mean deviation %.3f %%, average JCT %.6g s, makespan %.6g s, %d restarts, %.2f s", equal, 100*off,
				float64(s.AvgJCT), float64(s.Makespan), s.Restarts, r.Elapsed.Seconds())
			t.Logf("%+v", got)
			if equal != 160 || math.Abs(float64(s.AvgJCT)/1965.70-1) > 1e-5 || s.Makespan != 56443 {
				t.Error("want 160 jobs equal, 1965.70 s and 56443 s")
			}
			if got.Rounds != 941 || got.JobRounds != 5231 || got.Batches < 5229 || got.Progress < 5229 || got.Impossible > 0 {
				t.Error("want 941 rounds, in which jobs held devices 5231 times, two of which may differ")
			}
			switch {
			case mode == "sia" && (got.Better > 0 || got.WideGaps > 0 || got.Gap > 0.1):
				t.Error("want no round decided better or wider than rounding, and a sum of gaps of at most 0.1")
			case mode != "sia" && (got.WideGaps < 300 || got.Gap < 9):
				t.Error("want gaps in at least 300 rounds")
			}
		})
	}
}

// Without recorded decisions, sia diverges from Sia's simulator where configurations cost the same.
// Ties are broken at random, so means over seeds are compared.
func TestSiaFree(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("ten simulations")
	}
	jobs := siaJobs(t, "philly", "workload-1.csv")
	const seeds = 10
	var jcts, makespans []float64
	for seed := range seeds {
		c, d, _ := siaRun(t, "sia", jobs)
		d.Seed = uint64(seed + 1)
		c.Policy, c.PolicyName = siaPolicy(t, d, map[string]string{"noise": "1e-5"}), fmt.Sprintf("seed %d", seed+1)
		r := mustSimulate(t, c)
		s := report.Summarize(r, report.Score{})
		jcts, makespans = append(jcts, float64(s.AvgJCT)), append(makespans, float64(s.Makespan))
	}
	mean, sd := stat.MeanStdDev(jcts, nil)
	t.Logf("average JCTs %.0f s, mean %.1f s, standard deviation %.1f s; makespans %.0f s", jcts, mean, sd, makespans)
	if mean < 1880 || mean > 2030 {
		t.Errorf("mean of average JCTs %g s, want 1880 to 2030", mean)
	}
}
