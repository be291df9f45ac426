package live_test

import (
	"testing"
	"time"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/scheduler"
	"github.com/pacer-ml/pacer/scheduler/live"
	"github.com/pacer-ml/pacer/scheduler/live/livetest"
	"github.com/pacer-ml/pacer/scheduler/schedulertest"
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

// TestPausedJobEnds: a job starts on the devices of a paused job once that one has ended, or leaves them.
func TestPausedJobEnds(t *testing.T) {
	for name, end := range map[string]func(c *livetest.Cluster){
		"ended":   func(c *livetest.Cluster) { c.Delete("first") },
		"stopped": func(c *livetest.Cluster) { c.Edit("first", func(j *live.Job) { j.Phase, j.Slots = live.Held, nil }) },
	} {
		t.Run(name, func(t *testing.T) {
			tr := livetest.NewTrace(0, 1)
			c := livetest.New(livetest.Epoch, tr.Nodes()[0])
			submit := func(id spec.JobID) {
				j := spec.Job{ID: id, Model: spec.Model{Name: "a"}, Plan: schedulertest.OnePlan(4), Devices: 4, Steps: 1e6}
				c.Submit(j, tr.Cost, j.Steps, tr.Rate(&j))
			}
			controller, err := live.New(live.Options{Cluster: c, Epoch: livetest.Epoch, Now: c.Now,
				Policy: func(spec.Cluster) (scheduler.Policy, error) { return tr.Policy(t, "fifo"), nil }})
			if err != nil {
				t.Fatal(err)
			}
			run := func() {
				for range 4 {
					c.Advance(c.Now().Add(time.Second))
					if _, err := controller.Tick(t.Context()); err != nil {
						t.Fatal(err)
					}
				}
			}
			submit("first")
			run()
			c.Edit("first", func(j *live.Job) { j.Paused = true })
			submit("second")
			run()
			end(c)
			run()
			jobs := c.Jobs()
			if j := jobs[len(jobs)-1]; j.Spec.ID != "second" || j.Phase != live.Running {
				t.Errorf("job %s is %s", j.Spec.ID, j.Phase)
			}
		})
	}
}
