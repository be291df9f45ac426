package accuracy

import (
	"context"
	"errors"
	"math"
	"slices"
	"testing"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/planner"
)

// TestAlternatives: what was chosen, what would have been best, and what that
// costs.
func TestAlternatives(t *testing.T) {
	g := []prediction{alternative(1, 10, 9), alternative(2, 12, 8), alternative(4, 15, 20)}
	g[2].config.Shape = spec.Packed(8, 4)
	all := alternativesOf("d", g)
	if len(all) != 1 {
		t.Fatalf("%d choices, want 1", len(all))
	}
	c := all[0]
	if c.Dataset != "d" || c.Source != "s" || c.Model != "m" || c.Devices != 8 || c.GlobalBatch != 8 || c.Plans != 3 || !slices.Equal(c.Placements, []string{"2x4", "8"}) {
		t.Errorf("%+v", c)
	}
	if c.Chosen.Row != "s: 2" || c.Chosen.MeasuredSec != 12 || c.Chosen.PredictedSec != 8 || c.Best.Row != "s: 1" || c.Best.Plan != "dp=8,tp=1,pp=1,mb=1,ga=1" || math.Abs(c.Regret-0.2) > 1e-12 {
		t.Errorf("%+v", c)
	}
}

func TestRegretsOf(t *testing.T) {
	got := regretsOf([]Alternatives{{Dataset: "a", Source: "x", Regret: 0.1}, {Dataset: "a", Source: "y", Regret: 0.3}, {Dataset: "b", Source: "x", Regret: 0.2}})
	want := []PartRegret{{"all", Regret{3, 0.2, 0.3}}, {"a", Regret{2, 0.2, 0.3}}, {"b", Regret{1, 0.2, 0.2}},
		{"a/x", Regret{1, 0.1, 0.1}}, {"a/y", Regret{1, 0.3, 0.3}}, {"b/x", Regret{1, 0.2, 0.2}}}
	same := func(a, b PartRegret) bool {
		return a.Name == b.Name && a.Groups == b.Groups && math.Abs(a.Mean-b.Mean) < 1e-12 && a.Worst == b.Worst
	}
	if !slices.EqualFunc(got, want, same) {
		t.Errorf("got %v, want %v", got, want)
	}
}

// ran is a measurement of a small network on 8 devices with so much memory, in
// gigabytes.
func ran(p spec.Plan, gigabytes float64, unrecorded string) spec.Measurement {
	m := spec.Model{Name: "m", Kind: spec.Decoder, Layers: 32, Hidden: 4096, Heads: 32, FFN: 16384, Vocab: 51200, SeqLen: 2048}
	return spec.Measurement{
		Config:  spec.Config{Model: m, Plan: p.Normal(), Accelerator: spec.Accelerator{Name: "x", BF16: 312e12, FP16: 312e12, FP32: 19.5e12, MemBytes: gigabytes * 1e9, MemBps: 2e12, ScaleUpBps: 300e9}, Shape: spec.Packed(8, 8)},
		Outcome: spec.OK, StepSec: []float64{2}, Source: "published/s", Origin: "s-1", Env: map[string]string{"unrecorded": unrecorded},
	}
}

// TestCheckPlan: the least recomputation that fits is found where none is
// recorded, and nothing else is tried where one is.
func TestCheckPlan(t *testing.T) {
	pl := planner.New(constant(4), planner.Options{})
	plan := spec.Plan{DP: 1, TP: 8, MicroBatch: 8, AccumSteps: 1, Precision: spec.BF16}
	check := func(p spec.Plan, gigabytes float64, unrecorded string) PlanCheck {
		m := ran(p, gigabytes, unrecorded)
		out, err := checkPlan(t.Context(), pl, &m)
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	ample := check(plan, 1000, "recompute")
	if !ample.OK() || ample.Recompute != spec.RecomputeNone || ample.PredictedSec != 2 || ample.Ratio() != 1 || ample.Reason() != "" {
		t.Errorf("ample memory: %+v", ample)
	}
	tight := check(plan, ample.MemoryBytes*0.8e-9, "dp,recompute")
	if !tight.OK() || tight.Recompute != spec.RecomputeFull || !(tight.MemoryBytes < ample.MemoryBytes) || tight.PredictedSec != 2 {
		t.Errorf("little memory: %+v", tight)
	}
	if known := check(plan, ample.MemoryBytes*0.8e-9, "dp"); known.OK() || known.Recompute != spec.RecomputeNone || known.Reason() == "" {
		t.Errorf("little memory, no recomputation recorded: %+v", known)
	}
	bad := plan
	bad.TP, bad.PP, bad.ZeRO = 1, 8, 3
	if got := check(bad, 1000, ""); got.OK() || got.Illegal == "" || got.Reason() != got.Illegal {
		t.Errorf("ZeRO-3 in a pipeline: %+v", got)
	}
}

// TestCheckPlanCancelled: only a cancelled context ends it.
func TestCheckPlanCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	m := ran(spec.Plan{DP: 8, MicroBatch: 1, AccumSteps: 1}, 1000, "")
	if _, err := checkPlan(ctx, planner.New(constant(4), planner.Options{}), &m); !errors.Is(err, context.Canceled) {
		t.Errorf("%v, want %v", err, context.Canceled)
	}
}
