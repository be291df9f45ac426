package experiment

import (
	"strings"
	"testing"
	"time"

	"github.com/pacer-ml/pacer/perfmodel/measured"
	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// measuredOn is a row: step seconds of a plan on a shape of accelerator A.
func measuredOn(model string, plan spec.Plan, shape spec.Shape, sec float64) spec.Measurement {
	return spec.Measurement{Outcome: spec.OK, StepSec: []float64{sec}, Config: spec.Config{
		Model: spec.Model{Name: model}, Plan: plan.Normal(), Shape: shape, Accelerator: spec.Accelerator{Name: "A"},
	}}
}

// Of the ways its devices were measured a job of an unknown model takes one on the
// fewest nodes, then with its own batch, then the fastest.
func TestRunAsMeasured(t *testing.T) {
	var w Source
	w.setTable(measured.New([]spec.Measurement{
		measuredOn("m", spec.Plan{DP: 2, MicroBatch: 4}, spec.NewShape(2), 1),
		measuredOn("m", spec.Plan{DP: 2, MicroBatch: 8}, spec.NewShape(2), 1.5),
		measuredOn("m", spec.Plan{TP: 2, MicroBatch: 8}, spec.NewShape(2), 1.2),
		measuredOn("m", spec.Plan{DP: 2, MicroBatch: 50}, spec.NewShape(1, 1), 1),
		measuredOn("other", spec.Plan{DP: 1, MicroBatch: 8}, spec.NewShape(1), 1),
	}))
	cl := spec.Cluster{Groups: []spec.NodeGroup{{Count: 2, Devices: 2, Accelerator: spec.Accelerator{Name: "A"}}}}
	for _, c := range []struct {
		job   spec.Job
		plan  string
		steps float64
	}{
		{spec.Job{Devices: 2, GlobalBatch: 16, Steps: 5}, "dp=2,tp=1,pp=1,mb=8,ga=1", 5},
		{spec.Job{Devices: 2, GlobalBatch: 3, Steps: 5, Duration: time.Hour}, "dp=2,tp=1,pp=1,mb=8,ga=1", 0},
		{spec.Job{Devices: 2, GlobalBatch: 8, Steps: 5}, "dp=2,tp=1,pp=1,mb=4,ga=1", 5}, // 8 samples/s against 6.7
	} {
		j := c.job
		err := w.runAs(t.Context(), &j, "m", cl)
		if err != nil || j.Plan.String() != c.plan || j.Steps != c.steps || j.Model.Name != "m" || j.Batch() != j.Plan.GlobalBatch() {
			t.Errorf("%+v becomes %+v, error %v, want plan %s", c.job, j, err, c.plan)
		}
	}
	for _, j := range []spec.Job{{Devices: 1}, {Devices: 2, Accelerator: "B"}} {
		if err := w.runAs(t.Context(), &j, "m", cl); err == nil || !strings.Contains(err.Error(), "m was not measured on") {
			t.Errorf("%+v: error %v", j, err)
		}
	}
}
