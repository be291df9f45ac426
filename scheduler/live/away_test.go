package live_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/scheduler"
	"github.com/pacer-ml/pacer/scheduler/live"
)

// TestPlannerFlaps: a source of predictions that goes away in every decision, and is back at once, is tried again in a second.
func TestPlannerFlaps(t *testing.T) {
	away := false
	r := newDirected(t, 1, func(o *live.Options) {
		policy := o.Policy
		o.Policy = func(c spec.Cluster) (scheduler.Policy, error) {
			p, err := policy(c)
			return deciding{p, func() { away = true }}, err
		}
		o.Planner = func() (err error) {
			if away {
				away, err = false, errors.New("no answer")
			}
			return err
		}
	})
	next, err := r.live.Tick(t.Context())
	if wait := next.Sub(r.c.Now()); err != nil || wait > time.Second {
		t.Errorf("the next tick is in %v, %v", wait, err)
	}
}

// deciding is a policy that calls a function before it decides.
type deciding struct {
	scheduler.Policy
	call func()
}

func (d deciding) Decide(ctx context.Context, s *scheduler.Snapshot) (scheduler.Decision, error) {
	d.call()
	return d.Policy.Decide(ctx, s)
}

// TestPlannerAway: while the source of predictions is away, from the decision on in which it goes, jobs that run keep their
// targets and others start. When it is back the policy, made anew, decides about all.
func TestPlannerAway(t *testing.T) {
	policies, loses, fault := 0, false, error(nil)
	r := newDirected(t, 3, func(o *live.Options) {
		policy := o.Policy
		o.Policy = func(c spec.Cluster) (scheduler.Policy, error) {
			policies++
			p, err := policy(c)
			return deciding{p, func() {
				if loses {
					loses, fault = false, errors.New("no answer")
				}
			}}, err
		}
		o.Planner = func() error { return fault }
	})
	r.run(5)
	slots := func(id spec.JobID) string {
		for _, j := range r.c.Jobs() {
			if j.Spec.ID == id && j.Phase == live.Running {
				return j.Slots.String()
			}
		}
		return ""
	}
	r.node["j0"], r.node["j3"], loses = 1, 1, true
	r.c.Submit(spec.Job{ID: "j3", Model: spec.Model{Name: "a"}, Devices: 1, Steps: 1e6}, 0, 1e6, func(string, live.Slots) float64 { return 1 })
	r.run(5)
	if slots("j0") != "x0=1" || slots("j3") != "x1=1" || r.count(live.StoppedJob) > 0 || r.count(live.Faulty) != 1 {
		t.Errorf("without a planner: j0 on %q, j3 on %q, events %+v", slots("j0"), slots("j3"), r.events)
	}
	fault = nil
	r.run(5)
	if slots("j0") != "x1=1" || slots("j3") != "x1=1" || r.count(live.StoppedJob) != 1 || policies != 2 {
		t.Errorf("with a planner again: %d policies, j0 on %q, j3 on %q, events %+v", policies, slots("j0"), slots("j3"), r.events)
	}
}
