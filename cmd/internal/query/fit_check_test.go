package query

import (
	"testing"

	"github.com/pacer-ml/pacer/perfmodel/memory"
	"github.com/pacer-ml/pacer/planner"
)

// The verdict is that of the report, beside whether the plan counts as fitting.
func TestFitCheckVerdict(t *testing.T) {
	for _, c := range []planner.Choice{{Fits: true, Verdict: memory.Fits}, {Verdict: memory.Unsure}, {Verdict: memory.Exceeds}, {Fits: true}} {
		if got := NewFitCheck(planner.FitReport{Choice: c}); got.Fits != c.Fits || got.Verdict != string(c.Verdict) || got.Probability != 1 {
			t.Errorf("%v, %q: %+v", c.Fits, c.Verdict, got)
		}
		if got := NewPlanRow(c); got.Fits != c.Fits || got.Verdict != string(c.Verdict) {
			t.Errorf("%v, %q: %+v", c.Fits, c.Verdict, got)
		}
	}
}
