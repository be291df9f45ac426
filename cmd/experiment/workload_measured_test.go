package experiment

import (
	"context"
	"math"
	"reflect"
	"strings"
	"testing"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/profiler/store"
)

// Plans of one, two and four devices.
var (
	oneOf  = spec.Plan{DP: 1, MicroBatch: 8}.Normal()
	dpTwo  = spec.Plan{DP: 2, MicroBatch: 4}.Normal()
	tpTwo  = spec.Plan{DP: 1, TP: 2, MicroBatch: 8}.Normal()
	dpFour = spec.Plan{DP: 4, MicroBatch: 2}.Normal()
)

// measuredTable has m0 on one and two devices, on two with two plans and one of them on two shapes, m1 on four devices,
// and m2 on another type.
func measuredTable() []spec.Measurement {
	other := measuredOn("m2", oneOf, spec.NewShape(1), 1)
	other.Config.Accelerator.Name = "other"
	return []spec.Measurement{
		measuredOn("m0", oneOf, spec.NewShape(1), 2), measuredOn("m0", dpTwo, spec.NewShape(1, 1), 5), measuredOn("m0", dpTwo, spec.NewShape(2), 3),
		measuredOn("m0", tpTwo, spec.NewShape(2), 4), measuredOn("m1", dpFour, spec.NewShape(4), 1), other,
	}
}

// fromTable draws synthetic jobs with the models of rows, on nodes of so many devices.
func fromTable(t *testing.T, rows []spec.Measurement, models string, nodes, devices int, seed uint64) ([]spec.Job, error) {
	t.Helper()
	o := Options{Workload: "synthetic:jobs=60,sizes=1x0.4+2x0.4+4x0.2,models=" + models, Seed: seed}
	o.Given.Cluster = spec.Cluster{Groups: []spec.NodeGroup{{Count: nodes, Devices: devices, Accelerator: measuredOn("", oneOf, spec.NewShape(1), 1).Config.Accelerator}}}
	o.Data.Rows = func(_ context.Context, f store.Filter) ([]spec.Measurement, error) {
		if !reflect.DeepEqual(f, store.Filter{Sources: []string{"rubick"}}) {
			t.Errorf("rows of %+v", f)
		}
		return rows, nil
	}
	w, _, err := o.loadWorkload(t.Context(), o.Workload)
	return w.Jobs, err
}

// TestMeasuredModels: jobs submit plans of their size that were measured on devices of the cluster, every such plan;
// their run time is that on the fastest shape.
func TestMeasuredModels(t *testing.T) {
	jobs, err := fromTable(t, measuredTable(), "measured", 2, 4, 1)
	if err != nil || len(jobs) != 60 {
		t.Fatal(len(jobs), err)
	}
	type submission struct {
		model string
		plan  spec.Plan
	}
	sec, seen := map[submission]float64{{"m0", oneOf}: 2, {"m0", dpTwo}: 3, {"m0", tpTwo}: 4, {"m1", dpFour}: 1}, map[submission]int{}
	for _, j := range jobs {
		s := submission{j.Model.Name, j.Plan}
		if seen[s]++; sec[s] == 0 || j.Devices != j.Plan.Devices() {
			t.Errorf("%s, plan %s on %d devices: not measured", s.model, s.plan, j.Devices)
		} else if run := j.Duration.Seconds(); math.Abs(j.Steps*sec[s]-run) > 1e-6 {
			t.Errorf("%s, plan %s: %g steps of %g s in %g s", s.model, s.plan, j.Steps, sec[s], run)
		}
	}
	if len(seen) != len(sec) {
		t.Errorf("%d of %d plans are submitted: %v", len(seen), len(sec), seen)
	}
	if again, _ := fromTable(t, measuredTable(), "measured", 2, 4, 1); !reflect.DeepEqual(again, jobs) {
		t.Error("two sets of jobs with one seed")
	}
	if other, _ := fromTable(t, measuredTable(), "measured", 2, 4, 2); reflect.DeepEqual(other, jobs) {
		t.Error("seeds 1 and 2 have the same jobs")
	}
	jobs, err = fromTable(t, measuredTable(), "measured:m1", 2, 4, 1)
	if err != nil || len(jobs) == 0 {
		t.Fatal(len(jobs), err)
	}
	for _, j := range jobs {
		if j.Model.Name != "m1" || j.Devices != 4 {
			t.Errorf("%s on %d devices, want m1 on 4, the only size measured", j.Model.Name, j.Devices)
		}
	}
}

func TestMeasuredModelsMistakes(t *testing.T) {
	for _, c := range []struct {
		rows           []spec.Measurement
		models         string
		nodes, devices int
		why            string
	}{
		{measuredTable(), "measured:m0+m3", 2, 4, `"m3" has no measurement on`},
		{measuredTable(), "measured:m2", 2, 4, `"m2" has no measurement on`},
		{measuredTable(), "measured:m1", 4, 2, `"m1" has no measurement on`},
		{measuredTable()[1:2], "measured", 1, 4, "no measurement of the rubick table is on 1 x 4 x"},
		{nil, "measured", 1, 4, "run pacer import rubick DIR first"},
	} {
		if jobs, err := fromTable(t, c.rows, c.models, c.nodes, c.devices, 1); err == nil || !strings.Contains(err.Error(), c.why) {
			t.Errorf("%s on %d x %d: %d jobs, %v; want %s", c.models, c.nodes, c.devices, len(jobs), err, c.why)
		}
	}
}
