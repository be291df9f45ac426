package planner_test

import (
	"testing"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/planner"
)

// After a refit the model's answers change, and other answers come from the cache.
func TestWithPredictor(t *testing.T) {
	asked := map[string]int{}
	at := func(speed float64) predictor {
		return func(c spec.Config) (spec.Prediction, error) {
			asked[c.Model.Name]++
			return spec.Prediction{Throughput: speed}, nil
		}
	}
	a, b := request(4, 16), request(4, 16)
	a.Model.Name, b.Model.Name = "a", "b"
	answers := func(pl *planner.Planner) (out []float64) {
		for _, r := range []planner.Request{a, b} {
			best, err := pl.Best(ctx, r)
			if err != nil {
				t.Fatal(err)
			}
			curve, err := pl.Curve(ctx, r)
			if err != nil {
				t.Fatal(err)
			}
			surface, err := pl.Surface(ctx, r, planner.Axes{CPUs: []int{1, 2}})
			if err != nil {
				t.Fatal(err)
			}
			top, _ := surface.At(0, 0, 0, 1, 4)
			out = append(out, best.Prediction.Throughput, curve.Points[3].Choice.Prediction.Throughput, top.Prediction.Throughput)
		}
		return out
	}
	check := func(pl *planner.Planner, ofA, ofB float64) {
		t.Helper()
		for i, got := range answers(pl) {
			if want := []float64{ofA, ofB}[i/3]; got != want {
				t.Errorf("answer %d is %g, want %g", i, got, want)
			}
		}
	}
	old := planner.New(at(1), planner.Options{})
	check(old, 1, 1)
	clear(asked)
	check(old.WithPredictor(at(2), spec.Key{Model: "a", Accelerator: a.Accelerator.Name}), 2, 1)
	if asked["a"] == 0 || asked["b"] != 0 {
		t.Errorf("asked %v times, want none about b", asked)
	}
	check(old, 1, 1)
	check(old.WithPredictor(at(3)), 3, 3)
}
