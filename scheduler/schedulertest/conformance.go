package schedulertest

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/scheduler"
	"github.com/pacer-ml/pacer/scheduler/policy"
	"github.com/pacer-ml/pacer/scheduler/sim"
)

// Maker makes a policy with an oracle; nil = no estimates.
type Maker func(oracle scheduler.Oracle) (scheduler.Policy, error)

// Conformance runs the suite that every policy must pass, whatever its objective.
func Conformance(t *testing.T, make Maker) {
	t.Run("empty", func(t *testing.T) { conformEmpty(t, make) })
	t.Run("blind", func(t *testing.T) { conformBlind(t, make) })
	t.Run("waits-for-room", func(t *testing.T) { conformRoom(t, make) })
	t.Run("random", func(t *testing.T) { rapid.Check(t, func(rt *rapid.T) { conformRandom(rt, make, DrawCase) }) })
	t.Run("learning", func(t *testing.T) { rapid.Check(t, func(rt *rapid.T) { conformLearning(rt, make, DrawCase) }) })
	t.Run("relabelled", func(t *testing.T) { rapid.Check(t, func(rt *rapid.T) { conformRelabelled(rt, make, DrawCase) }) })
	t.Run("whole-target", func(t *testing.T) { rapid.Check(t, func(rt *rapid.T) { conformPure(rt, make, DrawCase) }) })
	if _, promises := policyOf(t, make, nil).(policy.Settled); promises {
		t.Run("settled", func(t *testing.T) { rapid.Check(t, func(rt *rapid.T) { conformSettled(rt, make, DrawCase) }) })
	}
}

// ConformanceParamServer runs the suite for policies that place jobs with parameter servers.
// The oracle passed to make is also a scheduler.ServerSpace.
func ConformanceParamServer(t *testing.T, make Maker) {
	t.Run("empty", func(t *testing.T) {
		conformEmpty(t, func(scheduler.Oracle) (scheduler.Policy, error) { return make((&World{}).Oracle(0, 1)) })
	})
	t.Run("random", func(t *testing.T) { rapid.Check(t, func(rt *rapid.T) { conformRandom(rt, make, DrawParamServerCase) }) })
	t.Run("learning", func(t *testing.T) {
		rapid.Check(t, func(rt *rapid.T) { conformLearning(rt, make, DrawParamServerCase) })
	})
	t.Run("relabelled", func(t *testing.T) {
		rapid.Check(t, func(rt *rapid.T) { conformRelabelled(rt, make, DrawParamServerCase) })
	})
	t.Run("whole-target", func(t *testing.T) { rapid.Check(t, func(rt *rapid.T) { conformPure(rt, make, DrawParamServerCase) }) })
}

// tb is the common part of *testing.T and *rapid.T.
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

// conformEmpty checks that without jobs nothing is granted.
func conformEmpty(t *testing.T, make Maker) {
	d, err := policyOf(t, make, nil).Decide(t.Context(), &scheduler.Snapshot{Cluster: Nodes(2, 4)})
	if err != nil || len(d.Grants) != 0 {
		t.Errorf("empty snapshot: %d grants, error %v", len(d.Grants), err)
	}
}

// conformBlind checks that jobs without estimates run as submitted until they end.
func conformBlind(t *testing.T, make Maker) {
	var jobs []spec.Job
	for i := range 12 {
		jobs = append(jobs, spec.Job{ID: spec.JobID(fmt.Sprintf("j%02d", i)), Model: spec.Model{Name: "unheard-of"},
			Submit: time.Duration(i) * time.Second, Devices: 1 + i%7, Duration: time.Duration(10+i) * time.Second})
	}
	checkFinished(t, runWith(t, Case{Cluster: Nodes(2, 4), Jobs: jobs}, policyOf(t, make, nil), sim.Durations{}))
}

// checkFinished fails the test if a job did not finish.
func checkFinished(t tb, r *sim.Result) {
	t.Helper()
	for _, j := range r.Jobs {
		if !j.Finished {
			t.Fatalf("job %s: %s%s", j.Job.ID, j.Rejected, j.Unfinished)
		}
	}
}

