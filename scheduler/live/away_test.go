package live_test

import (
	"context"
	"errors"
	"testing"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/scheduler"
	"github.com/pacer-ml/pacer/scheduler/live"
)

// losing is a policy that loses the source of predictions in its next decision, if loses is set.
type losing struct {
	scheduler.Policy
	loses bool
	fault error
}

func (l *losing) Decide(ctx context.Context, s *scheduler.Snapshot) (scheduler.Decision, error) {
	if l.loses {
		l.loses, l.fault = false, errors.New("no answer")
	}
	return l.Policy.Decide(ctx, s)
}

// TestPlannerAway: while the source of predictions is away, from the decision on in which it goes, jobs that run keep their
// targets and others start. When it is back the policy decides about all.
func TestPlannerAway(t *testing.T) {
	l := &losing{}
	r := newDirected(t, 3, func(o *live.Options) {
		policy := o.Policy
		o.Policy = func(c spec.Cluster) (scheduler.Policy, error) {
			p, err := policy(c)
			l.Policy = p
			return l, err
		}
		o.Planner = func() error { return l.fault }
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
	r.node["j0"], r.node["j3"], l.loses = 1, 1, true
	r.c.Submit(spec.Job{ID: "j3", Model: spec.Model{Name: "a"}, Devices: 1, Steps: 1e6}, 0, 1e6, func(string, live.Slots) float64 { return 1 })
	r.run(5)
	if slots("j0") != "x0=1" || slots("j3") != "x1=1" || r.count(live.StoppedJob) > 0 || r.count(live.Faulty) != 1 {
		t.Errorf("without a planner: j0 on %q, j3 on %q, events %+v", slots("j0"), slots("j3"), r.events)
	}
	l.fault = nil
	r.run(5)
	if slots("j0") != "x1=1" || slots("j3") != "x1=1" || r.count(live.StoppedJob) != 1 {
		t.Errorf("with a planner again: j0 on %q, j3 on %q, events %+v", slots("j0"), slots("j3"), r.events)
	}
}
