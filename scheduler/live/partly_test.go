package live_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/scheduler/live"
)

// TestPartlyDone: a minute after the first processes of a job have ended an event says so, once. The job is stopped when its
// limit is over, also if the policy does not decide about it, and starts again. Without a limit it runs on.
func TestPartlyDone(t *testing.T) {
	var last live.Report
	r := newDirected(t, 3, func(o *live.Options) { o.OnTick = func(r live.Report) { last = r } })
	tick := func(later time.Duration) {
		t.Helper()
		r.c.Advance(r.c.Now().Add(later))
		if _, err := r.live.Tick(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	said := func(kind live.EventKind) (out []string) {
		for _, e := range r.events {
			if e.Kind == kind {
				out = append(out, e.Object+": "+e.Message)
			}
		}
		slices.Sort(out)
		return out
	}
	tick(0)
	tick(time.Second)
	starts := r.c.Starts
	for id, limit := range map[spec.JobID]time.Duration{"j0": 0, "j1": 10 * time.Minute, "j2": 10 * time.Minute} {
		r.c.Edit(id, func(j *live.Job) { j.PartlyDone, j.ReleaseAfter, j.Paused = true, limit, id == "j2" })
	}
	tick(time.Second)
	tick(59 * time.Second)
	if n := len(said(live.PartlyDone)); n != 0 || last.PartlyDone != 0 {
		t.Errorf("after 59 s %d events, %d jobs", n, last.PartlyDone)
	}
	for range 2 {
		tick(time.Second)
	}
	got := said(live.PartlyDone)
	if len(got) != 3 || last.PartlyDone != 3 || !strings.Contains(got[0], "goes on without a limit") || !strings.Contains(got[1], "is stopped 10m0s after that") {
		t.Errorf("after a minute %q, %d jobs", got, last.PartlyDone)
	}
	if n := len(said(live.StoppedJob)); n != 0 {
		t.Errorf("%d stops before the limit", n)
	}
	tick(9 * time.Minute)
	got = said(live.StoppedJob)
	if len(got) != 2 || !strings.HasPrefix(got[0], "job j1: partly done for 10m") || !strings.HasPrefix(got[1], "job j2: ") {
		t.Errorf("stops %q", got)
	}
	r.c.Edit("j2", func(j *live.Job) { j.Paused = false })
	for range 3 {
		tick(time.Second)
	}
	for _, j := range r.c.Jobs() {
		if want := map[bool]int{true: 1}[j.Spec.ID != "j0"]; j.Phase != live.Running || j.Record.Failures != want || j.Record.Restarts != 0 {
			t.Errorf("job %s is %s after %d failures and %d restarts", j.Spec.ID, j.Phase, j.Record.Failures, j.Record.Restarts)
		}
	}
	if again := r.c.Starts - starts; again != 2 || last.PartlyDone != 1 {
		t.Errorf("%d starts, %d jobs partly done, want 2 and 1", again, last.PartlyDone)
	}
}

// TestReleased: a minute after a job was released and did not start an event says so, once, with the reason of the cluster.
func TestReleased(t *testing.T) {
	r := newDirected(t, 1, nil)
	r.c.Slow = true
	said := 0
	for second := 0; second < 90; second++ {
		r.c.Advance(r.c.Now().Add(time.Second))
		r.c.Edit("j0", func(j *live.Job) {
			if j.Phase == live.Running {
				j.Phase, j.Reason = live.Released, "QOSMaxGRESPerUser"
			}
		})
		if _, err := r.live.Tick(t.Context()); err != nil {
			t.Fatal(err)
		}
		n := 0
		for _, e := range r.events {
			if e.Kind == live.Faulty && e.Object == "job j0" && strings.HasSuffix(e.Message, "does not start it: QOSMaxGRESPerUser") {
				n++
			}
		}
		if said = n; said > 0 && second < 60 {
			t.Fatalf("an event after %d s", second)
		}
	}
	if said != 1 {
		t.Errorf("%d events, want 1: %v", said, r.events)
	}
}

// TestLeftAloneBeforeMove: a job is left alone before it could be moved, and the devices that it was to get go to another. Once
// it is not left alone any more nothing else loses its target.
func TestLeftAloneBeforeMove(t *testing.T) {
	r := newDirected(t, 2, nil)
	j := spec.Job{ID: "j2", Model: spec.Model{Name: "a"}, Devices: 1, Steps: 1e6}
	r.c.Submit(j, 0, 1e6, func(string, live.Slots) float64 { return 1 })
	r.node["j1"], r.node["j2"] = -1, -1
	r.run(2)
	refused := true
	r.c.Before = func(int) error {
		if refused {
			return fmt.Errorf("%w", live.ErrConflict)
		}
		return nil
	}
	r.node["j0"], r.node["j1"] = 1, 1 // one decision
	r.run(1)
	refused = false
	r.c.Edit("j0", func(j *live.Job) { j.Paused = true })
	r.node["j0"], r.node["j2"] = 0, 1
	r.run(2)
	r.c.Edit("j0", func(j *live.Job) { j.Paused = false })
	r.run(2)
	for _, j := range r.c.Jobs() {
		if want := map[spec.JobID]string{"j0": "x0=1", "j1": "x1=1", "j2": "x1=1"}[j.Spec.ID]; j.Phase != live.Running || j.Slots.String() != want {
			t.Errorf("job %s is %s on %s, want %s", j.Spec.ID, j.Phase, j.Slots, want)
		}
	}
	r.quiet()
}

// quiet fails the test after a warning or a stop.
func (r *directed) quiet() {
	r.t.Helper()
	for _, e := range r.events {
		if e.Warning || e.Kind == live.StoppedJob {
			r.t.Errorf("%s %s: %s", e.Kind, e.Object, e.Message)
		}
	}
}

// TestWaitsForOneLeftAlone: a job waits for devices of another, which is left alone before it could be moved. It gets others,
// and no warning says that it is faulty.
func TestWaitsForOneLeftAlone(t *testing.T) {
	r := newDirected(t, 1, nil)
	r.c.Submit(spec.Job{ID: "j1", Model: spec.Model{Name: "a"}, Devices: 1, Steps: 1e6}, 0, 1e6, func(string, live.Slots) float64 { return 1 })
	r.node["j1"] = -1
	r.run(2)
	r.c.Before = func(int) error { return fmt.Errorf("%w", live.ErrConflict) }
	r.node["j0"], r.node["j1"] = 1, 0
	r.run(1)
	r.c.Before = nil
	r.c.Edit("j0", func(j *live.Job) { j.Paused = true })
	r.node["j0"], r.node["j1"] = 0, 1
	r.run(2)
	for _, j := range r.c.Jobs() {
		if want := map[spec.JobID]string{"j0": "x0=1", "j1": "x1=1"}[j.Spec.ID]; j.Phase != live.Running || j.Slots.String() != want {
			t.Errorf("job %s is %s on %s, want %s", j.Spec.ID, j.Phase, j.Slots, want)
		}
	}
	r.quiet()
}
