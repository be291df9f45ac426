package analytic

import (
	"context"
	"math"
	"testing"

	"github.com/pacer-ml/pacer/perfmodel/internal/perftest"
	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// explainAlone returns the parts of a stage alone, and those of the whole plan for stage 0.
func explainAlone(t *testing.T, p spec.Plan, stage int) Parts {
	t.Helper()
	c := perftest.GPT(p.Normal())
	c.AloneStage = stage
	parts, err := (&Model{}).Explain(c)
	if err != nil {
		t.Fatal(err)
	}
	return parts
}

// TestAloneParts: one rank has the work of its stage, no traffic and no bubble.
func TestAloneParts(t *testing.T) {
	for name, p := range map[string]spec.Plan{
		"tp":         {TP: 4, MicroBatch: 2, AccumSteps: 3, Precision: spec.BF16},
		"dp":         {DP: 16, MicroBatch: 2, AccumSteps: 2, ZeRO: 1, Precision: spec.BF16},
		"recompute":  {TP: 2, DP: 8, MicroBatch: 2, Recompute: spec.RecomputeFull, Precision: spec.BF16},
		"everything": {DP: 4, TP: 8, MicroBatch: 1, AccumSteps: 8, SequenceParallel: true, ZeRO: 1, Precision: spec.BF16},
	} {
		whole, one := explainAlone(t, p, 0), explainAlone(t, p, 1)
		traffic := whole.TP + whole.DP + whole.CP + whole.EP + whole.Pipeline
		if one.TP != 0 || one.DP != 0 || one.CP != 0 || one.EP != 0 || one.Pipeline != 0 {
			t.Errorf("%s: %+v, want no traffic and no bubble", name, one)
		}
		if want := whole.Total() - traffic; math.Abs(one.Total()/want-1) > 1e-12 || traffic <= 0 {
			t.Errorf("%s: %g s alone, want the %g s of the whole step without its traffic of %g s", name, one.Total(), want, traffic)
		}
	}
	p := spec.Plan{TP: 2, PP: 4, MicroBatch: 1, AccumSteps: 8, Precision: spec.BF16}
	stages, whole := [4]Parts{}, explainAlone(t, p, 0)
	compute := 0.0
	for i := range stages {
		stages[i] = explainAlone(t, p, i+1)
		compute += stages[i].Compute
		if stages[i].Pipeline != 0 || stages[i].TP != 0 {
			t.Errorf("stage %d: %+v", i+1, stages[i])
		}
	}
	if stages[1] != stages[2] || !(stages[3].Compute > stages[1].Compute) {
		t.Errorf("stages %+v: want like ones in the middle, and the head on the last", stages)
	}
	if !(stages[0].Optimizer > stages[1].Optimizer) || !(stages[3].Optimizer > stages[1].Optimizer) {
		t.Errorf("optimizer of %g, %g and %g s: want most where the embedding is", stages[0].Optimizer, stages[1].Optimizer, stages[3].Optimizer)
	}
	if math.Abs(whole.Compute/stages[3].Compute-1) > 0.01 { // the slowest stage sets the pace
		t.Errorf("compute of %g s alone, %g s in the whole step", stages[3].Compute, whole.Compute)
	}
}

// TestAloneUneven: layers that the stages do not divide are where spec.Plan.StageLayers puts them.
func TestAloneUneven(t *testing.T) {
	p := spec.Plan{PP: 5, MicroBatch: 1, AccumSteps: 5, Precision: spec.BF16}.Normal() // 32 layers: 6, 6, 7, 7, 6
	var compute []float64
	for stage := 1; stage <= 5; stage++ {
		compute = append(compute, explainAlone(t, p, stage).Compute)
	}
	if compute[2] != compute[3] || math.Abs(compute[2]/compute[1]-7./6) > 1e-9 { // the first accumulates the embedding, too
		t.Errorf("compute %v, want 6, 7 and 7 layers in the middle", compute)
	}
}

// TestAloneMemory: the peak is that of the stage, and the first stage holds the most activations.
func TestAloneMemory(t *testing.T) {
	c := perftest.GPT(spec.Plan{TP: 2, PP: 4, DP: 2, MicroBatch: 1, AccumSteps: 8, Precision: spec.BF16}.Normal())
	var peak [5]float64
	for stage := range peak {
		c.AloneStage = stage
		p, err := (&Model{}).Predict(context.Background(), c)
		if err != nil {
			t.Fatal(err)
		}
		peak[stage] = p.MemoryBytes
	}
	if !(peak[1] > peak[2] && peak[2] > peak[3]) || peak[1] > peak[0] {
		t.Errorf("peaks %.4g, want less on each later stage, and none above that of the whole plan", peak)
	}
}

// TestAloneBound: there is no lower bound above the prediction.
func TestAloneBound(t *testing.T) {
	c := perftest.GPT(spec.Plan{TP: 2, PP: 4, MicroBatch: 1, AccumSteps: 8, Precision: spec.BF16}.Normal())
	c.AloneStage = 2
	bound, err := (&Model{}).StepAtLeast(c)
	if err != nil {
		t.Fatal(err)
	}
	p := c.Plan.Normal()
	if b, parts := bound(&p, &c.Shape), explainAlone(t, p, 2); b > parts.Total() {
		t.Errorf("bound %g s, predicted %g s", b, parts.Total())
	}
}

// TestMiddleStages: a stack that moves layers from the last of 4 stages to those before it has 8, 9, 9 and 6 of 32. The
// slowest stage has 9, unless the head takes longer than three layers.
func TestMiddleStages(t *testing.T) {
	recomputed := func(framework string, vocab, alone int) float64 {
		p := spec.Plan{PP: 4, MicroBatch: 1, AccumSteps: 8, Recompute: spec.RecomputeFull, Precision: spec.BF16}
		c := perftest.GPT(p.Normal())
		c.Model.Vocab, c.Framework, c.AloneStage = vocab, framework, alone
		parts, err := (&Model{}).Explain(c)
		if err != nil {
			t.Fatal(err)
		}
		return parts.Recompute
	}
	layer := recomputed("LiBai stages=even", 1000, 1) / 8
	for _, tc := range []struct {
		framework    string
		vocab, alone int
		layers       float64
	}{
		{"LiBai stages=even", 1000, 0, 8}, {"LiBai", 1000, 0, 9}, {"LiBai", 500_000, 0, 6}, {"LiBai stages=even", 500_000, 0, 8},
		{"LiBai", 1000, 1, 8}, {"LiBai", 1000, 2, 9}, {"LiBai", 1000, 3, 9}, {"LiBai", 1000, 4, 6},
	} {
		if got := recomputed(tc.framework, tc.vocab, tc.alone) / layer; math.Abs(got-tc.layers) > 1e-9 {
			t.Errorf("%+v: recomputes %g layers", tc, got)
		}
	}
}
