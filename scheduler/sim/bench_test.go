package sim_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/scheduler/policy"
	"github.com/pacer-ml/pacer/scheduler/policy/builtin"
	"github.com/pacer-ml/pacer/scheduler/sim"
)

// BenchmarkRun simulates Poisson arrivals on a cluster that is nine tenths busy.
func BenchmarkRun(b *testing.B) {
	for _, jobs := range []int{1000, 10000} {
		b.Run(fmt.Sprintf("policy=fifo-backfill/jobs=%d/devices=512", jobs), func(b *testing.B) {
			c := poisson(b, jobs, 64, 8)
			for b.Loop() {
				p, err := builtin.Policies.New(policy.Spec{Name: "fifo-backfill"}, policy.Deps{})
				if err != nil {
					b.Fatal(err)
				}
				c.Policy = p
				if _, err := sim.Run(b.Context(), c); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(jobs)*float64(b.N)/b.Elapsed().Seconds(), "jobs/s")
		})
	}
}

func poisson(b *testing.B, jobs, nodes, devices int) sim.Config {
	b.Helper()
	const meanSec, meanDevices = 3600, 1.85 // of the sizes below
	rng := rand.New(rand.NewPCG(1, 0))
	gap := meanSec * meanDevices / (0.9 * float64(nodes*devices))
	c := sim.Config{Cluster: spec.Cluster{Groups: []spec.NodeGroup{{Count: nodes, Devices: devices}}}, Truth: sim.Durations{}}
	at := 0.0
	for i := range jobs {
		at += rng.ExpFloat64() * gap
		n := 1
		switch u := rng.Float64(); {
		case u > 0.95:
			n = 8
		case u > 0.80:
			n = 4
		case u > 0.70:
			n = 2
		}
		c.Jobs = append(c.Jobs, spec.Job{ID: spec.JobID(fmt.Sprintf("%07d", i)), Submit: time.Duration(at * 1e9), Devices: n,
			Duration: time.Duration(rng.ExpFloat64()*meanSec*1e9) + 1})
	}
	return c
}