// conformRoom checks that a job that does not fit starts once there is room.
func conformRoom(t *testing.T, make Maker) {
	w := &World{}
	for _, n := range []int{2, 4} {
		w.Add("m", "x", OnePlan(n), spec.NewShape(n), 1)
	}
	c := Case{World: w, Cluster: Nodes(1, 4), StartCost: 30 * time.Second, Jobs: []spec.Job{
		{ID: "small", Model: spec.Model{Name: "m"}, Plan: OnePlan(2), Devices: 2, Steps: 100},
		{ID: "large", Model: spec.Model{Name: "m"}, Plan: OnePlan(4), Devices: 4, Steps: 100, Submit: time.Second},
	}}
	checkFinished(t, runWith(t, c, policyOf(t, make, w.Oracle(0, 1)), w.Truth(c.Cluster)))
}

// conformRandom checks that on random workloads every job ends, that the recount agrees,
// and that a second run with the jobs in another order gives the same result.
func conformRandom(t *rapid.T, make Maker, draw func(*rapid.T) Case) {
	c := draw(t)
	oracle := c.World.Oracle(0.2, 7)
	first := runWith(t, c, policyOf(t, make, oracle), c.World.Truth(c.Cluster))
	checkFinished(t, first)
	for _, j := range first.Jobs {
		if want := c.StartCost; j.End-j.Start < want {
			t.Fatalf("job %s ran %v, less than its start cost %v", j.Job.ID, j.End-j.Start, want)
		}
	}
	shuffled := c
	shuffled.Explain = true // must not change the result
	shuffled.Jobs = rapid.Permutation(c.Jobs).Draw(t, "order")
	second := runWith(t, shuffled, policyOf(t, make, oracle), c.World.Truth(c.Cluster))
	if diff := cmp.Diff(first, second, cmpopts.IgnoreFields(sim.Result{}, "Elapsed")); diff != "" {
		t.Fatalf("two runs differ (-first +second):\n%s", diff)
	}
}

// conformLearning checks that with an oracle that learns during the run every job ends,
// and that a second run gives the same result.
func conformLearning(t *rapid.T, make Maker, draw func(*rapid.T) Case) {
	c := draw(t)
	once := func() *sim.Result {
		learner := c.World.LearningOracle()
		learning := c
		learning.Observations = &sim.Observations{Learner: learner, After: 10 * time.Second, Sigma: 0.1, Seed: 3}
		return runWith(t, learning, policyOf(t, make, learner), c.World.Truth(c.Cluster))
	}
	first := once()
	checkFinished(t, first)
	if diff := cmp.Diff(first, once(), cmpopts.IgnoreFields(sim.Result{}, "Elapsed")); diff != "" {
		t.Fatalf("two runs differ (-first +second):\n%s", diff)
	}
}

// conformRelabelled checks that renaming jobs in the same order, and submitting all of
// them an hour later, does not change the result.
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

// conformPure checks that Decide does not change the snapshot, and that a second call
// returns the same decision.
func conformPure(t *rapid.T, make Maker, draw func(*rapid.T) Case) {
	c := draw(t)
	p := policyOf(t, make, c.World.Oracle(0.2, 7))
	runWith(t, c, twice{t, p}, c.World.Truth(c.Cluster))
}

// twice calls a policy twice and compares the decisions.
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
	if diff := difference(before, clone(s)); diff != "" {
		w.t.Fatalf("Decide changed the snapshot (-before +after):\n%s", diff)
	}
	again, err := w.p.Decide(ctx, s)
	if diff := difference(d, again); diff != "" || err != nil {
		w.t.Fatalf("two calls of Decide at %v differ (-first +second), error %v:\n%s", s.Now, err, diff)
	}
	return d, nil
}

// snapshotCopy is a deep copy of a snapshot.
type snapshotCopy struct {
	Now       time.Duration
	Cluster   spec.Cluster
	Waiting   []spec.JobID
	Jobs      []scheduler.JobState
	Free      []int
	Requested int
}

func clone(s *scheduler.Snapshot) snapshotCopy {
	out := snapshotCopy{Now: s.Now, Cluster: s.Cluster, Free: slices.Clone(s.Free().Free), Requested: s.Requested()}
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

// difference is cmp.Diff, which takes ten times as long as reflect.DeepEqual where nothing differs.
func difference[T any](a, b T) string {
	if reflect.DeepEqual(a, b) {
		return ""
	}
	return cmp.Diff(a, b)
}
