package bench

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/pacer-ml/pacer/datasets"
	"github.com/pacer-ml/pacer/datasets/trace"
	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/perfmodel/spec/spectest"
	"github.com/pacer-ml/pacer/planner"
	"github.com/pacer-ml/pacer/scheduler/goodput"
	"github.com/pacer-ml/pacer/scheduler/policy"
	"github.com/pacer-ml/pacer/scheduler/report"
	"github.com/pacer-ml/pacer/scheduler/sim"
)

// goodputTables reads the tables in a folder of the shared data.
func goodputTables(t *testing.T, folder ...string) *goodput.Tables {
	t.Helper()
	known, err := datasets.SiaTables()
	if err != nil {
		t.Fatal(err)
	}
	var devices []goodput.Device
	for _, k := range known {
		devices = append(devices, goodput.Device(k))
	}
	tables, err := goodput.Read(os.DirFS(filepath.Join(append([]string{spectest.Shared(t), "data"}, folder...)...)), devices)
	if err != nil {
		t.Fatal(err)
	}
	return tables
}

// runPollux runs a workload with the semantics of Pollux' artifact on 16 x 4 T4.
func runPollux(t *testing.T, mode, name string, jobs []spec.Job, tables *goodput.Tables) *sim.Result {
	t.Helper()
	return runPolluxWith(t, mode, name, jobs, tables, func(*policy.Deps, *sim.Config) {})
}

// runPolluxWith is runPollux with another estimate: set changes the Deps, which have perfect
// belief, or in a mode with own-models what each job observes, and the run before its policy,
// NAME[:OPTIONS], is created.
func runPolluxWith(t *testing.T, mode, name string, jobs []spec.Job, tables *goodput.Tables, set func(*policy.Deps, *sim.Config)) *sim.Result {
	t.Helper()
	m := mustMode(t, mode)
	cluster := mustCluster(t, "16x4xT4")
	parts := m.Parts()
	tables = tables.With(parts.Adjustment)
	var truth sim.Truth = goodput.NewTruth(tables, cluster)
	d := policy.Deps{Variants: parts.Variants, Oracle: planner.New(tables, planner.Options{Space: goodput.Space{Tables: tables}})}
	if agents := parts.Agents(tables, cluster); agents != nil {
		truth, d.Oracle = agents.Truth(), agents.Oracle()
	}
	d.Placer = mustPlacer(t, parts, m.Placement)
	c := sim.Config{
		Cluster: cluster, Jobs: tables.Submit(jobs, cluster), PolicyName: name, Truth: truth,
		Round: m.Round, Rules: parts.Rules, Costs: sim.PerStart(func(spec.Job) time.Duration { return m.StartCost }),
	}
	set(&d, &c)
	c.Policy = mustPolicy(t, mustSpec(t, name), d)
	return mustSimulate(t, c)
}

func polluxJobs(t *testing.T, folder, file string) []spec.Job {
	t.Helper()
	path := filepath.Join(spectest.Shared(t), "data", "pollux", folder, file)
	w, err := trace.Open(t.Context(), path, "pollux")
	if err != nil || len(w.Bad) > 0 {
		t.Fatal(err, w.Bad)
	}
	return w.Jobs
}

// In workload 6 every job completes in the same second as in Pollux's artifact. For placements
// without measurements, the artifact's triangulation matters to Optimus; without it averages are
// close.
func TestPolluxWorkload6(t *testing.T) {
	jobs := polluxJobs(t, "workloads", "workload-6.csv")
	with, without := goodputTables(t, "pollux"), goodputTables(t, "pollux", "traces")
	for _, c := range []struct {
		name, policy, file  string
		tables              *goodput.Tables
		equal               int
		jct, within         float64
		makespan, makespanW float64
	}{
		{"tiresias", "tiresias", "osdi21_tiresias_workload-6.csv", with, 160, 3469.69375, 0, 78556, 0},
		{"optimus", "optimus-oracle", "osdi21_optimus_workload-6.csv", with, 155, 5301.875, 0.005, 66246, 0.015},
		{"optimus without triangulation", "optimus-oracle", "osdi21_optimus_workload-6.csv", without, 0, 5301.875, 0.005, 66246, 0.015},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := runPollux(t, "pollux", c.policy, jobs, c.tables)
			equal, off := besideSia(t, r, c.file)
			s := report.Summarize(r, report.Score{})
			t.Logf("%d of %d jobs equal, mean deviation %.3f %%, average JCT %.6g s, makespan %.6g s, %.2f s", equal, len(r.Jobs), 100*off, float64(s.AvgJCT), float64(s.Makespan), r.Elapsed.Seconds())
			if equal < c.equal {
				t.Errorf("%d jobs equal, want %d", equal, c.equal)
			}
			if got := float64(s.AvgJCT); math.Abs(got/c.jct-1) > c.within {
				t.Errorf("average JCT %g s, want %g", got, c.jct)
			}
			if got := float64(s.Makespan); math.Abs(got/c.makespan-1) > c.makespanW {
				t.Errorf("makespan %g s, want %g", got, c.makespan)
			}
		})
	}
}

