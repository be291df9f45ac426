package synth

import (
	"math"
	"testing"
	"time"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/scheduler"
	"github.com/pacer-ml/pacer/scheduler/policy"
	"github.com/pacer-ml/pacer/scheduler/policy/order"
	"github.com/pacer-ml/pacer/scheduler/schedulertest"
	"github.com/pacer-ml/pacer/scheduler/sim"
)

// In a rollout a job runs at its predicted speed. Without a prediction its speed follows
// from its duration, and without a duration it takes an hour.
func TestRolloutSpeeds(t *testing.T) {
	w := &schedulertest.World{}
	w.Add("known", "x", schedulertest.OnePlan(2), spec.NewShape(2), 5)
	cluster := schedulertest.Nodes(1, 4)
	job := func(model string, d time.Duration) *scheduler.JobState {
		j := &spec.Job{ID: spec.JobID(model + d.String()), Model: spec.Model{Name: model}, Devices: 2, Plan: schedulertest.OnePlan(2), Duration: d}
		return &scheduler.JobState{Job: j, Done: 100, Remaining: 300}
	}
	for _, c := range []struct {
		oracle bool
		job    *scheduler.JobState
		want   float64 // steps/s
	}{
		{true, job("known", 0), 5},
		{true, job("known", 40*time.Second), 5},
		{false, job("known", 40*time.Second), 10},
		{true, job("unheard-of", 40*time.Second), 10},
		{true, job("unheard-of", 0), 400.0 / 3600},
		{false, job("unheard-of", 0), 400.0 / 3600},
	} {
		d := policy.Deps{Registry: policy.NewRegistry(order.FIFO, order.LAS, order.SRTF)}
		if c.oracle {
			d.Oracle = w.Oracle(0, 1)
		}
		p, err := newSynth(d)
		if err != nil {
			t.Fatal(err)
		}
		s := scheduler.NewSnapshot(0, cluster, []*scheduler.JobState{c.job})
		b := estimatedTruth{newRollout(p.(*synth), s, s.Jobs()), sim.Predicted{Predictor: d.Oracle, Cluster: cluster}}
		g := &scheduler.Grant{Job: c.job.Job.ID, Plan: schedulertest.OnePlan(2), Shape: spec.NewShape(2), Slots: []scheduler.Slot{{Node: 0, Devices: 2}}}
		got, err := b.StepsPerSec(t.Context(), c.job.Job, g, &cluster.Groups[0])
		if err != nil || math.Abs(got-c.want) > 1e-9 {
			t.Errorf("oracle %v, %s of %v: %g steps/s, error %v, want %g", c.oracle, c.job.Job.Model.Name, c.job.Job.Duration, got, err, c.want)
		}
	}
}

// A job that has not ended at the horizon is assumed to end after the time it takes
// alone, and never if there is none.
func TestEndingsBeyondTheHorizon(t *testing.T) {
	j := spec.Job{ID: "a", Submit: 10 * time.Second, Devices: 2}
	f := &rollout{now: 100 * time.Second, states: map[spec.JobID]*scheduler.JobState{"a": {Job: &j, Done: 50, Remaining: 150, Attained: 40}}}
	r := sim.JobRecord{Job: j, Start: 20 * time.Second, Attained: 60, Alone: 80 * time.Second}
	// 60 s of 80 are left, 10 of them (20 device-s on 2) were run since.
	if got, want := f.outcomeOf(&r, 130*time.Second), (outcome{jct: 170, delay: 10, after: 80}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	if got := f.outcomeOf(&r, 0); !math.IsInf(got.jct, 1) {
		t.Errorf("without a horizon %+v, want never", got)
	}
	waiting := sim.JobRecord{Job: j, Alone: 80 * time.Second}
	f.states["a"].Attained = 0
	if got := f.outcomeOf(&waiting, 130*time.Second); got.delay != 120 {
		t.Errorf("a job that has not begun is delayed by %g s, want 120", got.delay)
	}
}

func TestObjectives(t *testing.T) {
	all := []outcome{{jct: 10, delay: 1, after: 4}, {jct: 30, delay: 5, after: 9}, {jct: 20, delay: 0, after: 2}}
	for name, want := range map[string]float64{"avg-jct": 20, "avg-delay": 2, "p99-jct": 30, "makespan": 9} {
		if got := objectives[name](all); got != want {
			t.Errorf("%s of %v is %g, want %g", name, all, got, want)
		}
	}
}
