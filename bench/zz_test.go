package bench

import (
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/pacer-ml/pacer/perfmodel/family/analytic"
	"github.com/pacer-ml/pacer/planner"
	"github.com/pacer-ml/pacer/scheduler/policy"
	"github.com/pacer-ml/pacer/scheduler/policy/builtin"
)

func TestZZ(t *testing.T) {
	for _, n := range []int{120, 200, 300, 500, 1000, 2000} {
		for _, per := range []int{1, 4, 10} {
			s := firstDecisionSnapshot(t, n, n*per/32*32+32)
			specs, _ := builtin.Policies.Parse("pacer")
			p, err := builtin.Policies.New(specs[0], policy.Deps{Oracle: planner.New(analytic.Family.Unfitted, planner.Options{}), Seed: 1})
			if err != nil {
				t.Fatal(err)
			}
			p.Decide(t.Context(), s)
			p, _ = builtin.Policies.New(specs[0], policy.Deps{Oracle: planner.New(analytic.Family.Unfitted, planner.Options{}), Seed: 2})
			at := time.Now()
			d, err := p.Decide(t.Context(), s)
			fmt.Fprintf(os.Stderr, "%d %d gap %.4f %% %.0f ms\n", n, per, 100**d.Gap, time.Since(at).Seconds()*1e3)
		}
	}
}