// recordedPollux has the recorded results of the authors for one policy and load.
type recordedPollux struct {
	JCTs map[string]map[string]float64 `json:"jcts"` // by workload and job, s
}

func readRecordedPollux(t *testing.T, folder string) (kept recordedPollux) {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(spectest.Shared(t), "data", "pollux", "recorded_results", "results-jobload", folder, "summary.json"))
	if err == nil {
		err = json.Unmarshal(data, &kept)
	}
	if err != nil {
		t.Fatal(err)
	}
	return kept
}

// Results are those that the authors recorded for all 32 workloads: of tiresias job by job, and of
// Optimus except jobs on unmeasured placements, which need the authors' exact triangulation: 95.0,
// 97.0, 98.5 and 96.3 % of the jobs by load, means to 0.13 %.
func TestPolluxRecorded(t *testing.T) {
	tables := goodputTables(t, "pollux")
	for _, c := range []struct {
		name, policy  string
		equal, within float64 // shares
	}{{"tiresias", "tiresias", 1, 0}, {"optimus", "optimus-oracle", 0.95, 0.0015}} {
		for load, folder := range map[string]string{"0.5": "workloads-0.5", "1.0": "workloads", "1.5": "workloads-1.5", "2.0": "workloads-2.0"} {
			t.Run(c.name+"/"+load, func(t *testing.T) {
				equal, all, ours, theirs := 0, 0, 0.0, 0.0
				for workload, jcts := range readRecordedPollux(t, c.name+"-"+load).JCTs {
					r := runPollux(t, "pollux", c.policy, polluxJobs(t, folder, workload+".csv"), tables)
					for id, jct := range jcts {
						got := finished(r, id).JCT().Seconds()
						if ours, theirs, all = ours+got, theirs+jct, all+1; got == jct {
							equal++
						}
					}
				}
				t.Logf("%d of %d jobs equal, mean JCT %.2f s, recorded %.2f", equal, all, ours/float64(all), theirs/float64(all))
				if float64(equal) < c.equal*float64(all) || math.Abs(ours/theirs-1) > c.within {
					t.Errorf("want %g %% of the jobs equal, the mean to %g %%", 100*c.equal, 100*c.within)
				}
			})
		}
	}
}

// The genetic search of pollux has the average JCT that the authors recorded, to the 5 % that
// they give as the tolerance of their own simulator. Jobs fit models to their own steps and
// choose their batch. PACER_SOAK=1 runs all 8 workloads, also at half the load, and workload 6
// also with whole searches and other seeds.
func TestPolluxGenetic(t *testing.T) {
	if testing.Short() {
		t.Skip("20 s of CPU time")
	}
	tables := goodputTables(t, "pollux")
	run := func(load, workload string, seed uint64, name string) float64 {
		recorded, folder := readRecordedPollux(t, "pollux-"+load).JCTs, "workloads"
		if load != "1.0" {
			folder += "-" + load
		}
		r := runPolluxWith(t, "pollux:own-models", name, polluxJobs(t, folder, workload+".csv"), tables, func(d *policy.Deps, _ *sim.Config) { d.Seed = seed })
		s := report.Summarize(r, report.Score{})
		theirs := 0.0
		for _, jct := range recorded[workload] {
			theirs += jct / float64(len(recorded[workload]))
		}
		ratio := float64(s.AvgJCT) / theirs
		t.Logf("load %s, %s, seed %d, %s: average JCT %.1f s, recorded %.1f, ratio %.3f, makespan %.6g s, %d restarts, %.1f s",
			load, workload, seed, name, float64(s.AvgJCT), theirs, ratio, float64(s.Makespan), s.Restarts, r.Elapsed.Seconds())
		return ratio
	}
	if ratio := run("1.0", "workload-6", 1, "pollux"); math.Abs(ratio-1) > 0.05 {
		t.Errorf("ratio %g to the recorded average, want 0.95 to 1.05", ratio)
	}
	if ratio := run("0.5", "workload-7", 1, "pollux"); math.Abs(ratio-1) > 0.05 {
		t.Errorf("ratio %g to the recorded average at load 0.5, want 0.95 to 1.05", ratio)
	}
	if os.Getenv("PACER_SOAK") == "" {
		return
	}
	run("1.0", "workload-6", 1, "pollux:stall=0")
	run("1.0", "workload-6", 2, "pollux")
	run("1.0", "workload-6", 3, "pollux")
	for _, load := range []string{"0.5", "1.0"} {
		sum := 0.0
		for i := range 8 {
			sum += run(load, fmt.Sprintf("workload-%d", i+1), 1, "pollux") / 8
		}
		t.Logf("load %s: mean ratio %.3f", load, sum)
		if math.Abs(sum-1) > 0.05 {
			t.Errorf("load %s: mean ratio %g to the recorded averages, want 0.95 to 1.05", load, sum)
		}
	}
}
