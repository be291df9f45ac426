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
