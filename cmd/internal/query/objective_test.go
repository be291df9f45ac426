package query

import (
	"errors"
	"math"
	"testing"

	"github.com/pacer-ml/pacer/planner"
)

// What makes no question is a *FieldError that names the field and what to do;
// what is left is one the planner takes.
func TestGoalSet(t *testing.T) {
	nan := math.NaN()
	for _, c := range []struct {
		goal  Goal
		field string // at fault, "" = none
		says  string
	}{
		{Goal{}, "", ""},
		{Goal{MinDevices: 8, PricePerHour: 2.5}, "", ""},
		{Goal{Objective: "cost"}, "", ""},
		{Goal{Objective: "min-devices", Target: 5}, "", ""},
		{Goal{Objective: "min-devices", Target: 5, TargetSamplesPerS: 5}, "", ""},
		{Goal{Objective: "goodput", BatchRange: BatchRange{NoiseScale: 500, InitialBatch: 8, Risk: 0.5}}, "", ""},
		{Goal{Objective: "speed"}, "objective", `objective "speed" is not one of [throughput cost min-devices goodput]`},
		{Goal{Objective: "min-devices"}, "objective", `objective "min-devices" needs target, how many samples/s to reach`},
		{Goal{Objective: "goodput"}, "objective", `objective "goodput" needs noise_scale, the gradient noise scale in samples`},
		{Goal{Target: 5}, "target", "target 5 goes with objective min-devices, and this one is throughput: change it, or leave target out"},
		{Goal{Objective: "cost", TargetSamplesPerS: 5}, "target_samples_per_s", "target_samples_per_s 5 goes with objective min-devices, and this one is cost: change it, or leave target_samples_per_s out"},
		{Goal{BatchRange: BatchRange{NoiseScale: 5}}, "noise_scale", "noise_scale 5 goes with objective goodput, and this one is throughput: change it, or leave noise_scale out"},
		{Goal{BatchRange: BatchRange{InitialBatch: 5}}, "initial_batch", "initial_batch 5 goes with objective goodput, and this one is throughput: change it, or leave initial_batch out"},
		{Goal{Objective: "min-devices", Target: -5}, "target", "target -5 is not above 0 and at most 1e+15"},
		{Goal{Objective: "min-devices", Target: nan}, "target", "target NaN is not above 0 and at most 1e+15"},
		{Goal{PricePerHour: math.Inf(1)}, "price_per_hour", "price_per_hour +Inf is not above 0 and at most 1e+15"},
		{Goal{Objective: "min-devices", Target: 5, TargetSamplesPerS: 6}, "target", "target 5 and target_samples_per_s 6 are the same thing: give one of them"},
		{Goal{BatchRange: BatchRange{Risk: 0.6}}, "risk", "risk 0.6 is not in (0, 0.5]"},
		{Goal{BatchRange: BatchRange{Risk: nan}}, "risk", "risk NaN is not in (0, 0.5]"},
		{Goal{MinDevices: 9}, "min_devices", "min_devices 9 is not in 1..8"},
		{Goal{MinDevices: -1}, "min_devices", "min_devices -1 is not in 1..8"},
		{Goal{Objective: "goodput", BatchRange: BatchRange{NoiseScale: 5, InitialBatch: -1}}, "initial_batch", "initial_batch -1 is not in 1..16777216"},
		{Goal{BatchRange: BatchRange{MaxBatch: 8}}, "global_batch", "global_batch 64, but min_batch or max_batch leave it free"},
	} {
		r := planner.Request{Devices: 8, GlobalBatch: 64}
		err := c.goal.Set(&r)
		if c.field == "" {
			if err != nil || r.Validate() != nil {
				t.Errorf("%+v: %v, %v", c.goal, err, r.Validate())
			}
			continue
		}
		var bad *FieldError
		if !errors.As(err, &bad) || bad.Field != c.field || err.Error() != c.says {
			t.Errorf("%+v: %v, want %s of field %s", c.goal, err, c.says, c.field)
		}
	}
	for _, free := range []BatchRange{{MinBatch: 8}, {MaxBatch: 8}, {MinBatch: 9, MaxBatch: 8}, {MinBatch: -1, MaxBatch: 8}, {MinBatch: 1, MaxBatch: MaxBatch + 1}} {
		r := planner.Request{Devices: 8}
		var bad *FieldError
		if err := (&Goal{BatchRange: free}).Set(&r); !errors.As(err, &bad) || bad.Field != "max_batch" {
			t.Errorf("%+v: %v", free, err)
		}
	}
}

// The command line calls fields by its flags.
func TestFieldErrorNamed(t *testing.T) {
	err := (&Goal{Target: 5}).Set(&planner.Request{})
	var bad *FieldError
	if !errors.As(err, &bad) {
		t.Fatal(err)
	}
	if got, want := bad.Named(func(f string) string { return "<" + f + ">" }), "<target> 5 goes with <objective> min-devices, and this one is throughput: change it, or leave <target> out"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}
