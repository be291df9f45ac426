package campaign

import (
	"testing"
	"time"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/profiler"
)

// TestEstimateWithinBudget: each limit of a budget bounds the points, less what the run has spent of it.
func TestEstimateWithinBudget(t *testing.T) {
	var steps []profiler.Step
	for range 10 { // 36 s on 2 devices: 0.02 device-hours
		p := profiler.Point{Config: spec.Config{Plan: spec.Plan{DP: 2}.Normal()}}
		steps = append(steps, profiler.Step{Point: p, Seconds: 36})
	}
	state := profiler.State{Done: 1, DeviceSec: 72, WallSec: 36}
	for _, tc := range []struct {
		budget profiler.Budget
		want   int
	}{
		{profiler.Budget{}, 10},
		{profiler.Budget{Points: 4}, 3},
		{profiler.Budget{DeviceHours: 0.11}, 4},
		{profiler.Budget{Wall: 3 * time.Minute}, 4},
		{profiler.Budget{Points: 9, DeviceHours: 0.05, Wall: 3 * time.Minute}, 1},
		{profiler.Budget{DeviceHours: 0.01}, 0},
	} {
		c := Estimate(profiler.Campaign{Budget: tc.budget}, state, steps)
		if c.Points != tc.want || c.Open != 10 || c.HoldSec != 36*float64(tc.want) || c.OpenHoldSec != 360 {
			t.Errorf("%+v: %+v, want %d points", tc.budget, c, tc.want)
		}
	}
	if c := Estimate(profiler.Campaign{Budget: profiler.Budget{DeviceHours: 1}}, state, nil); c != (Cost{}) {
		t.Errorf("without steps: %+v", c)
	}
}
