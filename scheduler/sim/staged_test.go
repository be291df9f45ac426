package sim_test

import (
	"context"
	"math"
	"testing"
	"time"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/scheduler"
	"github.com/pacer-ml/pacer/scheduler/compat/pollux"
	"github.com/pacer-ml/pacer/scheduler/sim"
)

// ramp is a truth under which jobs make their first 10 steps at 1 step/s on each
// device and the others at 4. The two stages are epochs.
type ramp struct{ err bool }

func (ramp) Steps(_ context.Context, j *spec.Job) (float64, error) { return j.Steps, nil }

func (ramp) StepsPerSec(context.Context, *spec.Job, *scheduler.Grant, *spec.NodeGroup) (float64, error) {
	return math.NaN(), nil // never used
}

func (r ramp) Stages(_ context.Context, _ *spec.Job, g *scheduler.Grant, _ *spec.NodeGroup) ([]sim.Stage, error) {
	n := float64(g.Devices())
	if r.err {
		return []sim.Stage{{Until: 10, Rate: n}, {Rate: math.Inf(1)}}, nil
	}
	return []sim.Stage{{Until: 10, Rate: n}, {Rate: 4 * n}}, nil
}

func (ramp) EpochsLeft(_ *spec.Job, done float64) (float64, bool) {
	if done < 10 {
		return 2, true
	}
	return 1, true
}

// A job of 30 steps makes 6 on one device in 6 s, pays 5 s on two nodes and one
// device each, makes 4 in 2 s and the last 20 in 2.5 s.
func TestStaged(t *testing.T) {
	var left []float64
	script := script{{grants: map[spec.JobID]string{"a": "0:1"}}, {at: 6 * s, grants: map[spec.JobID]string{"a": "0:1+1:1"}, wake: 13500 * time.Millisecond}}
	p := policyFunc(func(snap *scheduler.Snapshot) scheduler.Decision {
		for _, j := range snap.Jobs() {
			left = append(left, j.Remaining)
		}
		d, err := script.Decide(t.Context(), snap)
		if err != nil {
			t.Fatal(err)
		}
		if snap.Now < 6*s {
			d.Wake = 6 * s
		}
		return d
	})
	for _, c := range []struct {
		rule func(*sim.Rules)
		want []float64 // told to be left at 0, 6 and 13.5 s
	}{
		{func(*sim.Rules) {}, []float64{30, 24, 16}},
		{pollux.EpochsLeft, []float64{2, 2, 1}},
	} {
		left = nil
		cfg := config(p, job("a", 0, 1, 30))
		cfg.Truth = ramp{}
		c.rule(&cfg.Rules)
		cfg.Costs = moveCost(5 * s)
		r := mustRun(t, cfg)
		if got := r.Jobs[0].End; got != 15500*time.Millisecond {
			t.Errorf("%v: ends at %v, want 15.5s", c.want, got)
		}
		for i, want := range c.want {
			if i >= len(left) || math.Abs(left[i]-want) > 1e-6 {
				t.Errorf("%v are left, want %v", left, c.want)
				break
			}
		}
	}
	cfg := config(p, job("a", 0, 1, 30))
	cfg.Truth = ramp{err: true}
	if _, err := sim.Run(t.Context(), cfg); err == nil {
		t.Error("a rate that is infinite was taken")
	}
}

// moveCost is the cost of every start except the first.
type moveCost time.Duration

func (c moveCost) Start(s sim.Start) time.Duration {
	if s.From == nil {
		return 0
	}
	return time.Duration(c)
}

func (moveCost) Checkpoint(*spec.Job, *scheduler.Grant) time.Duration { return 0 }
