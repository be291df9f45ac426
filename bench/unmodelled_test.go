package bench

import (
	"fmt"
	"math"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/pacer-ml/pacer/datasets"
	"github.com/pacer-ml/pacer/datasets/trace"
	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/perfmodel/spec/spectest"
	"github.com/pacer-ml/pacer/scheduler/policy"
	"github.com/pacer-ml/pacer/scheduler/report"
	"github.com/pacer-ml/pacer/scheduler/schedulertest"
	"github.com/pacer-ml/pacer/scheduler/sim"
)

// philly and pai are the traces of whole clusters among the shared data, with recorded run times and without models.
const (
	philly = "pollux/traces/philly.csv:philly-csv"
	pai    = "traces/alibaba_gpu_v2023/openb_pod_list_default.csv:pai2023"
)

// unmodelledWindow is a part of a trace of jobs without a performance model, and the nodes of 8 devices they run on.
// No constant was chosen on these.
type unmodelledWindow struct {
	source string // philly, pai, or a file of gavel/traces/msr_seed0
	first  int
	nodes  int
}

var unmodelledWindows = []unmodelledWindow{
	{philly, 10000, 16}, {philly, 30000, 16}, {philly, 60000, 6}, {philly, 70000, 16},
	{pai, 1500, 1}, {pai, 4500, 1},
	{"11cb48", 200, 2}, {"7f04ca", 200, 3}, {"b436b2", 200, 4},
}

// unmodelledLeast is the least ratio of the best rival's average completion time to that of a policy, on one window and
// in the geometric mean.
var unmodelledLeast = map[string]struct{ one, mean float64 }{
	"pacer": {0.97, 1.05}, "pacer:steps=unknown": {0.95, 0.99}, "rubick": {0.95, 1.03},
}

var unmodelledPolicies = []string{"pacer", "pacer:steps=unknown", "rubick"}

// jobs returns 150 jobs from the first on, with the time since the first and run times only.
func (w unmodelledWindow) jobs(t *testing.T) []spec.Job {
	t.Helper()
	if file, format, ok := strings.Cut(w.source, ":"); ok {
		all, err := trace.Open(t.Context(), filepath.Join(spectest.Shared(t), "data", file), format)
		if err != nil {
			t.Fatal(err)
		}
		return w.cut(t, all.Jobs)
	}
	return w.cut(t, msrJobs(t, w.source))
}

func (w unmodelledWindow) cut(t *testing.T, all []spec.Job) []spec.Job {
	t.Helper()
	window, err := trace.ParseWindow(fmt.Sprintf("%d-%d", w.first, w.first+149))
	if err != nil {
		t.Fatal(err)
	}
	return window.Cut(all)
}

// msrJobs returns the jobs of a trace of msr_seed0 by their run time on V100s, without their models. Jobs that were not
// measured there are left out.
func msrJobs(t *testing.T, name string) (jobs []spec.Job) {
	t.Helper()
	dir := filepath.Join(spectest.Shared(t), "data", "gavel")
	rows, err := datasets.ReadGavelTable(t.Context(), filepath.Join(dir, "throughputs", "simulation_throughputs.json"))
	if err != nil {
		t.Fatal(err)
	}
	type kind struct {
		model   string
		devices int
	}
	stepSec := map[kind]float64{}
	for _, m := range rows {
		if strings.HasPrefix(m.Config.Accelerator.Name, "V100") && m.Config.Shape.Nodes() == 1 {
			stepSec[kind{m.Config.Model.Name, m.Config.Shape.Total()}] = m.StepSec[0]
		}
	}
	all, err := trace.Open(t.Context(), filepath.Join(dir, "traces", "msr_seed0", name+".trace"), "gavel-trace")
	if err != nil {
		t.Fatal(err)
	}
	for _, j := range all.Jobs {
		if sec := stepSec[kind{j.Model.Name, j.Devices}]; sec > 0 {
			run := time.Duration(float64(j.Steps) * sec * float64(time.Second))
			jobs = append(jobs, spec.Job{ID: j.ID, Submit: j.Submit, Devices: j.Devices, Duration: run})
		}
	}
	return jobs
}

// Jobs without a performance model are stopped, resumed and ordered. On windows of three traces the average completion
// time is at most that of the best of three policies that preempt and know no run times; by the recorded run times it
// is less, and without reading them (steps=unknown) about the same.
func TestUnmodelledJobs(t *testing.T) {
	t.Parallel()
	rivals := []string{"las", "tiresias", "gittins"}
	logs := map[string]float64{} // sum of the logarithms of ratios, by policy
	for _, w := range unmodelledWindows {
		jobs := w.jobs(t)
		if len(jobs) != 150 {
			t.Fatalf("%s from %d on has %d jobs", w.source, w.first, len(jobs))
		}
		avg := func(name string) float64 {
			named := mustSpec(t, name)
			p := mustPolicy(t, named, policy.Deps{Seed: 1})
			r := mustSimulate(t, sim.Config{Cluster: schedulertest.Nodes(w.nodes, 8), Jobs: jobs, Policy: p, PolicyName: name,
				Truth: sim.Durations{}, Costs: sim.PerStart(func(spec.Job) time.Duration { return 30 * time.Second })})
			s := report.Summarize(r, report.Score{})
			if s.Finished != len(jobs) {
				t.Errorf("%s on %s from %d on: %d jobs finish", name, w.source, w.first, s.Finished)
			}
			return float64(s.AvgJCT)
		}
		best := math.Inf(1)
		for _, name := range rivals {
			best = min(best, avg(name))
		}
		file, _, _ := strings.Cut(filepath.Base(w.source), ":")
		line := fmt.Sprintf("| %s %d-%d | %dx8 | %.0f s |", file, w.first, w.first+149, w.nodes, best)
		for _, name := range unmodelledPolicies {
			ratio, least := best/avg(name), unmodelledLeast[name].one
			logs[name] += math.Log(ratio)
			line += fmt.Sprintf(" %.3f |", ratio)
			if ratio < least {
				t.Errorf("%s on %s from %d on: best rival over it %.3f, want at least %g", name, w.source, w.first, ratio, least)
			}
		}
		t.Log(line)
	}
	line := "| geometric mean | - | - |"
	defer func() { t.Log(line) }()
	for _, name := range unmodelledPolicies {
		mean, least := math.Exp(logs[name]/float64(len(unmodelledWindows))), unmodelledLeast[name].mean
		line += fmt.Sprintf(" %.3f |", mean)
		if mean < least {
			t.Errorf("%s: best rival over it %.3f in the geometric mean, want at least %g", name, mean, least)
		}
	}
}
