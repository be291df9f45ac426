package live_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/scheduler"
	"github.com/pacer-ml/pacer/scheduler/live"
	"github.com/pacer-ml/pacer/scheduler/live/livetest"
	"github.com/pacer-ml/pacer/scheduler/policy"
	"github.com/pacer-ml/pacer/scheduler/policy/builtin"
	"github.com/pacer-ml/pacer/scheduler/schedulertest"
	"github.com/pacer-ml/pacer/scheduler/sim"
)

// trace is a workload with the speeds of all configurations.
type trace struct {
	world   *schedulertest.World
	cluster spec.Cluster
	jobs    []spec.Job
	cost    time.Duration
	seed    uint64
}

// newTrace draws jobs of three models on two groups of nodes.
func newTrace(jobs int, seed uint64) *trace {
	rng := rand.New(rand.NewPCG(seed, 0))
	t := &trace{world: &schedulertest.World{}, cost: 20 * time.Second, seed: seed}
	for i, name := range []string{"x", "y"} {
		t.cluster.Groups = append(t.cluster.Groups, spec.NodeGroup{Count: 4, Devices: 4, Accelerator: spec.Accelerator{Name: name}})
		for m, model := range []string{"a", "b", "c"} {
			for n := 1; n <= 8; n *= 2 {
				rate := 0.3 * float64(m+1) * float64(2-i) * float64(n) / (1 + 0.1*float64(m*n))
				t.world.Add(model, name, schedulertest.OnePlan(n), spec.Packed(n, 4), rate)
			}
		}
	}
	at := time.Duration(0)
	for i := range jobs {
		n := []int{1, 1, 2, 4, 8}[rng.IntN(5)]
		model := []string{"a", "b", "c"}[rng.IntN(3)]
		t.jobs = append(t.jobs, spec.Job{
			ID: spec.JobID(fmt.Sprintf("j%03d", i)), Model: spec.Model{Name: model}, Plan: schedulertest.OnePlan(n), Devices: n,
			Submit: at, Steps: float64(50 + rng.IntN(2000)),
		})
		at += time.Duration(rng.ExpFloat64() * float64(60*time.Second)).Truncate(time.Millisecond)
	}
	return t
}

func (t *trace) policy(tb testing.TB, name string) scheduler.Policy {
	p, err := builtin.Policies.New(policy.Spec{Name: name}, policy.Deps{Oracle: t.world.Oracle(0.2, t.seed), Seed: t.seed})
	if err != nil {
		tb.Fatal(err)
	}
	return p
}

// rate returns the true speed of a job as package livetest asks for it.
func (t *trace) rate(j *spec.Job) func(plan string, slots live.Slots) float64 {
	return func(plan string, slots live.Slots) float64 {
		p, err := spec.ParsePlan(plan)
		if err != nil {
			panic(err)
		}
		var counts []int
		group := &t.cluster.Groups[0]
		for name, n := range slots {
			counts = append(counts, n)
			if name[0] == 'y' {
				group = &t.cluster.Groups[1]
			}
		}
		g := &scheduler.Grant{Job: j.ID, Plan: p, Shape: spec.NewShape(counts...)}
		rate, err := t.world.Truth(t.cluster).StepsPerSec(context.Background(), j, g, group)
		if err != nil {
			panic(err)
		}
		return rate
	}
}

func (t *trace) nodes() (out []live.Node) {
	for _, g := range t.cluster.Groups {
		for i := range g.Count {
			out = append(out, live.Node{Name: fmt.Sprintf("%s%d", g.Accelerator.Name, i), Type: g})
		}
	}
	return out
}

// recorder writes the decisions of a policy down.
type recorder struct {
	scheduler.Policy
	decisions *[]string
}

func (r recorder) Decide(ctx context.Context, s *scheduler.Snapshot) (scheduler.Decision, error) {
	for _, j := range s.Jobs() {
		*r.decisions = append(*r.decisions, stateText(s.Now, j))
	}
	d, err := r.Policy.Decide(ctx, s)
	var parts []string
	for _, g := range d.Grants {
		parts = append(parts, fmt.Sprintf("%s: %s on %v", g.Job, g.Plan, g.Slots))
	}
	for _, id := range d.Stops {
		parts = append(parts, fmt.Sprintf("%s stops", id))
	}
	slices.Sort(parts)
	*r.decisions = append(*r.decisions, fmt.Sprintf("%v keep %v wake %v: %s", s.Now, d.Keep, d.Wake, strings.Join(parts, "; ")))
	return d, err
}

