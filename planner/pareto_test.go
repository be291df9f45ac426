package planner_test

import (
	"slices"
	"testing"

	"github.com/pacer-ml/pacer/planner"
)

// The front equals a comparison of every pair.
func TestParetoEqualsPairwise(t *testing.T) {
	r := request(16, 64)
	r.MinDevices = 1
	pl := planner.New(analyticModel(t), planner.Options{})
	front, err := pl.Pareto(ctx, r)
	if err != nil {
		t.Fatal(err)
	}
	var all []planner.Choice
	for n := 1; n <= 16; n++ {
		at := r
		at.Devices, at.MinDevices = n, 0
		rk, err := pl.Rank(ctx, at)
		if err != nil {
			continue // no legal plan on so many
		}
		all = append(all, slices.DeleteFunc(rk.Choices, func(c planner.Choice) bool { return !c.Fits })...)
	}
	if front.Fitting != len(all) {
		t.Errorf("%d fit, want %d", front.Fitting, len(all))
	}
	type place struct {
		devices           int
		throughput, bytes float64
	}
	placeOf := func(c *planner.Choice) place {
		return place{c.Config.Plan.Devices(), c.Prediction.Throughput, c.Prediction.MemoryBytes}
	}
	beats := func(a, b place) bool {
		return a != b && a.devices <= b.devices && a.throughput >= b.throughput && a.bytes <= b.bytes
	}
	want := map[place]bool{}
	for i := range all {
		p := placeOf(&all[i])
		if !slices.ContainsFunc(all, func(c planner.Choice) bool { return beats(placeOf(&c), p) }) {
			want[p] = true
		}
	}
	got := map[place]bool{}
	for i := range front.Choices {
		p := placeOf(&front.Choices[i])
		if got[p] {
			t.Errorf("%+v is listed twice", p)
		}
		got[p] = true
		if !want[p] {
			t.Errorf("%s (%+v) is beaten", front.Choices[i].Config.Plan, p)
		}
	}
	if len(got) != len(want) || len(got) < 10 {
		t.Errorf("%d choices, want %d", len(got), len(want))
	}
}
