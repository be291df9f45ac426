package hybrid

import (
	"math"
	"testing"
	"time"

	"github.com/pacer-ml/pacer/perfmodel/family/analytic"
	"github.com/pacer-ml/pacer/perfmodel/internal/drift"
	"github.com/pacer-ml/pacer/perfmodel/internal/perftest"
	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// TestMostOfRows: intervals may be wider by the largest ratio of an error to the interval without rows, with the noise that
// the source of a row states, of any row, of routed experts too. A stored model has the same limit.
func TestMostOfRows(t *testing.T) {
	prior := Shipped()
	at := func(dp, experts int) spec.Config {
		c := perftest.GPT(spec.Plan{DP: dp, MicroBatch: 2, AccumSteps: 4, Precision: spec.BF16}.Normal())
		if experts > 0 {
			c.Model.Name, c.Model.Experts, c.Model.ExpertsPerToken, c.Model.ExpertFFN = "moe", experts, 2, 4096
		}
		return c
	}
	unstated := perftest.GPT(spec.Plan{DP: 64, ZeRO: 3, MicroBatch: 1, Precision: spec.BF16}.Normal())
	unstated.Framework = ""
	type row struct {
		of     spec.Config
		factor float64
		noise  string
	}
	for name, rows := range map[string][]row{
		"inside":     {{at(8, 0), 1.05, ""}, {at(16, 0), 0.98, ""}},
		"first":      {{at(8, 0), 4, ""}, {at(16, 0), 1.05, ""}},
		"second":     {{at(8, 0), 1.05, ""}, {at(16, 0), 4, ""}},
		"unstated":   {{unstated, 0.41, ""}}, // with the interval of several stacks
		"routed":     {{at(8, 8), 3, ""}},
		"noisy":      {{at(8, 0), 4, "0.5"}},
		"very noisy": {{at(8, 0), 2, "0.5"}},
	} {
		var ms []spec.Measurement
		var before []float64
		for _, r := range rows {
			p, err := prior.Family().Unfitted.Predict(t.Context(), r.of)
			if err != nil {
				t.Fatal(err)
			}
			m := perftest.Measured(r.of, r.factor*float64(r.of.Plan.GlobalBatch())/p.Throughput)
			m.Env = map[string]string{spec.EnvStepNoise: r.noise}
			ms = append(ms, m)
			scale := prior.consts.Widths.ScaleOf(r.of.Model.Experts > 0)
			before = append(before, math.Hypot(p.HalfWidth(), scale*m.StepNoise()))
		}
		fitted, err := prior.Condition(t.Context(), ms)
		if err != nil {
			t.Fatal(err)
		}
		h := fitted.(*Model)
		want := 1.0
		for i, e := range h.base.left { // rows are in the order of their plans
			want = max(want, math.Abs(e)/before[i])
		}
		if math.Abs(h.base.most-want) > 1e-9 || (want > 1) != (name != "inside" && name != "very noisy" && name != "unstated") {
			t.Errorf("%s: intervals up to %g times as wide, want %g", name, h.base.most, want)
		}
		b, err := h.MarshalBinary()
		if err != nil {
			t.Fatal(err)
		}
		again, err := prior.load(b)
		if err != nil {
			t.Fatal(err)
		}
		if got := again.(*Model).base.most; got != h.base.most {
			t.Errorf("%s: %g after storing, want %g", name, got, h.base.most)
		}
	}
}

// TestNoiseOfOldRows: rows from before a change have its shift as noise besides that which their source states.
func TestNoiseOfOldRows(t *testing.T) {
	since := time.Date(2026, 1, 2, 0, 0, 0, 0, time.UTC)
	rows := make([]spec.Measurement, 4)
	for i := range rows { // the first two are old, the second and fourth noisy
		rows[i] = perftest.Measured(perftest.GPT(spec.Plan{DP: 8, MicroBatch: i + 1, Precision: spec.BF16}.Normal()), 10)
		rows[i].At = since.AddDate(0, 0, map[bool]int{true: -1}[i < 2])
		if i%2 == 1 {
			rows[i].Env = map[string]string{spec.EnvStepNoise: "0.2"}
		}
	}
	site := analytic.SiteOf(&rows[0].Config)
	f := &followed{changes: map[analytic.Site][]change{site: {{drift.Change{Since: since, Part: drift.Compute, Log: 0.5, Older: 2, Newer: 2}, Shipped().consts.Physics}}}}
	if err := f.merge(t.Context(), rows); err != nil {
		t.Fatal(err)
	}
	noise := map[int]float64{}
	for i := range f.fit.Rows {
		noise[f.fit.Rows[i].Config.Plan.MicroBatch] = f.fit.Noise[i]
	}
	for micro, stated := range map[int]float64{1: 0, 2: 0.2, 3: 0, 4: 0.2} {
		shift, err := f.noise(&rows[micro-1])
		if err != nil {
			t.Fatal(err)
		}
		if want := math.Hypot(stated, shift); math.Abs(noise[micro]-want) > 1e-12 || (shift > 0) != (micro < 3) {
			t.Errorf("micro-batch %d: noise %g, want %g", micro, noise[micro], want)
		}
	}
}
