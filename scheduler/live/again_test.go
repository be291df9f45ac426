package live_test

import (
	"testing"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/scheduler/live"
)

// TestSameID: a job that is deleted and submitted anew under its name between two observations is another job: it has no
// target of the first one, no attained service and no progress, and starts.
func TestSameID(t *testing.T) {
	r := newDirected(t, 1, nil)
	r.run(30)
	if j := r.c.Jobs()[0]; j.Phase != live.Running || j.Record.FirstRun.IsZero() {
		t.Fatalf("%+v", j)
	}
	r.c.Delete("j0")
	anew := r.c.Now()
	r.c.Submit(spec.Job{ID: "j0", Model: spec.Model{Name: "a"}, Devices: 1, Steps: 1e6}, 0, 1e6, func(string, live.Slots) float64 { return 1 })
	r.node["j0"] = 1
	r.run(5)
	j := r.c.Jobs()[0]
	if j.Phase != live.Running || j.Slots.String() != "x1=1" || j.Record.FirstRun.Before(anew) || j.Record.Attained > 1 || j.Record.Failures+j.Record.Restarts > 0 || j.Done > 5 {
		t.Errorf("%+v", j)
	}
	if r.count(live.Lost)+r.count(live.Faulty)+r.count(live.WriteFailed) > 0 {
		t.Errorf("events %+v", r.events)
	}
}
