package profiler

import (
	"math"
	"strconv"
	"testing"
	"time"

	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// TestExpectedCost: measured points took 10 s to launch, 6 steps of warm-up and 20 timed steps. A point with
// longer steps costs the same launch and 26 of its own steps, unless time is limited.
func TestExpectedCost(t *testing.T) {
	row := func(step float64) spec.Measurement {
		m := spec.Measurement{Outcome: spec.OK, Env: map[string]string{EnvWarmUp: "6"}}
		for range 20 {
			m.StepSec = append(m.StepSec, step)
		}
		m.Env[EnvWall] = strconv.FormatFloat(10+26*step, 'g', -1, 64)
		return m
	}
	alone := row(0.1)
	alone.Config.AloneStage, alone.Env[EnvWall] = 1, strconv.FormatFloat(1+26*0.1, 'g', -1, 64)
	r := run{rows: []spec.Measurement{row(0.1), row(0.2), row(0.4), alone}}
	h := r.costModel()
	if math.Abs(h.overhead-10) > 1e-9 || math.Abs(h.alone-1) > 1e-9 || h.warmUp != 6 || h.steps != 20 {
		t.Fatalf("%+v; want 10 s, 1 s for one rank alone, 6 and 20 steps", h)
	}
	r.points = []Point{{}, {Config: alone.Config}}
	if got := r.seconds(&keyState{steps: map[int]float64{1: 0.5}}, 1, h); math.Abs(got-(1+26*0.5)) > 1e-9 {
		t.Errorf("one rank alone: %g s, want 14", got)
	}
	for _, tc := range []struct{ step, want float64 }{
		{0.5, 10 + 26*0.5},
		{1.5, 10 + 26*1.5},
		{3, 10 + 3*(6+10)},  // 30 s of timed steps, 15 s of warm-up after its first
		{10, 10 + 10*(3+5)}, // at least 5 steps
		{100, 300},          // the timeout
	} {
		k := &keyState{steps: map[int]float64{0: tc.step}}
		if got := r.seconds(k, 0, h); math.Abs(got-tc.want) > 1e-9 {
			t.Errorf("steps of %g s: %g s, want %g", tc.step, got, tc.want)
		}
	}
	r.c.Point.MaxTime = time.Second
	if got, want := r.seconds(&keyState{steps: map[int]float64{0: 0.5}}, 0, h), 10+0.5*(2+5); math.Abs(got-want) > 1e-9 {
		t.Errorf("with 1 s for steps: %g s, want %g", got, want)
	}
}
