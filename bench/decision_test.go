package bench

import (
	"fmt"
	"syscall"
	"testing"
	"time"

	"github.com/pacer-ml/pacer/cmd/experiment"
	"github.com/pacer-ml/pacer/datasets/catalog"
	"github.com/pacer-ml/pacer/datasets/synthetic"
	"github.com/pacer-ml/pacer/perfmodel/family/analytic"
	"github.com/pacer-ml/pacer/planner"
	"github.com/pacer-ml/pacer/scheduler"
	"github.com/pacer-ml/pacer/scheduler/policy"
)

// firstDecisionModels are the models of the jobs of BenchmarkFirstDecision.
var firstDecisionModels = []string{"BERT-large", "GPT2-XL", "Llama2-7B", "Llama2-13B", "T5-3B", "ViT-L/16"}

// firstDecisionSnapshot returns jobs that all wait on an idle cluster of nodes of 8 devices of four types.
func firstDecisionSnapshot(tb testing.TB, jobs, devices int) *scheduler.Snapshot {
	tb.Helper()
	nodes := devices / 8 / 4
	cluster := mustCluster(tb, fmt.Sprintf("%dx8xA100,%dx8xH100,%dx8xV100,%dx8xA800", devices/8-3*nodes, nodes, nodes, nodes))
	o := synthetic.Options{Jobs: jobs, Seed: 1, PerHour: 1e6}
	for _, name := range firstDecisionModels {
		m, err := catalog.Model(name)
		if err != nil {
			tb.Fatal(err)
		}
		o.Models = append(o.Models, m)
	}
	g := &cluster.Groups[0]
	o.Plan = experiment.SubmittedPlan(tb.Context(), planner.New(analytic.Family.Unfitted, planner.Options{}), planner.Request{
		Accelerator: g.Accelerator, Link: g.Link, PerNode: g.Devices, NodeHostBytes: g.HostBytes,
	})
	all, err := synthetic.Workload(o)
	if err != nil {
		tb.Fatal(err)
	}
	states := make([]*scheduler.JobState, len(all))
	var now time.Duration
	for i := range all {
		now = all[i].Submit
		states[i] = &scheduler.JobState{Job: &all[i], Remaining: float64(all[i].Steps), Since: all[i].Submit, StartCost: time.Minute}
	}
	return scheduler.NewSnapshot(now, cluster, states)
}

// BenchmarkFirstDecision makes one decision about jobs that all wait: 6 models on 4 types of devices, with an empty planner
// cache, so that it includes the curves of all models. cpu-ns/op is processor time, and peak-rss-B the largest memory
// of the process so far: run one case at a time for it.
func BenchmarkFirstDecision(b *testing.B) {
	for _, c := range []struct{ jobs, devices int }{{1000, 10_000}, {5000, 100_000}} {
		for _, pol := range []string{"pacer", "rubick"} {
			b.Run(fmt.Sprintf("policy=%s/jobs=%d/devices=%d", pol, c.jobs, c.devices), func(b *testing.B) {
				s := firstDecisionSnapshot(b, c.jobs, c.devices)
				named := mustSpec(b, pol)
				from, granted := usage(b), 0
				for b.Loop() {
					p := mustPolicy(b, named, policy.Deps{Oracle: planner.New(analytic.Family.Unfitted, planner.Options{}), Seed: 1})
					d, err := p.Decide(b.Context(), s)
					if err != nil {
						b.Fatal(err)
					}
					granted = len(d.Grants)
					if d.Gap != nil {
						b.ReportMetric(*d.Gap, "gap")
					}
				}
				to := usage(b)
				b.ReportMetric(float64(cpuOf(to)-cpuOf(from))/float64(b.N), "cpu-ns/op")
				b.ReportMetric(1024*float64(to.Maxrss), "peak-rss-B")
				b.ReportMetric(float64(granted), "started")
				if granted == 0 {
					b.Error("no job starts on an idle cluster")
				}
			})
		}
	}
}

func usage(tb testing.TB) (u syscall.Rusage) {
	tb.Helper()
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		tb.Fatal(err)
	}
	return u
}

// cpuOf is the processor time of u, in nanoseconds.
func cpuOf(u syscall.Rusage) int64 { return u.Utime.Nano() + u.Stime.Nano() }
