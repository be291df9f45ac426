package bench

import (
	"context"
	"math"
	"os"
	"path/filepath"
	"testing"

	"github.com/pacer-ml/pacer/datasets"
	"github.com/pacer-ml/pacer/datasets/catalog"
	"github.com/pacer-ml/pacer/perfmodel/measured"
	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/perfmodel/spec/spectest"
	"github.com/pacer-ml/pacer/planner"
	"github.com/pacer-ml/pacer/scheduler/compat"
	"github.com/pacer-ml/pacer/scheduler/place"
	"github.com/pacer-ml/pacer/scheduler/policy"
	"github.com/pacer-ml/pacer/scheduler/sim"
)

// gavelRun is a simulation of a workload among Gavel's baselines, with its
// throughput table as truth and belief.
type gavelRun struct {
	mode    string // as --compat, "" = Pacer's own semantics
	policy  string
	input   string
	cluster string
	table   string // "" = simulation_throughputs
}

func (r gavelRun) run(tb testing.TB) *sim.Result {
	tb.Helper()
	shared := spectest.Shared(tb)
	data, err := os.ReadFile(filepath.Join(shared, "baselines", "gavel", "inputs", r.input))
	if err != nil {
		tb.Fatal(err)
	}
	w, err := datasets.ReadWorkload(data, r.input, "gavel")
	if err != nil || len(w.Bad) > 0 {
		tb.Fatal(err, w.Bad)
	}
	table := r.table
	if table == "" {
		table = "simulation_throughputs"
	}
	rows, err := datasets.ReadGavelTable(context.Background(), filepath.Join(shared, "data", "gavel", "throughputs", table+".json"))
	if err != nil {
		tb.Fatal(err)
	}
	cluster, err := catalog.Cluster(r.cluster)
	if err != nil {
		tb.Fatal(err)
	}
	t := measured.New(rows)
	c := sim.Config{Cluster: cluster, Jobs: w.Jobs, PolicyName: r.policy, Truth: sim.Predicted{Predictor: t, Cluster: cluster}}
	d := policy.Deps{Oracle: planner.New(t, planner.Options{Space: planner.NewMeasured(t.Configs())})}
	if r.mode != "" {
		m, err := compat.Parse(r.mode)
		if err != nil {
			tb.Fatal(err)
		}
		c.Round, c.Quirks, d.Quirks = m.Round, m.Quirks, m.Quirks
		if d.Placer, err = place.New(m.Placement, m.Quirks); err != nil {
			tb.Fatal(err)
		}
	}
	specs, err := policy.Parse(r.policy)
	if err != nil {
		tb.Fatal(err)
	}
	if c.Policy, err = policy.New(specs[0], d); err != nil {
		tb.Fatal(err)
	}
	out, err := sim.Run(context.Background(), c)
	if err != nil {
		tb.Fatal(err)
	}
	return out
}

const (
	gavelLAS      = "trace_max_min_fairness.trace.csv"
	gavelMakespan = "trace_minimize_makespan.trace.csv"
	gavelStatic   = "static100_multi_seed0.csv"
	gavelPhysical = "v100=8,p100=16,k80=24"
	gavelLarge    = "v100=36,p100=36,k80=36"
)

// jcts returns the completion times of a run of the published simulator, by job.
func gavelJCTs(t *testing.T, name string) map[spec.JobID]float64 {
	t.Helper()
	cols := csvColumns(t, filepath.Join(spectest.Shared(t), "baselines", "gavel", "runs", name+".jobs.csv"))
	out := map[spec.JobID]float64{}
	for i, id := range cols["job_id"] {
		out[spec.JobID(id)] = number(t, cols["jct_s"][i])
	}
	return out
}

func TestGavelCompat(t *testing.T) {
	for _, c := range []struct {
		policy, input, cluster, run string
	}{
		{"gavel-fifo", gavelMakespan, gavelPhysical, "trace_minimize_makespan_single_fifo_perf_c8-16-24_seed0"},
		{"gavel-fifo", gavelLAS, gavelPhysical, "trace_max_min_fairness_single_fifo_perf_c8-16-24_seed0"},
		{"isolated", gavelLAS, gavelPhysical, "trace_max_min_fairness_single_isolated_c8-16-24_seed0"},
	} {
		t.Run(c.run, func(t *testing.T) {
			r := gavelRun{mode: "gavel", policy: c.policy, input: c.input, cluster: c.cluster}.run(t)
			want := gavelJCTs(t, c.run)
			equal, sum, sumWant := 0, 0.0, 0.0
			makespan := 0.0
			for _, j := range r.Jobs {
				if !j.Finished {
					t.Fatal(j.Job.ID, j.Unfinished, j.Rejected)
				}
				makespan = max(makespan, j.End.Seconds())
				got := j.JCT().Seconds()
				sum += got
				sumWant += want[j.Job.ID]
				if math.Abs(got-want[j.Job.ID]) < 0.01 {
					equal++
				} else {
					t.Logf("job %s %d devices: %.3f, want %.3f (arrived %v)", j.Job.ID, j.Job.Devices, got, want[j.Job.ID], j.Job.Submit.Seconds())
				}
			}
			n := float64(len(r.Jobs))
			t.Logf("%d of %d equal, mean %.4f h, want %.4f: %+.3f%%; makespan %.4f h; %v", equal, len(r.Jobs), sum/n/3600, sumWant/n/3600, 100*(sum/sumWant-1), makespan/3600, r.Elapsed)
		})
	}
}
