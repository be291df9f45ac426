package livetest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/scheduler"
	"github.com/pacer-ml/pacer/scheduler/live"
	"github.com/pacer-ml/pacer/scheduler/policy"
	"github.com/pacer-ml/pacer/scheduler/policy/builtin"
	"github.com/pacer-ml/pacer/scheduler/schedulertest"
)

// Epoch is the time at which traces begin.
var Epoch = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// Trace is a workload with the speeds of all configurations.
type Trace struct {
	World   *schedulertest.World
	Cluster spec.Cluster
	Jobs    []spec.Job
	Cost    time.Duration // from a start until training
	Seed    uint64
}

// NewTrace draws jobs of three models on two groups of nodes.
func NewTrace(jobs int, seed uint64) *Trace {
	rng := rand.New(rand.NewPCG(seed, 0))
	t := &Trace{World: &schedulertest.World{}, Cost: 20 * time.Second, Seed: seed}
	for i, name := range []string{"x", "y"} {
		t.Cluster.Groups = append(t.Cluster.Groups, spec.NodeGroup{Count: 4, Devices: 4, Accelerator: spec.Accelerator{Name: name}})
		for m, model := range []string{"a", "b", "c"} {
			for n := 1; n <= 8; n *= 2 {
				rate := 0.3 * float64(m+1) * float64(2-i) * float64(n) / (1 + 0.1*float64(m*n))
				t.World.Add(model, name, schedulertest.OnePlan(n), spec.Packed(n, 4), rate)
			}
		}
	}
	at := time.Duration(0)
	for i := range jobs {
		n := []int{1, 1, 2, 4, 8}[rng.IntN(5)]
		model := []string{"a", "b", "c"}[rng.IntN(3)]
		t.Jobs = append(t.Jobs, spec.Job{
			ID: spec.JobID(fmt.Sprintf("j%03d", i)), Model: spec.Model{Name: model}, Plan: schedulertest.OnePlan(n), Devices: n,
			Submit: at, Steps: float64(50 + rng.IntN(2000)),
		})
		at += time.Duration(rng.ExpFloat64() * float64(60*time.Second)).Truncate(time.Millisecond)
	}
	return t
}

// Policy returns a policy with estimates that are wrong by 20 %.
func (t *Trace) Policy(tb testing.TB, name string) scheduler.Policy {
	p, err := builtin.Policies.New(policy.Spec{Name: name}, policy.Deps{Oracle: t.World.Oracle(0.2, t.Seed), Seed: t.Seed})
	if err != nil {
		tb.Fatal(err)
	}
	return p
}

// Rate returns the true speed of a job as package livetest asks for it.
func (t *Trace) Rate(j *spec.Job) func(plan string, slots live.Slots) float64 {
	return func(plan string, slots live.Slots) float64 {
		p, err := spec.ParsePlan(plan)
		if err != nil {
			panic(err)
		}
		var counts []int
		group := &t.Cluster.Groups[0]
		for name, n := range slots {
			counts = append(counts, n)
			if name[0] == 'y' {
				group = &t.Cluster.Groups[1]
			}
		}
		g := &scheduler.Grant{Job: j.ID, Plan: p, Shape: spec.NewShape(counts...)}
		rate, err := t.World.Truth(t.Cluster).StepsPerSec(context.Background(), j, g, group)
		if err != nil {
			panic(err)
		}
		return rate
	}
}

// Nodes returns the nodes of the cluster.
func (t *Trace) Nodes() (out []live.Node) {
	for _, g := range t.Cluster.Groups {
		for i := range g.Count {
			out = append(out, live.Node{Name: fmt.Sprintf("%s%d", g.Accelerator.Name, i), Type: g})
		}
	}
	return out
}

// Drive submits the jobs to a cluster and lets a controller tick, until all jobs have ended or stop,
// if set, returns true.
func (t *Trace) Drive(tb testing.TB, c *Cluster, controller *live.Controller, stop func() bool) {
	tb.Helper()
	next := 0
	for wake := Epoch; stop == nil || !stop(); {
		at := wake
		if end, ok := c.NextEnd(); ok && end.Before(at) {
			at = end
		}
		if next < len(t.Jobs) {
			if arrival := Epoch.Add(t.Jobs[next].Submit); arrival.Before(at) {
				at = arrival
			}
		}
		c.Advance(at)
		for ; next < len(t.Jobs) && !Epoch.Add(t.Jobs[next].Submit).After(at); next++ {
			c.Submit(t.Jobs[next], t.Cost, t.Jobs[next].Steps, t.Rate(&t.Jobs[next]))
		}
		var err error
		for before := -1; before != c.Writes(); {
			before = c.Writes()
			if wake, err = controller.Tick(tb.Context()); err != nil {
				tb.Fatal(err)
			}
		}
		if next == len(t.Jobs) && len(c.Jobs()) == 0 {
			return
		}
	}
}
