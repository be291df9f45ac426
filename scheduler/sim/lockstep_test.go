package sim_test

import (
	"testing"
	"time"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/scheduler"
	"github.com/pacer-ml/pacer/scheduler/compat/gavel"
	"github.com/pacer-ml/pacer/scheduler/sim"
)

// startOnce grants the given devices to the waiting jobs, in order.
func startOnce(slots ...string) policyFunc {
	return func(snap *scheduler.Snapshot) scheduler.Decision {
		d := scheduler.Decision{Grants: keep(snap)}
		for i, j := range snap.Waiting {
			d.Grants = append(d.Grants, grant(j.Job.ID, slots[i]))
		}
		return d
	}
}

// A job that makes less than a step in a round makes a part of one, since it would
// never end otherwise.
func TestBarrierWithSlowSteps(t *testing.T) {
	c := config(startOnce("0:1"), spec.Job{ID: "a", Devices: 1, Duration: 250 * s, Steps: 2})
	c.Truth, c.Costs, c.Round = sim.Durations{}, nil, 100*s
	gavel.Barrier(&c.Rules)
	gavel.WholeSteps(&c.Rules)
	if a := mustRun(t, c).Jobs[0]; a.End != 250*s {
		t.Errorf("ends at %v, want 250s; unfinished %q", a.End, a.Unfinished)
	}
}

// A job with a start cost longer than a round makes no step in it, whatever the start costs
// of other jobs.
func TestBarrierWithLongStarts(t *testing.T) {
	c := config(startOnce("0:1", "1:1"), job("a", 0, 1, 100), job("b", 0, 1, 100))
	c.Costs = sim.PerStart(func(j spec.Job) time.Duration {
		if j.ID == "a" {
			return 50 * s
		}
		return 100 * s
	})
	c.Round, c.Lockstep = 40*s, &sim.Lockstep{}
	// The first round ends a nanosecond after b has started.
	if a := mustRun(t, c).Jobs[0]; a.End < 200*s {
		t.Errorf("a ends at %v, as if it had not waited for b", a.End)
	}
}
