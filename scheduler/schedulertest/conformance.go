package schedulertest

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/scheduler"
	"github.com/pacer-ml/pacer/scheduler/sim"
)

// Maker makes a policy that knows what oracle says; nil means nothing.
type Maker func(oracle scheduler.Oracle) (scheduler.Policy, error)

// Conformance runs what every policy must pass, whatever it optimizes.
func Conformance(t *testing.T, make Maker) {
	t.Run("empty", func(t *testing.T) { conformEmpty(t, make) })
	t.Run("blind", func(t *testing.T) { conformBlind(t, make) })
	t.Run("waits-for-room", func(t *testing.T) { conformRoom(t, make) })
	t.Run("random", func(t *testing.T) { rapid.Check(t, func(rt *rapid.T) { conformRandom(rt, make, DrawCase) }) })
	t.Run("learning", func(t *testing.T) { rapid.Check(t, func(rt *rapid.T) { conformLearning(rt, make, DrawCase) }) })
	t.Run("relabelled", func(t *testing.T) { rapid.Check(t, func(rt *rapid.T) { conformRelabelled(rt, make, DrawCase) }) })
	t.Run("whole-target", func(t *testing.T) { rapid.Check(t, func(rt *rapid.T) { conformPure(rt, make, DrawCase) }) })
}

// ConformanceServed runs what every policy must pass that places jobs with parameter
// servers. The oracle that make is given is the scheduler.ServerSpace too.
func ConformanceServed(t *testing.T, make Maker) {
	t.Run("empty", func(t *testing.T) {
		conformEmpty(t, func(scheduler.Oracle) (scheduler.Policy, error) { return make((&World{}).Oracle(0, 1)) })
	})
	t.Run("random", func(t *testing.T) { rapid.Check(t, func(rt *rapid.T) { conformRandom(rt, make, DrawServedCase) }) })
	t.Run("learning", func(t *testing.T) { rapid.Check(t, func(rt *rapid.T) { conformLearning(rt, make, DrawServedCase) }) })
	t.Run("relabelled", func(t *testing.T) { rapid.Check(t, func(rt *rapid.T) { conformRelabelled(rt, make, DrawServedCase) }) })
	t.Run("whole-target", func(t *testing.T) { rapid.Check(t, func(rt *rapid.T) { conformPure(rt, make, DrawServedCase) }) })
}

// tb is what tests and rapid have in common.
type tb interface {
	Helper()
	Fatal(args ...any)
	Fatalf(format string, args ...any)
}

