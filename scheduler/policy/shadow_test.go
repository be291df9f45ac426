package policy

import (
	"context"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/scheduler"
	"github.com/pacer-ml/pacer/scheduler/schedulertest"
	"github.com/pacer-ml/pacer/scheduler/sim"
)

// followed is a policy with a shadow beside it.
type followed struct {
	scheduler.Policy
	shadow *shadow
	t      *rapid.T
	said   map[spec.JobID]time.Duration // when the last decision before they ended said that jobs would
}

func (f *followed) Decide(ctx context.Context, s *scheduler.Snapshot) (scheduler.Decision, error) {
	if err := f.shadow.follow(ctx, s); err != nil {
		return scheduler.Decision{}, err
	}
	ahead, err := f.shadow.look(ctx, s.Cluster)
	if err != nil {
		return scheduler.Decision{}, err
	}
	for _, j := range s.Jobs() {
		will := f.shadow.of(j.Job.ID, ahead)
		if will.slots == nil {
			f.t.Fatalf("at %v job %s is never done", s.Now, j.Job.ID)
		}
		f.said[j.Job.ID] = will.end
	}
	if len(f.shadow.jobs) != len(s.Jobs()) {
		f.t.Fatalf("at %v it knows %d jobs, %d are there", s.Now, len(f.shadow.jobs), len(s.Jobs()))
	}
	return f.Policy.Decide(ctx, s)
}

// Where speeds are known jobs end in the shadow when they do under fifo-backfill,
// and what it says of those that wait comes true once nobody else comes.
func TestShadowIsFifoBackfill(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		c := schedulertest.DrawCase(rt)
		p, err := New(Spec{Name: "fifo-backfill"}, Deps{Oracle: c.World.Oracle(0, 0)})
		if err != nil {
			rt.Fatal(err)
		}
		f := &followed{p, newShadow(newBelief(Deps{Oracle: c.World.Oracle(0, 0)})), rt, map[spec.JobID]time.Duration{}}
		r, err := sim.Run(t.Context(), sim.Config{
			Cluster: c.Cluster, Jobs: c.Jobs, Policy: f, Truth: c.World.Truth(c.Cluster),
			Costs: sim.PerStart(func(spec.Job) time.Duration { return c.StartCost }),
		})
		if err != nil {
			rt.Fatal(err)
		}
		for _, j := range r.Jobs {
			if said := f.said[j.Job.ID]; j.Finished && (said-j.End).Abs() > time.Millisecond {
				rt.Errorf("job %s ends at %v, in the shadow at %v", j.Job.ID, j.End, said)
			}
		}
	})
}

// A job of which nothing is known ends in the shadow when it has left in truth;
// those behind it are not promised anything before.
func TestShadowOfUnknownJobs(t *testing.T) {
	c := schedulertest.Nodes(1, 1)
	job := func(id spec.JobID) *scheduler.JobState {
		return &scheduler.JobState{Job: &spec.Job{ID: id, Plan: schedulertest.OnePlan(1), Devices: 1}, Remaining: 10}
	}
	first, second, third := job("first"), job("second"), job("third")
	third.Job.Duration = 40 * time.Second
	h := newShadow(newBelief(Deps{}))
	at := func(now time.Duration, inside ...*scheduler.JobState) map[spec.JobID]*shadowJob {
		t.Helper()
		if err := h.follow(t.Context(), scheduler.NewSnapshot(now, c, inside)); err != nil {
			t.Fatal(err)
		}
		ahead, err := h.look(t.Context(), c)
		if err != nil {
			t.Fatal(err)
		}
		return ahead
	}
	if ahead := at(0, first, second, third); ahead["second"].end < endless || ahead["third"].end < endless {
		t.Errorf("behind one that never ends they do at %v and %v", ahead["second"].end, ahead["third"].end)
	}
	at(100*time.Second, second, third)
	if h.runs[0].job.ID != "second" {
		t.Fatalf("%s runs, want second", h.runs[0].job.ID)
	}
	at(150*time.Second, third)
	if r := h.of("third", nil); len(h.runs) != 1 || r.end != 190*time.Second {
		t.Errorf("the third ends at %v, want 190 s", r.end)
	}
}
