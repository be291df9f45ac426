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
		taught.Observations = &sim.Observations{Learner: pupil, After: 10 * time.Second, Sigma: 0.1, Seed: 3}
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
