package bench

import (
	"fmt"
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

// livePolicies are the policies of BenchmarkLiveFirstDecision.
var livePolicies = []string{"fifo", "srtf", "gavel-las", "optimus", "rubick", "sia", "pacer"}

// BenchmarkLiveFirstDecision lets a controller observe 5000 held jobs on 1000 idle nodes of 8 devices, and decide, with an
// empty planner. Jobs train one of 6 models, and leave the plan to pacer or name it. decide-sec is the part of the decision.
func BenchmarkLiveFirstDecision(b *testing.B) {
	placer, err := place.Lookup("packed")
	if err != nil {
		b.Fatal(err)
	}
	for _, planned := range []bool{false, true} {
		s := firstDecisionSnapshot(b, 5000, 8000)
		s.Cluster.Groups[0].Count++ // 999 nodes otherwise
		var nodes []live.Node
		for g, group := range s.Cluster.Groups {
			group.Count = 0
			for i := range s.Cluster.Groups[g].Count {
				nodes = append(nodes, live.Node{Name: fmt.Sprintf("n%d-%d", g, i), Type: group})
			}
		}
		start := time.Unix(1.8e9, 0)
		cluster := livetest.New(start, nodes...)
		for i, state := range s.Jobs() {
			j := *state.Job
			share := s.Cluster.Groups[i%len(s.Cluster.Groups)].Host()
			j.Host = spec.Host{MilliCPUs: 1000, Bytes: min(share.Bytes, 1<<38) / 8 * int64(1+i%16) / 16}
			if !planned {
				j.Plan = spec.Plan{}
			}
			cluster.Submit(j, time.Minute, j.Steps, func(string, live.Slots) float64 { return 1 })
		}
		for _, name := range livePolicies {
			b.Run(fmt.Sprintf("policy=%s/jobs=5000/nodes=%d/planned=%v", name, len(nodes), planned), func(b *testing.B) {
				specs, err := builtin.Policies.Parse(name)
				if err != nil {
					b.Fatal(err)
				}
				livetest.BenchmarkDecision(b, func() live.Options {
					oracle := planner.New(analytic.Family.Unfitted, planner.Options{})
					return live.Options{
						Cluster: cluster, StartCost: time.Minute, Now: cluster.Now,
						Policy: func(spec.Cluster) (scheduler.Policy, error) {
							return builtin.Policies.New(specs[0], policy.Deps{Oracle: oracle, Placer: place.Even(placer), Seed: 1})
						},
						Estimate: func(c spec.Cluster) sim.Truth { return sim.Predicted{Predictor: oracle, Cluster: c} },
					}
				})
			})
		}
	}
}
