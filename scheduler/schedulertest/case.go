package schedulertest

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"pgregory.net/rapid"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/scheduler"
	"github.com/pacer-ml/pacer/scheduler/sim"
)

// Case is a simulation without its policy.
type Case struct {
	World        *World
	Cluster      spec.Cluster
	Jobs         []spec.Job
	StartCost    time.Duration
	Round        time.Duration // 0 = none
	Admission    scheduler.Admission
	Explain      bool // check that every event of a job has a reason
	Observations *sim.Observations
}

// Nodes returns a cluster of one group of accelerator "x".
func Nodes(count, devices int) spec.Cluster {
	return spec.Cluster{Groups: []spec.NodeGroup{{Count: count, Devices: devices, Accelerator: spec.Accelerator{Name: "x"}}}}
}

// maxEvents is the number of events per job after which a simulation fails.
const maxEvents = 2000

// runWith simulates a case, and checks the result with a Recount.
func runWith(t tb, c Case, p scheduler.Policy, truth sim.Truth) *sim.Result {
	t.Helper()
	recount := Recount{
		Cluster: c.Cluster, Jobs: c.Jobs, Round: c.Round,
		Costs: func(*spec.Job) sim.ModelCosts { return sim.ModelCosts{Launch: c.StartCost} },
	}
	if pairs, ok := truth.(sim.Colocated); ok {
		recount.Beside = func(j *spec.Job, g *scheduler.Grant, other *spec.Job) float64 {
			otherGrant := g.Beside("") // in a World the number of devices determines the plan
			rate, err := pairs.StepsPerSecBeside(context.Background(), j, g, other, otherGrant, recount.groupOf(g.Slots[0].Node))
			if err != nil {
				t.Fatal(err)
			}
			return rate
		}
	}
	recount.Rate = func(j *spec.Job, g *scheduler.Grant) float64 {
		rate, err := truth.StepsPerSec(context.Background(), j, g, recount.groupOf(g.Slots[0].Node))
		if err != nil {
			t.Fatal(err)
		}
		return rate
	}
	config := sim.Config{
		Cluster: c.Cluster, Jobs: c.Jobs, Policy: p, PolicyName: "tested", Truth: truth,
		Costs: sim.PerStart(func(spec.Job) time.Duration { return c.StartCost }),
		Round: c.Round, Admission: c.Admission, Observations: c.Observations, Audit: true,
	}
	if c.Explain {
		config.Explain = c.explain(t)
	}
	events := 0
	config.Observe = func(e sim.Event) {
		if events++; events > maxEvents*len(c.Jobs) {
			t.Fatalf("more than %d events per job at %v: jobs are started and stopped again and again; a quantum limits that, see order.Ranking", maxEvents, e.At)
		}
		recount.Observe(e)
	}
	r, err := sim.Run(context.Background(), config)
	if err == nil {
		err = recount.Check(r)
	}
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// explain requests the reasons of all events, and fails if one is missing.
func (c *Case) explain(t tb) *sim.Explain {
	x := &sim.Explain{}
	for i := range c.Jobs {
		x.Jobs = append(x.Jobs, c.Jobs[i].ID)
	}
	x.OnEvent = func(e sim.Event) {
		switch e.Kind {
		case sim.Submitted, sim.Completed, sim.Failed, sim.Evicted, sim.Shared, sim.Cancelled: // no decisions about the job
		default:
			if e.Why == "" {
				t.Fatalf("job %s %s at %v without a reason: call Decision.Because", e.Job.ID, e.Kind, e.At)
			}
		}
	}
	return x
}

// DrawCase draws a cluster of one or two groups, three models with random speeds, and a
// workload in which every job can run.
func DrawCase(t *rapid.T) Case {
	c := Case{World: &World{}}
	for i := range rapid.IntRange(1, 2).Draw(t, "groups") {
		c.Cluster.Groups = append(c.Cluster.Groups, spec.NodeGroup{
			Count:       rapid.IntRange(1, 4).Draw(t, "nodes"),
			Devices:     rapid.SampledFrom([]int{1, 2, 4, 8}).Draw(t, "devices"),
			Accelerator: spec.Accelerator{Name: string(rune('x' + i))},
			CPUs:        rapid.SampledFrom([]int{0, 4, 7}).Draw(t, "CPUs"),
			HostBytes:   rapid.SampledFrom([]float64{0, 0, 1 << 30}).Draw(t, "host bytes"),
		})
	}
	c.StartCost = rapid.SampledFrom([]time.Duration{0, time.Minute}).Draw(t, "start cost")
	c.Round = rapid.SampledFrom([]time.Duration{0, 0, 5 * time.Minute}).Draw(t, "round")
	sizes := map[string][]int{} // device counts each model can run on
	for _, model := range []string{"a", "b", "c"} {
		sizes[model] = drawSpeeds(t, c, model)
	}
	drawPairs(t, c.World)
	for i := range rapid.IntRange(1, 20).Draw(t, "jobs") {
		model := rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "model")
		n := rapid.SampledFrom(sizes[model]).Draw(t, "size")
		c.Jobs = append(c.Jobs, spec.Job{
			ID: spec.JobID(fmt.Sprintf("j%02d", i)), Model: spec.Model{Name: model}, Plan: OnePlan(n), Devices: n,
			Submit:     time.Duration(rapid.IntRange(0, 20).Draw(t, "submit")) * time.Minute,
			Steps:      rapid.Float64Range(1, 5000).Draw(t, "steps"),
			Guaranteed: rapid.Bool().Draw(t, "guaranteed"),
			Weight:     rapid.SampledFrom([]float64{0, 1, 4}).Draw(t, "weight"),
			Deadline:   rapid.SampledFrom([]time.Duration{0, time.Hour, 2 * time.Hour}).Draw(t, "deadline"),
			Tenant:     rapid.SampledFrom([]string{"", "t"}).Draw(t, "tenant"),
			Host:       drawHost(t, c.Cluster, n),
		})
	}
	return c
}

