package bench

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/pacer-ml/pacer/perfmodel/family/analytic"
	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/planner"
	"github.com/pacer-ml/pacer/scheduler"
	"github.com/pacer-ml/pacer/scheduler/live"
	"github.com/pacer-ml/pacer/scheduler/live/livetest"
	"github.com/pacer-ml/pacer/scheduler/place"
	"github.com/pacer-ml/pacer/scheduler/policy"
	"github.com/pacer-ml/pacer/scheduler/policy/builtin"
	"github.com/pacer-ml/pacer/scheduler/sim"
)

// livePolicies are the policies of BenchmarkLiveDecisions.
var livePolicies = []string{"fifo", "srtf", "gavel-las", "optimus", "rubick", "sia", "pacer"}

// BenchmarkLiveDecisions lets a controller observe 5000 held jobs on 1000 idle nodes of 8 devices, with an empty planner, and decide.
// Jobs train one of 6 models, and leave the plan to pacer or name it. Then a job arrives or is deleted every second. first-sec
// is the time of the first decision, p99-sec that of 99 % of the 100 later ones.
func BenchmarkLiveDecisions(b *testing.B) {
	placer, err := place.Lookup("packed")
	if err != nil {
		b.Fatal(err)
	}
	for _, planned := range []bool{false, true} {
		for _, name := range livePolicies {
			named := mustSpec(b, name)
			b.Run(fmt.Sprintf("policy=%s/jobs=5000/nodes=1000/planned=%v", name, planned), func(b *testing.B) {
				for b.Loop() {
					cluster, jobs := liveCluster(b, planned)
					oracle := planner.New(analytic.Family.Unfitted, planner.Options{})
					controller, err := live.New(live.Options{
						Cluster: cluster, StartCost: time.Minute, Now: cluster.Now,
						Policy: func(spec.Cluster) (scheduler.Policy, error) {
							return builtin.Policies.New(named, policy.Deps{Oracle: oracle, Placer: place.Even(placer), Seed: 1})
						},
						Estimate: func(c spec.Cluster) sim.Truth { return sim.Predicted{Predictor: oracle, Cluster: c} },
					})
					if err != nil {
						b.Fatal(err)
					}
					first := decideSec(b, controller)
					var later []float64
					for i := range 100 {
						cluster.Advance(cluster.Now().Add(time.Second))
						if j := jobs[7*i]; i%2 == 0 {
							cluster.Delete(j.ID)
						} else {
							j.ID += "-again"
							submitLive(cluster, j)
						}
						later = append(later, decideSec(b, controller))
					}
					slices.Sort(later)
					b.ReportMetric(first, "first-sec")
					b.ReportMetric(later[98], "p99-sec")
				}
			})
		}
	}
}

// decideSec lets a controller act, and returns the seconds of its decision. None may fail.
func decideSec(b *testing.B, c *live.Controller) float64 {
	b.Helper()
	if _, err := c.Tick(b.Context()); err != nil {
		b.Fatal(err)
	}
	s := c.Stats()
	if s.Failed+s.Refused > 0 {
		b.Fatalf("%+v", s)
	}
	return s.Decide.Seconds()
}

// liveCluster returns a cluster of 1000 nodes with 5000 held jobs.
func liveCluster(b *testing.B, planned bool) (*livetest.Cluster, []spec.Job) {
	s := firstDecisionSnapshot(b, 5000, 8000)
	s.Cluster.Groups[0].Count++ // 999 nodes otherwise
	var nodes []live.Node
	for g, group := range s.Cluster.Groups {
		group.Count = 0
		for i := range s.Cluster.Groups[g].Count {
			nodes = append(nodes, live.Node{Name: fmt.Sprintf("n%d-%d", g, i), Type: group})
		}
	}
	cluster := livetest.New(time.Unix(1.8e9, 0), nodes...)
	var jobs []spec.Job
	for i, state := range s.Jobs() {
		j := *state.Job
		share := s.Cluster.Groups[i%len(s.Cluster.Groups)].Host()
		j.Host = spec.Host{MilliCPUs: 1000, Bytes: min(share.Bytes, 1<<38) / 8 * int64(1+i%16) / 16}
		if !planned {
			j.Plan = spec.Plan{}
		}
		jobs = append(jobs, j)
		submitLive(cluster, j)
	}
	return cluster, jobs
}

func submitLive(c *livetest.Cluster, j spec.Job) {
	c.Submit(j, time.Minute, j.Steps, func(string, live.Slots) float64 { return 1 })
}