func policyOf(t tb, make Maker, oracle scheduler.Oracle) scheduler.Policy {
	t.Helper()
	p, err := make(oracle)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// conformEmpty: nobody there, nothing granted.
func conformEmpty(t *testing.T, make Maker) {
	d, err := policyOf(t, make, nil).Decide(t.Context(), &scheduler.Snapshot{Cluster: Nodes(2, 4)})
	if err != nil || len(d.Grants) != 0 {
		t.Errorf("empty snapshot: %d grants, error %v", len(d.Grants), err)
	}
}

// conformBlind: jobs nothing is known about run as submitted, to the end.
func conformBlind(t *testing.T, make Maker) {
	var jobs []spec.Job
	for i := range 12 {
		jobs = append(jobs, spec.Job{ID: spec.JobID(fmt.Sprintf("j%02d", i)), Model: spec.Model{Name: "unheard-of"},
			Submit: time.Duration(i) * time.Second, Devices: 1 + i%7, Duration: time.Duration(10+i) * time.Second})
	}
	r := runWith(t, Case{Cluster: Nodes(2, 4), Jobs: jobs}, policyOf(t, make, nil), sim.Durations{})
	for _, j := range r.Jobs {
		if !j.Finished {
			t.Errorf("job %s: %s", j.Job.ID, j.Unfinished)
		}
	}
}

// conformRoom: a job larger than the room there is starts once there is room.
func conformRoom(t *testing.T, make Maker) {
	w := &World{}
	for _, n := range []int{2, 4} {
		w.Add("m", "x", OnePlan(n), spec.NewShape(n), 1)
	}
	c := Case{World: w, Cluster: Nodes(1, 4), StartCost: 30 * time.Second, Jobs: []spec.Job{
		{ID: "small", Model: spec.Model{Name: "m"}, Plan: OnePlan(2), Devices: 2, Steps: 100},
		{ID: "large", Model: spec.Model{Name: "m"}, Plan: OnePlan(4), Devices: 4, Steps: 100, Submit: time.Second},
	}}
	r := runWith(t, c, policyOf(t, make, w.Oracle(0, 1)), w.Truth(c.Cluster))
	for _, j := range r.Jobs {
		if !j.Finished {
			t.Errorf("job %s: %s", j.Job.ID, j.Unfinished)
		}
	}
}

// conformRandom: on any workload every job ends, no device is held twice
// (counted here, apart from the engine), and a second run, the jobs given in
// another order, gives the same.
func conformRandom(t *rapid.T, make Maker, draw func(*rapid.T) Case) {
	c := draw(t)
	oracle := c.World.Oracle(0.2, 7)
	first := runWith(t, c, policyOf(t, make, oracle), c.World.Truth(c.Cluster))
	for _, j := range first.Jobs {
		if !j.Finished {
			t.Fatalf("job %s on %d devices: %s%s", j.Job.ID, j.Job.Devices, j.Rejected, j.Unfinished)
		}
		if want := c.StartCost; j.End-j.Start < want {
			t.Fatalf("job %s ran %v, less than its start cost %v", j.Job.ID, j.End-j.Start, want)
		}
	}
	shuffled := c
	shuffled.Explain = true // which changes nothing
	shuffled.Jobs = rapid.Permutation(c.Jobs).Draw(t, "order")
	second := runWith(t, shuffled, policyOf(t, make, oracle), c.World.Truth(c.Cluster))
	if diff := cmp.Diff(first, second, cmpopts.IgnoreFields(sim.Result{}, "Elapsed")); diff != "" {
		t.Fatalf("two runs differ (-first +second):\n%s", diff)
	}
}

// conformLearning: where the belief changes in the course of the run every job
// ends, and a second run gives the same.
func conformLearning(t *rapid.T, make Maker, draw func(*rapid.T) Case) {
	c := draw(t)
	once := func() *sim.Result {
		pupil := c.World.Pupil(0.5, 7)
		taught := c
		taught.Sightings = &sim.Sightings{Learner: pupil, After: 10 * time.Second, Sigma: 0.1, Seed: 3}
		return runWith(t, taught, policyOf(t, make, pupil), c.World.Truth(c.Cluster))
	}
	first := once()
	for _, j := range first.Jobs {
		if !j.Finished {
			t.Fatalf("job %s on %d devices: %s%s", j.Job.ID, j.Job.Devices, j.Rejected, j.Unfinished)
		}
	}
	if diff := cmp.Diff(first, once(), cmpopts.IgnoreFields(sim.Result{}, "Elapsed")); diff != "" {
		t.Fatalf("two runs differ (-first +second):\n%s", diff)
	}
}

// conformRelabelled: jobs by other names, in the same order, fare the same; so
// do all of them an hour later.
func conformRelabelled(t *rapid.T, make Maker, draw func(*rapid.T) Case) {
	c := draw(t)
	oracle := c.World.Oracle(0.2, 7)
	first := runWith(t, c, policyOf(t, make, oracle), c.World.Truth(c.Cluster))
	other := c
	other.Jobs = slices.Clone(c.Jobs)
	for i := range other.Jobs {
		other.Jobs[i].ID = "renamed-" + other.Jobs[i].ID
		other.Jobs[i].Submit += time.Hour
		if other.Jobs[i].Deadline > 0 {
			other.Jobs[i].Deadline += time.Hour
		}
	}
	second := runWith(t, other, policyOf(t, make, oracle), c.World.Truth(c.Cluster))
	for i, a := range first.Jobs {
		b := second.Jobs[i]
		if a.JCT() != b.JCT() || a.Restarts != b.Restarts || a.Attained != b.Attained {
			t.Fatalf("job %s: %v, %d restarts, %g device-s; renamed and an hour later %v, %d, %g",
				a.Job.ID, a.JCT(), a.Restarts, a.Attained, b.JCT(), b.Restarts, b.Attained)
		}
	}
}

// conformPure: Decide leaves the snapshot alone, and asked twice it answers
// twice the same.
func conformPure(t *rapid.T, make Maker, draw func(*rapid.T) Case) {
	c := draw(t)
	p := policyOf(t, make, c.World.Oracle(0.2, 7))
	runWith(t, c, twice{t, p}, c.World.Truth(c.Cluster))
}

// twice asks a policy twice and compares.
type twice struct {
	t tb
	p scheduler.Policy
}

func (w twice) Decide(ctx context.Context, s *scheduler.Snapshot) (scheduler.Decision, error) {
	before := clone(s)
	d, err := w.p.Decide(ctx, s)
	if err != nil {
		return d, err
	}
	if diff := cmp.Diff(before, clone(s)); diff != "" {
		w.t.Fatalf("Decide changed the snapshot (-before +after):\n%s", diff)
	}
	again, err := w.p.Decide(ctx, s)
	if diff := cmp.Diff(d, again); diff != "" || err != nil {
		w.t.Fatalf("asked twice at %v (-first +second), error %v:\n%s", s.Now, err, diff)
	}
	return d, nil
}

// seen is all that a snapshot shows.
type seen struct {
	Now     time.Duration
	Cluster spec.Cluster
	Waiting []spec.JobID
	Jobs    []scheduler.JobState
	Free    []int
	Asked   int
}

func clone(s *scheduler.Snapshot) seen {
	out := seen{Now: s.Now, Cluster: s.Cluster, Free: slices.Clone(s.Free().Free), Asked: s.Asked()}
	for _, j := range s.Waiting {
		out.Waiting = append(out.Waiting, j.Job.ID)
	}
	for _, j := range s.Jobs() {
		c := *j
		if j.Grant != nil {
			g := *j.Grant
			g.Slots = slices.Clone(g.Slots)
			c.Grant = &g
		}
		job := *j.Job
		c.Job = &job
		out.Jobs = append(out.Jobs, c)
	}
	return out
}

// Case is a simulation but for its policy.
type Case struct {
	World     *World
	Cluster   spec.Cluster
	Jobs      []spec.Job
	StartCost time.Duration
	Round     time.Duration // 0 = none
	Admission scheduler.Admission
	Explain   bool // every job: whatever happens to one has a reason
	Sightings *sim.Sightings
}

// Nodes returns a cluster of one group of accelerator "x".
func Nodes(count, devices int) spec.Cluster {
	return spec.Cluster{Groups: []spec.NodeGroup{{Count: count, Devices: devices, Accelerator: spec.Accelerator{Name: "x"}}}}
}

// runWith simulates a case, and recounts.
func runWith(t tb, c Case, p scheduler.Policy, truth sim.Truth) *sim.Result {
	t.Helper()
	recount := Recount{
		Cluster: c.Cluster, Jobs: c.Jobs, Round: c.Round,
		Costs: func(*spec.Job) sim.ModelCosts { return sim.ModelCosts{Launch: c.StartCost} },
	}
	if pairs, ok := truth.(sim.Colocated); ok {
		recount.Beside = func(j *spec.Job, g *scheduler.Grant, other *spec.Job) float64 {
			its := g.Beside("") // in a world plans follow from devices
			rate, err := pairs.StepsPerSecBeside(context.Background(), j, g, other, its, recount.groupOf(g.Slots[0].Node))
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
		Costs: sim.PerStart(func(spec.Job) time.Duration { return c.StartCost }), Observe: recount.Observe,
		Round: c.Round, Admission: c.Admission, Sightings: c.Sightings, Audit: true,
	}
	if c.Explain {
		config.Explain = c.explain(t)
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

// explain asks for the reasons of all that happens, which must be there.
func (c *Case) explain(t tb) *sim.Explain {
	x := &sim.Explain{}
	for i := range c.Jobs {
		x.Jobs = append(x.Jobs, c.Jobs[i].ID)
	}
	x.Tell = func(e sim.Event) {
		switch e.Kind {
		case sim.Submitted, sim.Completed, sim.Failed, sim.Shared: // no decisions about the job
		default:
			if e.Why == "" {
				t.Fatalf("job %s %s at %v, and no reason is given: Decision.Because says why", e.Job.ID, e.Kind, e.At)
			}
		}
	}
	return x
}

// DrawCase draws a cluster of one or two groups, three kinds of jobs with
// arbitrary speeds, and a workload that could run on it.
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

// drawPairs lets jobs of some models share devices, for better or worse.
func drawPairs(t *rapid.T, w *World) {
	part := rapid.Float64Range(0.05, 1)
	for _, pair := range []string{"aa", "ab", "ac", "bb", "bc", "cc"} {
		if a, b := pair[:1], pair[1:]; rapid.Bool().Draw(t, "shares") {
			w.Pair(a, b, part.Draw(t, "part"), part.Draw(t, "part"))
		}
	}
}

// drawHost draws what a job on n devices needs of the host for each, at most what
// a node has for as many of them as it has devices for: all of it where it is one
// device on a large node, so that the others lie idle.
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

// MostHost returns the most that each of n devices can need of the host such that
// they run packed in all groups with as many.
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

// drawSpeeds lets a model run on some device counts of every group, on the
// fewest nodes and at times on twice as many, and returns those counts.
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
	var out []int
	for n := range seen {
		out = append(out, n)
	}
	slices.Sort(out)
	return out
}
