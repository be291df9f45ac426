package live_test

import (
	"fmt"
	"testing"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/scheduler"
	"github.com/pacer-ml/pacer/scheduler/live"
	"github.com/pacer-ml/pacer/scheduler/live/livetest"
)

// BenchmarkFirstDecision observes 5000 held jobs on 1000 nodes of 4 devices, 64 CPUs and 512 GiB, and decides, with a
// planner in this process. The jobs request a number of different CPUs and memory, of at most the share of their devices.
// decide-sec is the part of the decision.
func BenchmarkFirstDecision(b *testing.B) {
	for _, hosts := range []int{1, 100, 1000} {
		benchmarkFirstDecision(b, hosts)
	}
}

func benchmarkFirstDecision(b *testing.B, hosts int) {
	var nodes []live.Node
	for _, name := range []string{"x", "y"} {
		nodes = append(nodes, livetest.NewNodes(spec.NodeGroup{Count: 500, Devices: 4, Accelerator: spec.Accelerator{Name: name}, CPUs: 64, HostBytes: 512 << 30})...)
	}
	tr := livetest.NewTraceOn(nodes, 5000, 1)
	c := livetest.New(livetest.Epoch, tr.Nodes()...)
	for i, j := range tr.Jobs {
		j.Host = spec.Host{MilliCPUs: 4000, Bytes: int64(1+i%hosts) * (128 << 30) / int64(hosts)}
		c.Submit(j, tr.Cost, j.Steps, tr.Rate(&j))
	}
	for _, name := range livetest.Conforming {
		b.Run(fmt.Sprintf("policy=%s/jobs=5000/nodes=1000/hosts=%d", name, hosts), func(b *testing.B) {
			livetest.BenchmarkDecision(b, func() live.Options {
				return live.Options{Cluster: c, StartCost: tr.Cost, Now: c.Now,
					Policy: func(spec.Cluster) (scheduler.Policy, error) { return tr.Policy(b, name), nil }}
			})
		})
	}
}
