package kubernetes_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/scheduler/live"
	"github.com/pacer-ml/pacer/scheduler/live/kubernetes"
	"github.com/pacer-ml/pacer/scheduler/live/kubernetes/kubetest"
)

// TestCancelled: a job that is deleted before it ends is cancelled, one that is deleted after it ended is not. A job that has
// its name is another one.
func TestCancelled(t *testing.T) {
	c := fresh(t, 1)
	engine, err := kubernetes.New(c.Client, options())
	if err != nil {
		t.Fatal(err)
	}
	if err := engine.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	c.Submit(t, job("kept", "a", 1, 10))
	c.Submit(t, job("dropped", "a", 1, 10))
	short := job("short", "a", 1, 10, "true")
	*short.Spec.Suspend = false
	c.Submit(t, short)
	uids, cancelled := map[spec.JobID]string{}, []spec.JobID{}
	observe := func(holds func(s *live.State) bool) {
		t.Helper()
		kubetest.Wait(t, "observation", func() error {
			s, err := engine.Observe(t.Context())
			if err != nil {
				return err
			}
			for _, j := range s.Jobs {
				uids[j.Spec.ID] = j.UID
			}
			for _, id := range s.Cancelled { // it may be known for more than one observation
				if !slices.Contains(cancelled, id) {
					cancelled = append(cancelled, id)
				}
			}
			if !holds(s) {
				return fmt.Errorf("%+v", s)
			}
			return nil
		})
	}
	has := func(s *live.State, id spec.JobID) bool {
		return slices.ContainsFunc(s.Jobs, func(j live.Job) bool { return j.Spec.ID == id && j.Phase != live.Ended })
	}
	observe(func(s *live.State) bool { return has(s, "default/kept") && has(s, "default/dropped") })
	kubetest.Wait(t, "short", func() error {
		if !ended(t, jobs(t, c)["short"]) {
			return errors.New("has not ended")
		}
		return nil
	})
	deleteJob(t, c, "short")
	deleteJob(t, c, "dropped")
	observe(func(s *live.State) bool { return !has(s, "default/short") && !has(s, "default/dropped") })
	if !slices.Equal(cancelled, []spec.JobID{"default/dropped"}) {
		t.Errorf("cancelled %v, want the dropped job alone", cancelled)
	}
	before := uids["default/dropped"]
	c.Submit(t, job("dropped", "a", 1, 10))
	observe(func(s *live.State) bool { return has(s, "default/dropped") })
	if now := uids["default/dropped"]; now == before || now == "" {
		t.Errorf("UID %q of the second job, %q of the first", now, before)
	}
}
