package live_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/scheduler/live"
	"github.com/pacer-ml/pacer/scheduler/live/livetest"
)

// watched is a cluster that may refuse records or starts, or show an old state, and counts records.
type watched struct {
	*livetest.Cluster
	refusesRecords, refusesStarts func(id spec.JobID) bool
	old                           *live.State         // shown in place of the present one, nil = none
	change                        func(s *live.State) // changes what is shown, nil = no change
	records                       int
}

func (w *watched) Observe(ctx context.Context) (*live.State, error) {
	if w.old != nil {
		return w.old, nil
	}
	s, err := w.Cluster.Observe(ctx)
	if w.change != nil {
		w.change(s)
	}
	return s, err
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

// TestMissingInOlder: a job that an older observation does not have yet, or has as it was, keeps its devices and takes no step,
// until it is missing for StaleAfter. One that a newer observation does not have has ended.
func TestMissingInOlder(t *testing.T) {
	one := func(string, live.Slots) float64 { return 1 }
	show := func(s *live.State, j live.Job) { s.Jobs = append(s.Jobs, j) }
	for name, c := range map[string]struct {
		change  func(s *live.State, submitted live.Job, seconds int) // of what is shown, without the job
		seconds int
		keeps   bool
	}{
		"older":                             {func(*live.State, live.Job, int) {}, 8, true},
		"for long":                          {func(*live.State, live.Job, int) {}, 12, false},
		"newer":                             {func(s *live.State, _ live.Job, _ int) { s.OlderThan = func(string) bool { return false } }, 2, false},
		"never back":                        {func(s *live.State, _ live.Job, _ int) { s.OlderThan = nil }, 2, false},
		"another of its name was cancelled": {func(s *live.State, _ live.Job, _ int) { s.Cancelled = []spec.JobID{"j1"} }, 8, true},
		"another of its name is there": {func(s *live.State, j live.Job, _ int) {
			j.UID, j.Version = "before", "0"
			show(s, j)
		}, 8, true},
		"then as submitted": {func(s *live.State, j live.Job, seconds int) {
			if seconds >= 3 {
				show(s, j)
			}
		}, 8, true},
		"nodes change": {func(s *live.State, _ live.Job, seconds int) {
			if seconds >= 3 {
				s.Nodes = append(slices.Clone(s.Nodes), live.Node{Name: "x2", Type: s.Nodes[0].Type})
			}
		}, 8, true},
		"partly done": {func(s *live.State, _ live.Job, _ int) {}, 8, true},
	} {
		t.Run(name, func(t *testing.T) {
			r, w := newWatched(t)
			r.node["j0"], r.node["j1"], r.node["j2"] = -1, 1, -1
			r.c.Submit(spec.Job{ID: "j2", Model: spec.Model{Name: "a"}, Devices: 1, Steps: 1e6}, 0, 1e6, one)
			before, err := w.Cluster.Observe(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			r.c.Submit(spec.Job{ID: "j1", Model: spec.Model{Name: "a"}, Devices: 1, Steps: 1e6}, 0, 1e6, one)
			submitted := r.c.Jobs()[1]
			r.run(2)
			if name == "partly done" {
				r.c.Edit("j1", func(j *live.Job) { j.PartlyDone, j.ReleaseAfter = true, 5*time.Second })
				r.run(1)
			}
			began := r.c.Now()
			w.change = func(s *live.State) {
				s.Jobs = slices.DeleteFunc(s.Jobs, func(j live.Job) bool { return j.Spec.ID == "j1" })
				s.OlderThan = before.OlderThan
				c.change(s, submitted, int(r.c.Now().Sub(began).Seconds()))
			}
			var wrong []string
			r.c.Violation = func(text string) { wrong = append(wrong, text) }
			r.run(1)
			r.node["j1"], r.node["j2"] = -1, 1 // the policy gives its devices to j2
			was := r.live.Stats()
			records := w.records
			r.run(c.seconds)
			if keeps := len(wrong) == 0; keeps != c.keeps {
				t.Errorf("violations %q, want none: %t", wrong, c.keeps)
			}
			if stats := r.live.Stats(); stats.Stops != was.Stops || c.keeps && w.records > records+1 {
				t.Errorf("%d stops and %d records while j1 is missing, want none but of j2", stats.Stops-was.Stops, w.records-records)
			}
		})
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