// drawPairs draws the models that can share devices, with their speeds.
func drawPairs(t *rapid.T, w *World) {
	part := rapid.Float64Range(0.05, 1)
	for _, pair := range []string{"aa", "ab", "ac", "bb", "bc", "cc"} {
		if a, b := pair[:1], pair[1:]; rapid.Bool().Draw(t, "shares") {
			w.Pair(a, b, part.Draw(t, "part"), part.Draw(t, "part"))
		}
	}
}

// drawHost draws the host resources per device of a job on n devices, at most MostHost.
// A job with one device may need all of a node, so that its other devices stay idle.
func drawHost(t *rapid.T, c spec.Cluster, n int) spec.Host {
	most := MostHost(c, n)
	part := func(of int64, what string) int64 {
		if of == spec.Unlimited {
			return 0
		}
		return of * rapid.SampledFrom([]int64{0, 0, 1, 2, 4}).Draw(t, what) / 4
	}
	return spec.Host{MilliCPUs: part(most.MilliCPUs, "needs CPUs"), Bytes: part(most.Bytes, "needs host bytes")}
}

// MostHost returns the largest host resources per device with which n devices fit,
// packed, in all groups that have n devices.
func MostHost(c spec.Cluster, n int) spec.Host {
	most := spec.Host{MilliCPUs: spec.Unlimited, Bytes: spec.Unlimited}
	for i := range c.Groups {
		g := &c.Groups[i]
		side := int64(min(n, g.Devices))
		if n > g.Count*g.Devices {
			continue
		}
		if g.CPUs > 0 {
			most.MilliCPUs = min(most.MilliCPUs, 1000*int64(g.CPUs)/side)
		}
		if g.HostBytes > 0 {
			most.Bytes = min(most.Bytes, int64(g.HostBytes)/side)
		}
	}
	return most
}

// drawSpeeds draws the device counts on which a model can run in every group, on the
// fewest nodes and sometimes on twice as many, and returns those counts.
func drawSpeeds(t *rapid.T, c Case, model string) []int {
	seen := map[int]bool{}
	for _, g := range c.Cluster.Groups {
		for n := 1; n <= g.Count*g.Devices; n *= 2 {
			if n > 1 && !rapid.Bool().Draw(t, "runs") {
				continue
			}
			rate := rapid.Float64Range(0.1, 10).Draw(t, "rate")
			c.World.Add(model, g.Accelerator.Name, OnePlan(n), spec.Packed(n, g.Devices), rate)
			if half := n / 2; half > 0 && half <= g.Devices && (n+half-1)/half <= g.Count && rapid.Bool().Draw(t, "spread") {
				c.World.Add(model, g.Accelerator.Name, OnePlan(n), spec.NewShape(half, half), rate*rapid.Float64Range(0.2, 1).Draw(t, "slower"))
			}
			seen[n] = true
		}
	}
	return slices.Sorted(maps.Keys(seen))
}
