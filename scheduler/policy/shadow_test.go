package policy

import (
	"context"
	"math"
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
		due := f.shadow.due(j.Job.ID, ahead)
		if math.IsInf(due, 1) {
			f.t.Fatalf("at %v job %s is never done", s.Now, j.Job.ID)
		}
		f.said[j.Job.ID] = s.Now + time.Duration(due*float64(time.Second))
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
		f := &followed{p, newShadow(newBelief(Deps{Oracle: c.World.Oracle(0, 0)}), newExperience()), rt, map[spec.JobID]time.Duration{}}
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

// A way that was seen is as fast as it was seen to be, and others of the kind are
// off by half of what that one was: one more of which nothing is off counts.
func TestExperience(t *testing.T) {
	e := newExperience()
	j := &scheduler.JobState{Job: &spec.Job{ID: "a", Model: spec.Model{Name: "m"}}, Grant: &scheduler.Grant{}, Ready: 5 * time.Second}
	way, other := &option{devices: 2, shape: spec.NewShape(2), rate: 1}, &option{devices: 4, shape: spec.NewShape(4), rate: 3}
	for _, c := range []struct {
		sec        time.Duration
		done       float64
		way, other float64 // steps/s believed then
	}{
		{0, 0, 1, 3},
		{14, 36, 1, 3}, // 9 s are too few
		{25, 80, 4, 6},
		{45, 240, 6, 6}, // the shift is what was seen first
	} {
		j.Done = c.done
		e.see(c.sec*time.Second, j, way)
		if got := e.rate(j.Job, way); math.Abs(got-c.way) > 1e-9 {
			t.Errorf("after %d s %g steps/s, want %g", c.sec, got, c.way)
		}
		if got := e.rate(j.Job, other); math.Abs(got-c.other) > 1e-9 {
			t.Errorf("after %d s another way %g steps/s, want %g", c.sec, got, c.other)
		}
	}
	if got := e.rate(&spec.Job{ID: "b", Model: spec.Model{Name: "n"}}, way); got != 1 {
		t.Errorf("of another model %g steps/s, want 1", got)
	}
}
