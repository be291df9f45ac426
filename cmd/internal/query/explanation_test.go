package query

import (
	"testing"

	"github.com/pacer-ml/pacer/datasets/catalog"
	"github.com/pacer-ml/pacer/perfmodel/family/analytic"
	"github.com/pacer-ml/pacer/perfmodel/memory"
	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// TestExplainPeak: the peak is the stage and the point of the memory estimate.
func TestExplainPeak(t *testing.T) {
	m, _ := catalog.Model("llama3-8b")
	a, _ := catalog.Accelerator("h100")
	points := map[memory.Point]bool{}
	stages := map[int]bool{}
	for _, p := range []spec.Plan{
		{DP: 8, MicroBatch: 1, ZeRO: 3, Recompute: spec.RecomputeFull}, {DP: 2, PP: 4, MicroBatch: 1, AccumSteps: 8},
		{DP: 2, PP: 4, MicroBatch: 8, Recompute: spec.RecomputeFull},
	} {
		c := spec.Config{Model: m, SeqLen: 2048, Accelerator: a, Shape: spec.NewShape(8), Plan: p, Framework: "FSDP"}
		e, err := memory.For(c)
		if err != nil {
			t.Fatal(err)
		}
		got, err := Explain(&analytic.Model{}, &e, c)
		if err != nil {
			t.Fatal(err)
		}
		b := e.Plan(p)
		if want := (MemPeak{Stage: b.Stage, Stages: max(p.PP, 1), At: b.At}); *got.Peak != want || got.JSON().MemPeak != got.Peak {
			t.Errorf("%s: %+v, want %+v", p, *got.Peak, want)
		}
		points[b.At], stages[b.Stage] = true, true
	}
	if len(points) < 2 || len(stages) < 2 {
		t.Errorf("peaks at %v on stages %v: too few of a kind", points, stages)
	}
}
