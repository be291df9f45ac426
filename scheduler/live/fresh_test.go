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

// watched is a cluster that may refuse records or starts, or show an old state, and counts records.
type watched struct {
	*livetest.Cluster
	refusesRecords, refusesStarts func(id spec.JobID) bool
	refusesStops                  bool
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

func (w *watched) Stop(ctx context.Context, j *live.Job) error {
	if w.refusesStops {
		return errors.New("no answer")
	}
	return w.Cluster.Stop(ctx, j)
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
	for name, c := range map[string]struct {
		before  func(r *directed, w *watched)           // while job j1 runs, before it is missing
		shown   func(s *live.State, submitted live.Job) // changes the observations, which do not have it
		seconds int                                     // that it is missing
		ends    bool
	}{
		"older":                             {seconds: 8},
		"for long":                          {seconds: 12, ends: true},
		"newer":                             {shown: func(s *live.State, _ live.Job) { s.OlderThan = func(string) bool { return false } }, seconds: 2, ends: true},
		"never back":                        {shown: func(s *live.State, _ live.Job) { s.OlderThan = nil }, seconds: 2, ends: true},
		"another of its name was cancelled": {shown: func(s *live.State, _ live.Job) { s.Cancelled = []spec.JobID{"j1"} }, seconds: 8},
		"another of its name is there": {shown: func(s *live.State, submitted live.Job) {
			submitted.UID, submitted.Version = "before", "0"
			s.Jobs = append(s.Jobs, submitted)
		}, seconds: 8},
		"with more nodes": {shown: func(s *live.State, _ live.Job) {
			s.Nodes = append(slices.Clone(s.Nodes), live.Node{Name: "x2", Type: s.Nodes[0].Type})
		}, seconds: 8},
		"partly done": {before: func(r *directed, _ *watched) {
			r.c.Edit("j1", func(j *live.Job) { j.PartlyDone, j.ReleaseAfter = true, 5*time.Second })
			r.run(1)
		}, seconds: 8},
		"to be stopped": {before: func(r *directed, w *watched) {
			w.refusesStops, r.node["j1"] = true, -1
			r.run(1)
			w.refusesStops = false
		}, seconds: 8},
	} {
		t.Run(name, func(t *testing.T) {
			r, w := newWatched(t)
			r.node["j0"], r.node["j1"], r.node["j2"] = -1, 1, -1
			r.c.Submit(spec.Job{ID: "j2", Model: spec.Model{Name: "a"}, Devices: 1, Steps: 1e6}, 0, 1e6, one)
			old, err := w.Cluster.Observe(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			r.c.Submit(spec.Job{ID: "j1", Model: spec.Model{Name: "a"}, Devices: 1, Steps: 1e6}, 0, 1e6, one)
			submitted := r.c.Jobs()[1]
			r.run(2)
			if c.before != nil {
				c.before(r, w)
			}
			granted := r.node["j1"] >= 0
			w.change = func(s *live.State) {
				s.Jobs = slices.DeleteFunc(s.Jobs, func(j live.Job) bool { return j.Spec.ID == "j1" })
				s.OlderThan = old.OlderThan
				if c.shown != nil {
					c.shown(s, submitted)
				}
			}
			sees := false
			r.saw = func(s *scheduler.Snapshot) {
				if i := slices.IndexFunc(s.Jobs(), func(j *scheduler.JobState) bool { return j.Job.ID == "j1" && j.Grant != nil }); i >= 0 {
					sees = s.Jobs()[i].Attained == r.c.Now().Sub(r.c.Jobs()[1].Started).Seconds() // it has one device
				}
			}
			var wrong []string
			r.c.Violation = func(text string) { wrong = append(wrong, text) }
			stops := r.live.Stats().Stops
			r.run(1)
			if !c.ends && granted && !sees {
				t.Error("the policy does not see j1 with its grant and its device-seconds until now")
			}
			r.saw, r.node["j1"], r.node["j2"] = nil, -1, 1 // the policy gives its devices to j2
			records := w.records
			r.run(c.seconds)
			if ends := len(wrong) > 0; ends != c.ends {
				t.Errorf("j2 starts on the devices of j1: %t, want %t: %q", ends, c.ends, wrong)
			}
			if n := r.live.Stats().Stops - stops; n > 0 || !c.ends && w.records > records+1 {
				t.Errorf("%d stops and %d records while j1 is missing, want one record, of j2", n, w.records-records)
			}
			if c.ends {
				return
			}
			w.change = func(s *live.State) { // the job as it was when it was submitted
				i := slices.IndexFunc(s.Jobs, func(j live.Job) bool { return j.Spec.ID == "j1" })
				s.Jobs[i], s.OlderThan = submitted, old.OlderThan
			}
			if r.run(3); len(wrong) > 0 {
				t.Errorf("shown as it was submitted: %q", wrong)
			}
			w.change = nil
			r.run(3)
			if jobs := r.c.Jobs(); len(wrong) > 0 || jobs[1].Phase != live.Held || jobs[2].Phase != live.Running {
				t.Errorf("j1 is %v and j2 %v, want held and running: %q", jobs[1].Phase, jobs[2].Phase, wrong)
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
