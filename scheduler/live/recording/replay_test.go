package recording_test

import (
	"context"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/scheduler"
	"github.com/pacer-ml/pacer/scheduler/live"
	"github.com/pacer-ml/pacer/scheduler/live/livetest"
	"github.com/pacer-ml/pacer/scheduler/live/recording"
	"github.com/pacer-ml/pacer/scheduler/sim"
)

// wrong is a truth that is wrong by another factor for each size of jobs.
type wrong struct{ sim.Truth }

func (w wrong) StepsPerSec(ctx context.Context, j *spec.Job, g *scheduler.Grant, group *spec.NodeGroup) (float64, error) {
	rate, err := w.Truth.StepsPerSec(ctx, j, g, group)
	return rate * float64(1+j.Devices) / 3, err
}

// TestCalibrate: jobs take as long as they did, however wrong the truth is.
func TestCalibrate(t *testing.T) {
	tr := livetest.NewTrace(60, 3)
	r := read(t, recorded(t, tr, "fifo", nil))
	jobs := r.Requests()
	base := wrong{tr.World.Truth(r.Cluster)}
	truth, err := r.Calibrate(t.Context(), base, jobs)
	if err != nil {
		t.Fatal(err)
	}
	if diff := differing(t, r.Result(jobs), simulate(t, tr, r, "fifo", truth, jobs)); len(diff) > 0 {
		t.Errorf("%d jobs differ:\n%s", len(diff), strings.Join(diff, "\n"))
	}
	if len(differing(t, r.Result(jobs), simulate(t, tr, r, "fifo", base, jobs))) == 0 {
		t.Error("equal with the wrong truth")
	}
}

// TestMovedBetweenObservations: a run ends when the next one began, not when that was seen.
func TestMovedBetweenObservations(t *testing.T) {
	path := filepath.Join(t.TempDir(), "record.jsonl")
	w := newWriter(t, path, recording.Session{})
	at, kind := livetest.Epoch, spec.NodeGroup{Devices: 2, Accelerator: spec.Accelerator{Name: "x"}}
	s := live.State{Nodes: []live.Node{{Name: "n1", Type: kind}, {Name: "n2", Type: kind}},
		Jobs: []live.Job{{Spec: spec.Job{ID: "j", Model: spec.Model{Name: "a"}, Devices: 2, Steps: 9}, Submitted: at, Phase: live.Running}}}
	w.Observe(at, &live.State{Nodes: s.Nodes})
	for i, on := range []string{"n1", "n2"} {
		j, slots := &s.Jobs[0], live.Slots{on: 2}
		began := at.Add(time.Duration(10+25*i) * time.Second)
		j.Record = live.Record{Generation: int64(i + 1), Plan: "dp=2", Slots: slots, RunGeneration: int64(i + 1), RunPlan: "dp=2", RunSlots: slots}
		j.Slots, j.Started = slots, began
		w.Observe(began.Add(5*time.Second), &s)
	}
	if err := w.Close(at.Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	runs := read(t, path).Jobs[0].Runs
	if len(runs) != 2 || runs[0].Start != 10*time.Second || runs[0].End != 35*time.Second || runs[1].Start != 35*time.Second {
		t.Errorf("runs %+v", runs)
	}
}
