package goodput

import (
	"errors"
	"testing"
	"testing/fstest"
	"time"

	"github.com/pacer-ml/pacer/perfmodel"
	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/scheduler"
	"github.com/pacer-ml/pacer/scheduler/sim"
)

// twoTypes is 8 nodes of 4 T4 and one of 2 A. On one A, a step of 10 samples takes 1 s.
func twoTypes(t *testing.T) (*Tables, spec.Cluster) {
	t.Helper()
	all := files("m")
	all["traces/m/placements-ext.csv"] = &fstest.MapFile{Data: []byte("placement,local_bsz,step_time,sync_time\n1,5,0.75,0\n1,10,1,0\n2,5,1,0.25\n2,10,1.25,0.25\n")}
	read, err := Read(all, devices)
	if err != nil {
		t.Fatal(err)
	}
	return read, spec.Cluster{Groups: []spec.NodeGroup{
		{Count: 8, Devices: 4, Accelerator: spec.Accelerator{Name: "T4"}},
		{Count: 1, Devices: 2, Accelerator: spec.Accelerator{Name: "A"}},
	}}
}

// running is elasticJob after done steps on a shape, where it begins to train at a time.
func running(shape string, done float64, ready time.Duration) *scheduler.JobState {
	s := spec.Shape{Devices: shape}
	g := &scheduler.Grant{Job: elasticJob.ID, Plan: spec.Plan{DP: s.Total()}.Normal(), Shape: s, Elastic: true}
	return &scheduler.JobState{Job: &elasticJob, Done: done, Ready: ready, Grant: g}
}

// TestAgents checks that a job begins with the smallest batch, may use twice the devices
// it has run on, and is estimated on other types by the ratio of single-device speeds:
// 10 samples in 1 s to 20 in 2.75 s.
func TestAgents(t *testing.T) {
	all, cl := twoTypes(t)
	agents := NewAgents(all, cl, AgentRules{})
	var seen []AgentState
	agents.Watch = func(_ time.Duration, _ spec.JobID, a AgentState) { seen = append(seen, a) }
	truth, oracle := agents.Truth(), agents.Oracle()
	estimate := func(group int, shape string) float64 {
		_, rate, err := oracle.Goodput(t.Context(), running("1", 0, 0), &cl.Groups[group], spec.Shape{Devices: shape})
		switch {
		case errors.Is(err, perfmodel.ErrNotCovered):
			return -1
		case err != nil:
			t.Fatal(err)
		}
		return rate
	}
	if estimate(0, "1") != 0 || estimate(1, "1") != 0 || estimate(0, "2") != -1 {
		t.Errorf("before it ran: %g and %g on one device, %g on two, want 0, 0 and none", estimate(0, "1"), estimate(1, "1"), estimate(0, "2"))
	}

	tune := func(now time.Duration, j *scheduler.JobState, group int) []sim.Stage {
		t.Helper()
		stages, err := truth.Tune(t.Context(), now, now+time.Minute, j, &cl.Groups[group])
		if err != nil {
			t.Fatal(err)
		}
		return stages
	}
	// A step of the initial batch takes 2.25 s and has 1.75/4 of the gain of one at 40.
	stages := tune(0, running("1", 0, time.Minute), 0)
	if len(stages) != 1 || !near(stages[0].Rate, 1.75/4/2.25) || estimate(0, "2") != -1 {
		t.Errorf("while it starts: %+v, and the estimate is %g steps/s on two devices", stages, estimate(0, "2"))
	}
	stages = tune(time.Minute, running("1", 0, time.Minute), 0)
	if len(stages) != 1 || !near(stages[0].Rate, 1.75/4/2.25) || seen[1] != (AgentState{Batch: 10, Accum: 1}) {
		t.Errorf("it goes on by %+v as %+v", stages, seen[1])
	}
	if estimate(0, "2") <= 0 || estimate(0, "4") != -1 {
		t.Errorf("the estimates are %g steps/s on two devices and %g on four, want some and none", estimate(0, "2"), estimate(0, "4"))
	}
	if got := estimate(1, "1") / estimate(0, "1"); !near(got, 10/(20/2.75)) {
		t.Errorf("on A the estimate is %g times as fast, want %g", got, 10/(20/2.75))
	}

	// The first epoch has 43.75 steps at 40, 1 of them is left.
	stages = tune(2*time.Minute, running("1", 42.75, 0), 0)
	if len(stages) != 2 || stages[0].Until != 43.75 || !near(seen[2].Progress, 42.75*4/1.75) || seen[2].Epoch != 0 {
		t.Errorf("through the end of an epoch it goes on by %+v as %+v", stages, seen[2])
	}
	if n := agents.jobs[elasticJob.ID].noise; n != (noise{sqr: 3, variance: 2}) && n != (noise{sqr: 1, variance: 6}) {
		t.Errorf("after the end of an epoch its noise is %+v, not one of the second", n)
	}

	// It has not run on two devices of A, so the batch is 5 samples each.
	tune(3*time.Minute, running("2", 50, 0), 1)
	if got := seen[3]; got.Batch != 10 || got.Epoch != 1 {
		t.Errorf("on two of A it goes on as %+v", got)
	}
	fixed := running("1", 0, 0)
	fixed.Grant.Elastic = false
	if stages := tune(4*time.Minute, fixed, 0); stages != nil || len(seen) != 4 {
		t.Errorf("a job with a fixed batch goes on by %+v", stages)
	}
}