// stateText is what a policy may read of a job, to nine digits.
func stateText(now time.Duration, j *scheduler.JobState) string {
	text := fmt.Sprintf("%v: %s %d %s, %.9g done, %.9g left, %.9g attained, %d restarts, %d failures, since %v, waited %v, first run %v, start cost %v",
		now, j.Job.ID, j.Order, j.Phase, j.Done, j.Remaining, j.Attained, j.Restarts, j.Failures, j.Since, j.Waited, j.FirstRun, j.StartCost)
	if j.Grant != nil {
		text += fmt.Sprintf(", ready %v, %s on %v", j.Ready, j.Grant.Plan, j.Grant.Slots)
	}
	return text
}

var conforming = []string{"fifo", "srtf", "gavel-las", "optimus", "rubick", "sia", "pacer"}

// TestConformance runs a trace in the simulator and on a cluster in memory: every policy is
// called at the same times and decides the same.
func TestConformance(t *testing.T) {
	jobs := 200
	if testing.Short() {
		jobs = 60
	}
	for _, name := range conforming {
		t.Run(name, func(t *testing.T) {
			tr := newTrace(jobs, 7)
			simulated, lived := tr.simulate(t, name), tr.live(t, name, nil)
			for i := range min(len(simulated), len(lived)) {
				if simulated[i] != lived[i] {
					t.Fatalf("decision %d of %d:\nsimulated %s\nlive      %s", i, len(simulated), simulated[i], lived[i])
				}
			}
			if len(simulated) != len(lived) || len(simulated) < jobs {
				t.Fatalf("%d decisions when simulated, %d live", len(simulated), len(lived))
			}
			t.Logf("%d equal decisions", len(lived))
		})
	}
}

func (t *trace) simulate(tb testing.TB, name string) (decisions []string) {
	_, err := sim.Run(tb.Context(), sim.Config{
		Cluster: t.cluster, Jobs: t.jobs, Policy: recorder{t.policy(tb, name), &decisions}, PolicyName: name, Truth: t.world.Truth(t.cluster),
		Costs:   sim.PerStart(func(spec.Job) time.Duration { return t.cost }),
		Observe: func(sim.Event) {}, // reasons are requested, as they are live
	})
	if err != nil {
		tb.Fatal(err)
	}
	return decisions
}

// epoch is the time at which traces begin.
var epoch = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// live runs the trace on a cluster in memory. change, if set, changes the options.
func (t *trace) live(tb testing.TB, name string, change func(*live.Options)) (decisions []string) {
	c := livetest.New(epoch, t.nodes()...)
	c.Violation = func(text string) { tb.Errorf("at %v: %s", c.Now(), text) }
	o := live.Options{
		Cluster: c, StartCost: t.cost, Epoch: epoch, Now: c.Now,
		Policy: func(spec.Cluster) (scheduler.Policy, error) { return recorder{t.policy(tb, name), &decisions}, nil },
		OnEvent: func(e live.Event) {
			if e.Warning {
				tb.Errorf("at %v: %s %s: %s", e.At, e.Object, e.Kind, e.Message)
			}
		},
	}
	if change != nil {
		change(&o)
	}
	controller, err := live.New(o)
	if err != nil {
		tb.Fatal(err)
	}
	next := 0
	for wake := epoch; ; {
		at := wake
		if end, ok := c.NextEnd(); ok && end.Before(at) {
			at = end
		}
		if next < len(t.jobs) {
			if arrival := epoch.Add(t.jobs[next].Submit); arrival.Before(at) {
				at = arrival
			}
		}
		c.Advance(at)
		for ; next < len(t.jobs) && !epoch.Add(t.jobs[next].Submit).After(at); next++ {
			c.Submit(t.jobs[next], t.cost, t.jobs[next].Steps, t.rate(&t.jobs[next]))
		}
		for before := -1; before != c.Writes(); {
			before = c.Writes()
			if wake, err = controller.Tick(tb.Context()); err != nil {
				tb.Fatal(err)
			}
		}
		if next == len(t.jobs) && len(c.Jobs()) == 0 {
			return decisions
		}
	}
}
