package live_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/scheduler"
	"github.com/pacer-ml/pacer/scheduler/live"
	"github.com/pacer-ml/pacer/scheduler/live/livetest"
)

// unanswered is a cluster with a first start that takes place, or does not, without an answer.
type unanswered struct {
	*livetest.Cluster
	made   bool
	starts int
	stale  bool // observations are from before the first start
	old    *live.State
}

func (u *unanswered) Observe(ctx context.Context) (*live.State, error) {
	s, err := u.Cluster.Observe(ctx)
	if u.stale && u.old != nil {
		s.Jobs = slices.Clone(u.old.Jobs)
	}
	return s, err
}

func (u *unanswered) Start(ctx context.Context, j *live.Job, r live.Record) error {
	if u.starts++; u.starts > 1 {
		return u.Cluster.Start(ctx, j, r)
	}
	u.old, _ = u.Cluster.Observe(ctx)
	if u.made {
		unknown := *j // the version is not known
		if err := u.Cluster.Start(ctx, &unknown, r); err != nil {
			return err
		}
	}
	return errors.New("no answer")
}

// TestUnansweredStart: a job that was started without an answer may hold its devices. While what is observed is older than the
// start, and the policy wants to give the devices to another job by now, that one does not start. If the start did not take
// place the other job starts at once.
func TestUnansweredStart(t *testing.T) {
	for _, made := range []bool{true, false} {
		c := livetest.New(livetest.Epoch, live.Node{Name: "x0", Type: spec.NodeGroup{Devices: 1, Accelerator: spec.Accelerator{Name: "x"}}})
		c.Violation = func(text string) { t.Errorf("made %v: %s", made, text) }
		for _, id := range []spec.JobID{"a", "b"} {
			c.Submit(spec.Job{ID: id, Model: spec.Model{Name: "a"}, Devices: 1, Steps: 1e6}, 0, 1e6, func(string, live.Slots) float64 { return 1 })
		}
		u := &unanswered{Cluster: c, made: made, stale: made}
		d := &director{node: map[spec.JobID]int{"a": 0, "b": -1}}
		controller, err := live.New(live.Options{Cluster: u, Epoch: livetest.Epoch, Now: c.Now, Writers: 1,
			Policy: func(spec.Cluster) (scheduler.Policy, error) { return d, nil }})
		if err != nil {
			t.Fatal(err)
		}
		tick := func() {
			c.Advance(c.Now().Add(time.Second))
			if _, err := controller.Tick(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		tick()
		d.node["a"], d.node["b"] = -1, 0
		tick()
		tick()
		if c.Starts != 1 {
			t.Errorf("made %v: %d starts while what is observed is old", made, c.Starts)
		}
		u.stale = false
		for range 4 {
			tick()
		}
		for _, j := range c.Jobs() {
			if want := map[spec.JobID]live.Phase{"a": live.Held, "b": live.Running}[j.Spec.ID]; j.Phase != want {
				t.Errorf("made %v: job %s is %s, want %s", made, j.Spec.ID, j.Phase, want)
			}
		}
	}
}
