package sim_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/pacer-ml/pacer/perfmodel"
	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/scheduler"
	"github.com/pacer-ml/pacer/scheduler/sim"
)

// table predicts 16 samples/s on A, 32 on B, and counts like nearest look-ups.
type table struct{}

func (table) Predict(_ context.Context, c spec.Config) (spec.Prediction, error) {
	switch c.Accelerator.Name {
	case "A":
		return spec.Prediction{Throughput: 16}, nil
	case "B":
		return spec.Prediction{Throughput: 32}, nil
	}
	return spec.Prediction{}, perfmodel.ErrNotCovered
}

func (table) Lookups() (int, int, int) { return 3, 2, 1 }

func group(name string) spec.NodeGroup {
	return spec.NodeGroup{Count: 1, Devices: 4, Accelerator: spec.Accelerator{Name: name}}
}

func TestPredicted(t *testing.T) {
	truth := sim.Predicted{Predictor: table{}, Cluster: spec.Cluster{Groups: []spec.NodeGroup{group("?"), group("A"), group("B")}}}
	plan := spec.Plan{DP: 4, MicroBatch: 2}.Normal() // 8 samples per step
	j := &spec.Job{ID: "j", Model: spec.Model{Name: "m"}, Plan: plan, Devices: 4, Steps: 50}
	g := &scheduler.Grant{Job: "j", Plan: plan, Shape: spec.NewShape(4), Slots: []scheduler.Slot{{Node: 0, Devices: 4}}}
	a, unknown := group("A"), group("?")
	if rate, err := truth.StepsPerSec(t.Context(), j, g, &a); err != nil || rate != 2 {
		t.Errorf("16 samples/s are %g steps/s (%v), want 2", rate, err)
	}
	if _, err := truth.StepsPerSec(t.Context(), j, g, &unknown); !errors.Is(err, perfmodel.ErrNotCovered) {
		t.Errorf("unknown accelerator: %v", err)
	}
	other := *g
	other.Plan.MicroBatch = 4
	if _, err := truth.StepsPerSec(t.Context(), j, &other, &a); err == nil || !strings.Contains(err.Error(), "trains 16 samples per step, the job 8") {
		t.Errorf("another batch: %v", err)
	}
	uneven := *g
	uneven.Plan = spec.Plan{DP: 3, MicroBatch: 3}.Normal()
	if rate, err := truth.StepsPerSec(t.Context(), j, &uneven, &a); err != nil || rate != 2 {
		t.Errorf("9 samples where 3 replicas cannot share 8: %g steps/s (%v), want 2", rate, err)
	}
	if n, err := truth.Steps(t.Context(), j); n != 50 || err != nil {
		t.Errorf("%g steps (%v), want the job's own 50", n, err)
	}
	j.Steps, j.Duration = 0, 10*time.Second
	if n, err := truth.Steps(t.Context(), j); n != 20 || err != nil {
		t.Errorf("10 s at 2 steps/s are %g steps (%v), want 20, from the first group that can be predicted", n, err)
	}
	j.Accelerator = "B"
	if n, err := truth.Steps(t.Context(), j); n != 40 || err != nil {
		t.Errorf("on B %g steps (%v), want 40", n, err)
	}
	for _, acc := range []string{"?", "C"} {
		j.Accelerator = acc
		if _, err := truth.Steps(t.Context(), j); err == nil {
			t.Errorf("duration on %s is no error", acc)
		}
	}
	if e, i, m := truth.Lookups(); e != 3 || i != 2 || m != 1 {
		t.Errorf("lookups %d %d %d, want 3 2 1", e, i, m)
	}
}

// byLink predicts a throughput equal to the bytes/s of the network between nodes.
type byLink struct{}

func (byLink) Predict(_ context.Context, c spec.Config) (spec.Prediction, error) {
	return spec.Prediction{Throughput: c.Link.InterBps}, nil
}

// A job that crosses racks uses the network between racks, in the group that has one.
func TestRacks(t *testing.T) {
	fast := spec.Link{InterBps: 100}
	truth := sim.Predicted{Predictor: byLink{}, Cluster: spec.Cluster{Groups: []spec.NodeGroup{
		{Count: 4, Devices: 1, Link: fast}, {Count: 5, Devices: 1, Link: fast, Racks: spec.Racks{Nodes: 2, Bps: 10}},
	}}}
	j := &spec.Job{ID: "j", GlobalBatch: 1}
	for slots, want := range map[string]float64{"0:1+3:1": 100, "4:1": 100, "4:1+5:1": 100, "5:1+6:1": 10, "4:1+8:1": 10, "6:1+7:1": 100} {
		g := grant("j", slots)
		g.Plan = spec.Plan{TP: g.Devices()}.Normal()
		group := &truth.Cluster.Groups[0]
		if g.Slots[0].Node >= 4 {
			group = &truth.Cluster.Groups[1]
		}
		if got, err := truth.StepsPerSec(t.Context(), j, g, group); got != want || err != nil {
			t.Errorf("on %s: %g (%v), want %g", slots, got, err, want)
		}
	}
}

func TestDurations(t *testing.T) {
	g := &scheduler.Grant{Slots: []scheduler.Slot{{Node: 0, Devices: 2}, {Node: 1, Devices: 2}}}
	for _, c := range []struct {
		job         spec.Job
		steps, rate float64
		err         string
	}{
		{spec.Job{Devices: 4, Duration: 50 * time.Second}, 50, 1, ""},
		{spec.Job{Devices: 4, Duration: 50 * time.Second, Steps: 200}, 200, 4, ""},
		{spec.Job{Devices: 2, Duration: 50 * time.Second}, 50, 0, "4 devices granted, the recorded duration is for 2"},
		{spec.Job{Devices: 4, Steps: 200}, 200, 0, "no duration"},
	} {
		steps, err1 := sim.Durations{}.Steps(t.Context(), &c.job)
		rate, err2 := sim.Durations{}.StepsPerSec(t.Context(), &c.job, g, nil)
		if err1 != nil || steps != c.steps || c.err == "" && (err2 != nil || rate != c.rate) || c.err != "" && (err2 == nil || !strings.Contains(err2.Error(), c.err)) {
			t.Errorf("%+v: %g steps (%v), %g steps/s (%v)", c.job, steps, err1, rate, err2)
		}
	}
}
