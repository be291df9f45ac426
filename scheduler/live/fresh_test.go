package live_test

import (
	"context"
	"errors"
	"testing"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/scheduler/live"
	"github.com/pacer-ml/pacer/scheduler/live/livetest"
)

// watched is a cluster that may refuse records or starts, or show an old state, and counts records.
type watched struct {
	*livetest.Cluster
	refusesRecords, refusesStarts func(id spec.JobID) bool
	old                           *live.State // shown in place of the present one, nil = none
	records                       int
}

func (w *watched) Observe(ctx context.Context) (*live.State, error) {
	if w.old != nil {
		return w.old, nil
	}
	return w.Cluster.Observe(ctx)
}

func (w *watched) Record(ctx context.Context, j *live.Job, r live.Record) error {
	w.records++
	if w.refusesRecords(j.Spec.ID) {
		return errors.New("no answer")
	}
	return w.Cluster.Record(ctx, j, r)
}

func (w *watched) Start(ctx context.Context, j *live.Job, r live.Record) error {
	if w.refusesStarts(j.Spec.ID) {
		return errors.New("no answer")
	}
	return w.Cluster.Start(ctx, j, r)
}

func newWatched(t *testing.T) (*directed, *watched) {
	never := func(spec.JobID) bool { return false }
	w := &watched{refusesRecords: never, refusesStarts: never}
	r := newDirected(t, 1, func(o *live.Options) {
		w.Cluster = o.Cluster.(*livetest.Cluster)
		o.Cluster = w
	})
	return r, w
}

// TestFreshNotRecorded: if the first record of a job is refused it has not been started, so that its devices are free for another.
func TestFreshNotRecorded(t *testing.T) {
	r, w := newWatched(t)
	w.refusesRecords = func(id spec.JobID) bool { return id == "j0" }
	r.run(3)
	r.node["j0"] = -1
	r.c.Submit(spec.Job{ID: "j1", Model: spec.Model{Name: "a"}, Devices: 1, Steps: 1e6}, 0, 1e6, func(string, live.Slots) float64 { return 1 })
	r.run(3)
	for _, j := range r.c.Jobs() {
		if want := map[spec.JobID]live.Phase{"j0": live.Held, "j1": live.Running}[j.Spec.ID]; j.Phase != want {
			t.Errorf("%s is %v, want %v", j.Spec.ID, j.Phase, want)
		}
	}
}

// TestFreshRecorded: where the start after a first record is refused, the record is known to be made, although the next state
// does not have it yet.
func TestFreshRecorded(t *testing.T) {
	r, w := newWatched(t)
	refuses := true
	w.refusesStarts = func(spec.JobID) bool { return refuses }
	before, err := w.Cluster.Observe(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	r.run(1)
	was := w.records
	w.old = before
	r.run(2)
	if was != 1 || w.records != was {
		t.Errorf("%d records, then %d with an old state; want 1", was, w.records)
	}
	w.old, refuses = nil, false
	r.run(3)
	if j := r.c.Jobs()[0]; j.Phase != live.Running {
		t.Errorf("%+v", j)
	}
}

// TestRequeuedIsHeldAtOnce: a job that waits to start by itself, without a record, is recorded and held in one step.
func TestRequeuedIsHeldAtOnce(t *testing.T) {
	r, _ := newWatched(t)
	r.c.Edit("j0", func(j *live.Job) { j.Phase = live.Requeued })
	_, err := r.live.Tick(t.Context())
	if stats := r.live.Stats(); err != nil || stats.Stops != 1 {
		t.Errorf("%+v, %v", stats, err)
	}
}
