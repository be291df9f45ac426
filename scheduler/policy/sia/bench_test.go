package sia

import (
	"context"
	"fmt"
	"hash/fnv"
	"math"
	"testing"
	"time"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/scheduler"
	"github.com/pacer-ml/pacer/scheduler/policy"
)

// amdahl is an Elastic of jobs that scale each in their own way, on types of
// different speeds.
type amdahl struct{ scheduler.Oracle }

func (amdahl) Goodput(_ context.Context, j *scheduler.JobState, g *spec.NodeGroup, shape spec.Shape) (spec.Plan, float64, error) {
	h := fnv.New32a()
	h.Write([]byte(string(j.Job.ID) + g.Accelerator.Name))
	drawn := float64(h.Sum32()) / math.MaxUint32
	n := float64(shape.Total())
	return spec.Plan{DP: shape.Total()}.Normal(), (1 + 9*drawn) / (0.02 + 0.98/n), nil
}

// BenchmarkSia is one decision on four types of nodes of 8 devices; half of the jobs run.
func BenchmarkSia(b *testing.B) {
	for _, size := range []struct{ jobs, nodes int }{{64, 8}, {1000, 1250}} {
		b.Run(fmt.Sprintf("jobs=%d/devices=%d", size.jobs, 8*size.nodes), func(b *testing.B) {
			c := spec.Cluster{}
			for i := range 4 {
				c.Groups = append(c.Groups, spec.NodeGroup{Count: (size.nodes + i) / 4, Devices: 8, Accelerator: spec.Accelerator{Name: string(rune('a' + i))}})
			}
			p, err := newSia(policy.Deps{Oracle: amdahl{}})
			if err != nil {
				b.Fatal(err)
			}
			var jobs []*scheduler.JobState
			for i := range size.jobs {
				jobs = append(jobs, &scheduler.JobState{Job: &spec.Job{ID: spec.JobID(fmt.Sprint(i))}, Remaining: 1e4, StartCost: time.Minute})
			}
			d, err := p.Decide(b.Context(), scheduler.NewSnapshot(0, c, jobs[:size.jobs/2]))
			if err != nil {
				b.Fatal(err)
			}
			for _, g := range d.Grants {
				for _, j := range jobs {
					if j.Job.ID == g.Job {
						j.Grant = g
					}
				}
			}
			s := scheduler.NewSnapshot(time.Hour, c, jobs)
			for b.Loop() {
				if d, err = p.Decide(b.Context(), s); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(len(d.Grants)), "grants")
			b.ReportMetric(float64(len(d.Warnings)), "warnings")
		})
	}
}
