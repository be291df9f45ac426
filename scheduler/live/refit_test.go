package live_test

import (
	"context"
	"math"
	"testing"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/scheduler"
	"github.com/pacer-ml/pacer/scheduler/live"
	"github.com/pacer-ml/pacer/scheduler/sim"
)

// constant is a truth in which every job has one speed.
type constant struct{ rate float64 }

func (c constant) Steps(_ context.Context, j *spec.Job) (float64, error) { return j.Steps, nil }

func (c constant) StepsPerSec(context.Context, *spec.Job, *scheduler.Grant, *spec.NodeGroup) (float64, error) {
	return c.rate, nil
}

// TestRefitted: when the estimates change, policy and estimates are made anew once, and jobs run on. The pace of a job is
// known once it has reported steps for five minutes, and is that over the speed predicted last.
func TestRefitted(t *testing.T) {
	var last live.Report
	policies, truths, refitted, rate := 0, 0, false, 2.0
	r := newDirected(t, 1, func(o *live.Options) {
		policy := o.Policy
		o.Policy = func(c spec.Cluster) (scheduler.Policy, error) { policies++; return policy(c) }
		o.Estimate = func(spec.Cluster) sim.Truth { truths++; return constant{rate} }
		o.Refitted = func() bool { was := refitted; refitted = false; return was }
		o.OnTick = func(r live.Report) { last = r }
	})
	r.run(250)
	if len(last.Pace) > 0 {
		t.Errorf("pace %v after 250 s", last.Pace)
	}
	r.run(100)
	if got := last.Pace["j0"]; math.Abs(got-0.5) > 1e-3 {
		t.Errorf("pace %v, want 0.5", last.Pace)
	}
	made := last.Made
	refitted, rate = true, 1
	r.run(10)
	if policies != 2 || truths != 2 || r.count(live.Refitted) != 1 || last.Refits != 1 || last.Made == made {
		t.Errorf("%d policies, %d estimates, events %+v, %+v", policies, truths, r.events, last.Stats)
	}
	if got := last.Pace["j0"]; math.Abs(got-1) > 1e-3 || last.Stops+last.Lost > 0 {
		t.Errorf("pace %v, want 1; %d stops", last.Pace, last.Stops)
	}
	r.node["j0"] = 1
	r.run(200)
	if len(last.Pace) > 0 || last.Stops != 1 {
		t.Errorf("pace %v 200 s after a restart; %d stops", last.Pace, last.Stops)
	}
}
