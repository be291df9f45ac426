package ones

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/planner"
	"github.com/pacer-ml/pacer/scheduler"
	"github.com/pacer-ml/pacer/scheduler/loss"
	"github.com/pacer-ml/pacer/scheduler/policy"
)

// BenchmarkOnesIteration is one iteration on nodes of four devices, with one job per node
// and a quarter as many waiting jobs.
func BenchmarkOnesIteration(b *testing.B) {
	for _, c := range []struct{ devices, population int }{{64, 16}, {1024, 64}} {
		b.Run(fmt.Sprintf("devices=%d/population=%d", c.devices, c.population), func(b *testing.B) {
			p, s := midRun(b, c.devices, c.population)
			for b.Loop() {
				s.Now += time.Second
				if _, err := p.Decide(b.Context(), s); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// midRun returns ones and its snapshot in the middle of a run.
func midRun(t testing.TB, devices, population int) (scheduler.Policy, *scheduler.Snapshot) {
	t.Helper()
	work := func(context.Context, *spec.Job) (float64, error) { return 1e4, nil }
	p, err := policy.NewRegistry(Info).New(policy.Spec{Name: "ones", Options: map[string]string{"population": fmt.Sprint(population)}},
		policy.Deps{Oracle: linear{}, Losses: &loss.Synthetic{Steps: work}, Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	cl := spec.Cluster{Groups: []spec.NodeGroup{{Count: devices / 4, Devices: 4, Accelerator: spec.Accelerator{Name: "x"}}}}
	var jobs []*scheduler.JobState
	for i := range devices/4 + devices/16 {
		job := &spec.Job{ID: spec.JobID(fmt.Sprint(i)), Model: spec.Model{Name: "m"}, Devices: 4, GlobalBatch: 64, Steps: 1e4}
		jobs = append(jobs, &scheduler.JobState{Job: job, Remaining: 1e4})
	}
	for i := range 60 { // until limits have grown and some jobs have ended
		s := scheduler.NewSnapshot(time.Duration(i)*time.Minute, cl, jobs)
		for k, j := range jobs {
			if i > 0 {
				j.Done = min(j.Done+float64(20*j.Grant.Devices()+k%7), 9900)
				j.Remaining = 1e4 - j.Done
			}
		}
		if i == 30 {
			s.Ended = []scheduler.JobState{*jobs[0]}
			s.Ended[0].Done = 1e4
		}
		d, err := p.Decide(context.Background(), s)
		if err != nil {
			t.Fatal(err)
		}
		for _, j := range jobs {
			if !d.Keep {
				j.Grant = nil
			}
		}
		for _, g := range d.Grants {
			for _, j := range jobs {
				if j.Job.ID == g.Job {
					j.Grant, j.Phase = g, scheduler.Running
				}
			}
		}
	}
	return p, scheduler.NewSnapshot(time.Hour, cl, jobs)
}

// linear predicts one step per second and device, on any nodes.
type linear struct{ scheduler.Oracle }

func (linear) Rank(_ context.Context, r planner.Request) (planner.Ranking, error) {
	shape := r.Shape
	if shape.Devices == "" {
		shape = spec.Packed(r.Devices, r.PerNode)
	}
	n := shape.Total()
	c := spec.Config{Model: r.Model, Plan: spec.Plan{DP: n, MicroBatch: max(r.GlobalBatch/n, 1)}.Normal(), Accelerator: r.Accelerator, Shape: shape}
	return planner.Ranking{Choices: []planner.Choice{{Config: c, Fits: true, Prediction: spec.Prediction{Throughput: float64(n * r.GlobalBatch)}}}}, nil
}