// TestPool checks that pooled jobs of a model share their observations: another job may
// use as many devices, with the same gain. The limits of an application hold for its
// jobs.
func TestPool(t *testing.T) {
	for _, pooled := range []bool{false, true} {
		all, cl := twoTypes(t)
		agents := NewAgents(all, cl, AgentRules{})
		if pooled {
			agents.Pool()
		}
		other := elasticJob
		other.ID = "b"
		later := &scheduler.JobState{Job: &other}
		before, _, err := agents.Oracle().Goodput(t.Context(), later, &cl.Groups[0], spec.NewShape(1))
		if err != nil || before.GlobalBatch() != 5 {
			t.Fatalf("before any job ran: %s, %v", before, err)
		}
		if _, err := agents.Truth().Tune(t.Context(), 0, time.Minute, running("2", 0, 0), &cl.Groups[0]); err != nil {
			t.Fatal(err)
		}
		own, want, err := agents.Oracle().Goodput(t.Context(), running("4", 0, 0), &cl.Groups[0], spec.NewShape(4))
		if err != nil {
			t.Fatal(err)
		}
		plan, rate, err := agents.Oracle().Goodput(t.Context(), later, &cl.Groups[0], spec.NewShape(4))
		if pooled && (err != nil || rate != want || plan != own) || !pooled && !errors.Is(err, perfmodel.ErrNotCovered) {
			t.Errorf("pooled %v: on four devices %g with %s, %v, want %g with %s if pooled", pooled, rate, plan, err, want, own)
		}
		all.adjust.Limits = []Limit{{Model: "m", Devices: 2}}
		if _, _, err := agents.Oracle().Goodput(t.Context(), running("4", 0, 0), &cl.Groups[0], spec.NewShape(4)); !errors.Is(err, perfmodel.ErrNotCovered) {
			t.Errorf("on more devices than it may use: %v", err)
		}
	}
}

// TestMaxBatch checks that the oracle expects no batch above AgentRules.MaxBatch.
func TestMaxBatch(t *testing.T) {
	all, cl := twoTypes(t)
	own := func(j *spec.Job, _ int) int { return j.Batch() }
	for _, r := range []AgentRules{{}, {MaxBatch: own}} {
		agents := NewAgents(all, cl, r)
		small := elasticJob
		small.GlobalBatch = 10
		j := running("1", 0, 0)
		j.Job = &small
		if _, err := agents.Truth().Tune(t.Context(), 0, time.Minute, j, &cl.Groups[0]); err != nil {
			t.Fatal(err)
		}
		plan, _, err := agents.Oracle().Goodput(t.Context(), j, &cl.Groups[0], spec.NewShape(2))
		if err != nil {
			t.Fatal(err)
		}
		if got := plan.GlobalBatch() > 10; got == (r.MaxBatch != nil) {
			t.Errorf("limited %v: the estimate trains %d samples on two devices", r.MaxBatch != nil, plan.GlobalBatch())
		}
	}
}

// TestAdjustment divides speeds by model, and limits the micro-batch on one type only.
func TestAdjustment(t *testing.T) {
	all, _ := twoTypes(t)
	slow := all.With(Adjustment{Slowdowns: map[string]float64{"cifar10": 1.8, "": 1.2}})
	if all.slowdown("m") != 1 || slow.slowdown("m") != 1.2 || slow.slowdown("cifar10") != 1.8 {
		t.Errorf("slowdowns %g, %g and %g, want 1, 1.2 and 1.8", all.slowdown("m"), slow.slowdown("m"), slow.slowdown("cifar10"))
	}
	limited := all.With(Adjustment{Limits: []Limit{{Model: "deepspeech2", Accelerator: "RTX2080Ti", Local: 57}}})
	for accelerator, want := range map[string]int{"RTX2080Ti": 57, "T4": 80} {
		if got := limited.maxLocal("deepspeech2", &speeds{accelerator: accelerator, maxLocal: 80}); got != want {
			t.Errorf("deepspeech2 on %s: at most %d samples, want %d", accelerator, got, want)
		}
	}
}

// TestMaxLocal checks that a shape without measurements is limited by those on as many
// nodes and devices or more.
func TestMaxLocal(t *testing.T) {
	_, s, err := tables(t, "m").lookup("m", "T4")
	if err != nil {
		t.Fatal(err)
	}
	s.spread = append(s.spread, measurement{point: point{nodes: 5, replicas: 20, local: 7}})
	for shape, want := range map[string]int{"4+4": 20, "4+4+4+4+4": 20, "4+4+4+4+4+4+4+4+4": 20} {
		if got := s.maxLocalOn(spec.Shape{Devices: shape}); got != want {
			t.Errorf("%s: %d, want %d", shape, got, want)
		}
	}
	s.spread = s.spread[len(s.spread)-1:]
	if got := s.maxLocalOn(spec.NewShape(4, 4, 4, 4, 4)); got != 7 {
		t.Errorf("5 nodes: %d, want 7", got)
	}
	if s.maxLocalOfCount(8) != 20 || s.maxLocalOfCount(9) != 0 {
		t.Errorf("8 devices %d, 9 devices %d, want 20 and 0", s.maxLocalOfCount(8), s.maxLocalOfCount(9))
	}
}
