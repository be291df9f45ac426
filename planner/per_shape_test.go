package planner_test

import (
	"errors"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"github.com/pacer-ml/pacer/perfmodel"
	"github.com/pacer-ml/pacer/perfmodel/family"
	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/planner"
)

// firstOfEachShape is PerShape by definition.
func firstOfEachShape(t *testing.T, pl *planner.Planner, r planner.Request, accept func(*spec.Config) bool) (out []planner.Choice) {
	rk, err := pl.Rank(ctx, r)
	if err != nil && !errors.Is(err, planner.ErrInfeasible) && !errors.Is(err, perfmodel.ErrNotCovered) {
		t.Fatal(err)
	}
	seen := map[spec.Shape]bool{}
	for i := range rk.Choices {
		c := &rk.Choices[i]
		if c.Fits && c.Prediction.Throughput > 0 && !seen[c.Config.Shape] && accept(&c.Config) {
			seen[c.Config.Shape] = true
			out = append(out, *c)
		}
	}
	return out
}

func TestPerShapeIsTheFirstOfRankForEachShape(t *testing.T) {
	hybrid, err := family.Lookup("hybrid")
	if err != nil {
		t.Fatal(err)
	}
	rng := rand.New(rand.NewPCG(7, 8))
	answers := 0
	same := func(name string, pl *planner.Planner, r planner.Request, accept func(*spec.Config) bool) {
		t.Helper()
		got, err := pl.PerShape(ctx, r, accept)
		if err != nil && !errors.Is(err, perfmodel.ErrNotCovered) {
			t.Fatalf("%s: %v", name, err)
		}
		want := firstOfEachShape(t, pl, r, accept)
		answers += len(want)
		if !slices.EqualFunc(got, want, func(a, b planner.Choice) bool { return reflect.DeepEqual(a, b) }) {
			t.Errorf("%s: choices %+v, want %+v", name, got, want)
		}
	}
	filters := map[string]func(*spec.Config) bool{
		"all":         func(*spec.Config) bool { return true },
		"no offload":  func(c *spec.Config) bool { return c.Plan.Normal().Offload == spec.OffloadNone },
		"no pipeline": func(c *spec.Config) bool { return c.Plan.PP == 1 },
		"none":        func(*spec.Config) bool { return false },
	}
	for range problems(40) {
		r := randomRequest(rng)
		r.Risk = []float64{0, 0.05}[rng.IntN(2)]
		for name, p := range map[string]perfmodel.Predictor{"analytic": analyticModel(t), "fitted": fittedTo(t, hybrid, r)} {
			pl := planner.New(p, planner.Options{})
			for filter, accept := range filters {
				same(name+", "+filter, pl, r, accept)
			}
			more := r // on another shape, with what searches share
			more.Devices++
			same(name+", one device more", pl, more, filters["all"])
			more.Devices, more.MinDevices = 11, 4 // of 11 there is no plan
			same(name+", 4 to 11 devices", pl, more, filters["all"])
		}
	}
	pl, r := measuredPlanner(t)
	for r.Devices = 1; r.Devices <= 16; r.Devices++ {
		for filter, accept := range filters {
			same("measured, "+filter, pl, r, accept)
		}
	}
	if want := 5 * problems(40) / 4; answers < want {
		t.Errorf("only %d answers, want %d", answers, want)
	}
}
