package livetest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/scheduler"
	"github.com/pacer-ml/pacer/scheduler/live"
	"github.com/pacer-ml/pacer/scheduler/place"
	"github.com/pacer-ml/pacer/scheduler/policy"
	"github.com/pacer-ml/pacer/scheduler/policy/builtin"
	"github.com/pacer-ml/pacer/scheduler/schedulertest"
)

// Epoch is the time at which traces begin.
var Epoch = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// Trace is a workload with the speeds of all configurations.
type Trace struct {
	World   *schedulertest.World
	Cluster spec.Cluster // of the nodes, as policies see it
	Jobs    []spec.Job
	Cost    time.Duration // from a start until training
	Seed    uint64
	// Even says that jobs have the same number of devices on each of their nodes, as real clusters need.
	Even bool

	nodes []live.Node
	group map[string]*spec.NodeGroup // by node
}

// NewTrace draws jobs of three models on four nodes of type x and four of type y, with 4 devices each.
func NewTrace(jobs int, seed uint64) *Trace {
	var nodes []live.Node
	for _, name := range []string{"x", "y"} {
		nodes = append(nodes, NewNodes(spec.NodeGroup{Count: 4, Devices: 4, Accelerator: spec.Accelerator{Name: name}})...)
	}
	return NewTraceOn(nodes, jobs, seed)
}

// NewNodes returns the nodes of a group, named by its accelerator and a number.
func NewNodes(g spec.NodeGroup) (out []live.Node) {
	for i := range g.Count {
		out = append(out, live.Node{Name: fmt.Sprintf("%s%d", g.Accelerator.Name, i), Type: g})
	}
	return out
}

// NewTraceOn draws jobs of three models on some nodes.
func NewTraceOn(nodes []live.Node, jobs int, seed uint64) *Trace {
	rng := rand.New(rand.NewPCG(seed, 0))
	t := &Trace{World: &schedulertest.World{}, Cost: 20 * time.Second, Seed: seed, nodes: nodes, group: map[string]*spec.NodeGroup{}}
	var number map[string]int
	t.Cluster, number, _ = live.Arrange(nodes)
	for name, i := range number {
		t.group[name] = &t.Cluster.Groups[t.Cluster.GroupOf(i)]
	}
	most := 8
	for i := range t.Cluster.Groups {
		g := &t.Cluster.Groups[i]
		most = min(most, g.Count*g.Devices)
		for m, model := range models {
			for n := 1; n <= min(8, g.Count*g.Devices); n *= 2 {
				rate := 0.3 * float64(m+1) * float64(2-i) * float64(n) / (1 + 0.1*float64(m*n))
				t.World.Add(model, g.Accelerator.Name, schedulertest.OnePlan(n), spec.Packed(n, g.Devices), rate)
			}
		}
	}
	at := time.Duration(0)
	for i := range jobs {
		n := min([]int{1, 1, 2, 4, 8}[rng.IntN(5)], most)
		model := models[rng.IntN(3)]
		t.Jobs = append(t.Jobs, spec.Job{
			ID: spec.JobID(fmt.Sprintf("j%03d", i)), Model: spec.Model{Name: model}, Plan: schedulertest.OnePlan(n), Devices: n,
			Submit: at, Steps: float64(50 + rng.IntN(2000)),
		})
		at += time.Duration(rng.ExpFloat64() * float64(60*time.Second)).Truncate(time.Millisecond)
	}
	return t
}

var models = []string{"a", "b", "c"}

// Model returns a model of the traces.
func Model(name string) (spec.Model, error) {
	if !slices.Contains(models, name) {
		return spec.Model{}, fmt.Errorf("unknown model %q", name)
	}
	return spec.Model{Name: name}, nil
}

// Policy returns a policy with estimates that are wrong by 20 %.
func (t *Trace) Policy(tb testing.TB, name string) scheduler.Policy {
	d := policy.Deps{Oracle: t.World.Oracle(0.2, t.Seed), Seed: t.Seed}
	var err error
	if t.Even {
		if d.Placer, err = place.Lookup(""); err != nil {
			tb.Fatal(err)
		}
		d.Placer, d.Oracle = place.Even(d.Placer), place.EvenOracle{Oracle: d.Oracle}
	}
	p, err := builtin.Policies.New(policy.Spec{Name: name}, d)
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
		var group *spec.NodeGroup
		for name, n := range slots {
			counts = append(counts, n)
			group = t.group[name]
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
func (t *Trace) Nodes() []live.Node { return slices.Clone(t.nodes) }

// Stage is a cluster with a clock that a test sets: a Cluster or a Mirror.
type Stage interface {
	live.Cluster
	Submit(j spec.Job, cost time.Duration, work float64, rate func(plan string, slots live.Slots) float64)
	Advance(to time.Time)
	NextEnd() (at time.Time, ok bool)
	Now() time.Time
	Jobs() []live.Job
}

// Drive submits the jobs to a cluster and lets a controller tick, until all jobs have ended or stop,
// if set, returns true.
func (t *Trace) Drive(tb testing.TB, c Stage, controller *live.Controller, stop func() bool) {
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
		for before := -1; before != controller.Stats().Writes; { // failed ones, too
			before = controller.Stats().Writes
			if wake, err = controller.Tick(tb.Context()); err != nil {
				tb.Fatal(err)
			}
		}
		if next == len(t.Jobs) && len(c.Jobs()) == 0 {
			return
		}
	}
}
