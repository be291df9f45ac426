package planner_test

import (
	"errors"
	"math/rand/v2"
	"testing"

	"github.com/pacer-ml/pacer/planner"
)

// On sampled numbers of devices the best plan is the front's, or a point of the front is at least as fast for at most its
// device time; every point is what Best returns; and no plan fits on fewer devices than Fewest.
func TestFrontEqualsBest(t *testing.T) {
	model := analyticModel(t)
	rng := rand.New(rand.NewPCG(1, 2))
	for _, r := range []planner.Request{
		{Model: testModel(32, 4096, 32), Accelerator: testAccelerator(24), Devices: 300, GlobalBatch: 96},
		{Model: testModel(48, 6144, 48), Accelerator: testAccelerator(80), Devices: 1024, GlobalBatch: 512},
	} {
		front, err := planner.New(model, planner.Options{}).Front(ctx, r)
		if err != nil {
			t.Fatal(err)
		}
		best := func(n int) (planner.Choice, bool) {
			at := r
			at.Devices = n
			c, err := planner.New(model, planner.Options{}).Best(ctx, at)
			if err != nil && !errors.Is(err, planner.ErrInfeasible) {
				t.Fatal(err)
			}
			return c, err == nil
		}
		for _, p := range append(front.Points, front.Fewest) {
			if want, ok := best(p.Config.Plan.Devices()); !ok || want.Config != p.Config || want.Prediction.Throughput != p.Prediction.Throughput {
				t.Errorf("%s on the front, Best returns %s", p.Config.Plan, want.Config.Plan)
			}
		}
		for n := 1; n < front.Fewest.Config.Plan.Devices(); n++ {
			if c, ok := best(n); ok {
				t.Errorf("%s fits on fewer devices than %s", c.Config.Plan, front.Fewest.Config.Plan)
			}
		}
		for range 60 {
			n := 1 + rng.IntN(r.Devices)
			c, ok := best(n)
			if !ok {
				continue
			}
			covered := false
			for _, p := range front.Points {
				m := float64(p.Config.Plan.Devices())
				covered = covered || p.Config == c.Config || p.Prediction.Throughput >= c.Prediction.Throughput && m/p.Prediction.Throughput <= float64(n)/c.Prediction.Throughput
			}
			if !covered {
				t.Errorf("%d devices: %s beats the front", n, c.Config.Plan)
			}
		}
	}
}
