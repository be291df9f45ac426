package goodput

import (
	"errors"
	"math"
	"testing"

	"github.com/pacer-ml/pacer/perfmodel"
	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/scheduler"
	"github.com/pacer-ml/pacer/scheduler/sim"
)

// elasticJob trains two epochs at a batch of 40.
var elasticJob = spec.Job{ID: "a", Model: spec.Model{Name: "m"}, GlobalBatch: 40, Devices: 4, Epochs: 2}

// TestTune: on one device the best batch is 2 x 20 samples in the first epoch,
// (4/1.75)/(2.75+2.25), and the initial one in the second, 1/2.25 > (5/3.5)/5.
//
// On 4+4 devices it is the smallest, 8*5, in the first, (4/1.75)/3.75, and 80 in the
// second, (5/1.5)/4 > (5/3.5)/3.75.
func TestTune(t *testing.T) {
	all := tables(t, "m")
	for _, c := range []struct {
		shape string
		plans [2]spec.Plan
		want  [2]float64 // in steps at the initial batch per second
	}{
		{"1", [2]spec.Plan{{DP: 1, MicroBatch: 20, AccumSteps: 2}, {DP: 1, MicroBatch: 10}}, [2]float64{4 / 1.75 / 5, 1 / 2.25}},
		{"4+4", [2]spec.Plan{{DP: 8, MicroBatch: 5}, {DP: 8, MicroBatch: 10}}, [2]float64{4 / 1.75 / 3.75, 5 / 1.5 / 4}},
	} {
		got, err := all.tune(tuningKey{"m", "T4", c.shape})
		if err != nil {
			t.Fatal(err)
		}
		for e := range c.want {
			if !near(got.goodput[e], c.want[e]) || got.plans[e] != c.plans[e].Normal() || !got.exact {
				t.Errorf("epoch %d on %s: %g with %s, want %g with %s", e, c.shape, got.goodput[e], got.plans[e], c.want[e], c.plans[e])
			}
		}
	}
	// 32 devices with 5 samples each need a batch of 160, which was not trained.
	if _, err := all.tune(tuningKey{"m", "T4", "4+4+4+4+4+4+4+4"}); !errors.Is(err, perfmodel.ErrNotCovered) {
		t.Errorf("on too many devices: %v", err)
	}
}

// TestSplit checks the rules of Plan with the measured micro-batches of a placement and
// limits.
func TestSplit(t *testing.T) {
	all := tables(t, "m", "ncf", "yolov3")
	all.adjust.Limits = []Limit{{Model: "ncf", Devices: 1}, {Model: "yolov3", Local: 8}}
	a, s, err := all.lookup("m", "T4")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		app, shape   string
		batch        float64
		micro, accum int // 0 = cannot be
	}{
		{"m", "1", 10, 10, 1},
		{"m", "1", 11, 6, 2},
		{"m", "2", 80, 20, 2},
		{"m", "4", 80, 20, 1},
		{"m", "3", 80, 13, 2}, // six times 14 is above the largest batch
		{"m", "4", 16, 0, 0},
		{"ncf", "1", 10, 10, 1},
		{"ncf", "2", 40, 0, 0},
		{"yolov3", "4", 80, 6, 3},
	} {
		got, ok := all.split(&app{name: c.app, runs: a.runs}, s, c.batch, spec.Shape{Devices: c.shape})
		if ok != (c.micro > 0) || ok && (got.MicroBatch != c.micro || got.AccumSteps != c.accum) {
			t.Errorf("%s, %g samples on %s: %s, %v, want %d x %d", c.app, c.batch, c.shape, got, ok, c.accum, c.micro)
		}
	}
}

// TestElasticTruth checks that a job that chooses its batch has the rate of the best one
// in each epoch, whatever plan it was granted, and that the oracle agrees.
func TestElasticTruth(t *testing.T) {
	all := tables(t, "m")
	truth, oracle := NewTruth(all, cluster), NewOracle(all)
	j := &scheduler.JobState{Job: &elasticJob}
	g := &scheduler.Grant{Job: "a", Plan: spec.Plan{DP: 8, MicroBatch: 5, AccumSteps: 1}, Shape: spec.Shape{Devices: "4+4"}, Elastic: true}
	stages, err := truth.Stages(t.Context(), j.Job, g, &cluster.Groups[0])
	if err != nil {
		t.Fatal(err)
	}
	// At its own batch of 40 the epochs have 100/(4/1.75) and 100/(5/3.5) steps.
	want := []sim.Stage{{Until: 43.75, Rate: 1 / 3.75}, {Until: math.Inf(1), Rate: 5 / 1.5 / 4 / (5 / 3.5)}}
	for e := range want {
		if !near(stages[e].Rate, want[e].Rate) || stages[e].Until != want[e].Until && !near(stages[e].Until, want[e].Until) {
			t.Errorf("epoch %d: %+v, want %+v", e, stages[e], want[e])
		}
	}
	for done, e := range map[float64]int{0: 0, 43: 0, 43.75: 1, 60: 1, 1e9: 1} {
		j.Done = done
		plan, rate, err := oracle.Goodput(t.Context(), j, &cluster.Groups[0], g.Shape)
		if err != nil || rate != stages[e].Rate || plan.MicroBatch != []int{5, 10}[e] {
			t.Errorf("after %g steps %g with %s, %v, want %g", done, rate, plan, err, stages[e].Rate)
		}
	}
	fixed := *g
	fixed.Elastic = false
	stages, err = truth.Stages(t.Context(), j.Job, &fixed, &cluster.Groups[0])
	if err != nil || !near(stages[1].Rate*3.75, 1) {
		t.Errorf("at its own batch %+v, %v, want 1 step in 3.75 s throughout", stages, err)
	}
}
