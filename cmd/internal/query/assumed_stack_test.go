package query

import (
	"testing"

	"github.com/pacer-ml/pacer/datasets/catalog"
	"github.com/pacer-ml/pacer/perfmodel"
	"github.com/pacer-ml/pacer/perfmodel/family"
	"github.com/pacer-ml/pacer/perfmodel/family/analytic"
	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// Rows that ran on the least probable stack make it the most probable one.
func TestAssumedStacksAfterRows(t *testing.T) {
	m, _ := catalog.Model("gpt2-large")
	a, _ := catalog.Accelerator("a100-80gb")
	c := spec.Config{Model: m, SeqLen: 1024, Accelerator: a, Shape: spec.Packed(8, 8), Plan: spec.Plan{DP: 8, MicroBatch: 4, ZeRO: 3}}
	before, err := Explain(&analytic.Model{}, nil, c)
	if err != nil {
		t.Fatal(err)
	}
	least := before.Stacks[len(before.Stacks)-1]
	if len(before.Stacks) < 2 || before.Measured {
		t.Fatalf("%+v: measured %t", before.Stacks, before.Measured)
	}
	var rows []spec.Measurement
	for _, devices := range []int{1, 2, 4, 8} {
		for _, batch := range []int{1, 2, 4, 8, 16} {
			on := c
			on.Shape, on.Plan.DP, on.Plan.MicroBatch = spec.Packed(devices, 8), devices, batch
			row := spec.Measurement{Source: "test", Outcome: spec.OK}
			on.Framework = least.Framework
			p, err := (&analytic.Model{}).Predict(t.Context(), on)
			if err != nil {
				t.Fatal(err)
			}
			sec, _, _ := p.StepSec(on.Plan.GlobalBatch())
			on.Framework = ""
			row.Config, row.StepSec = on, []float64{sec}
			rows = append(rows, row)
		}
	}
	model, err := family.Lookup("hybrid")
	if err != nil {
		t.Fatal(err)
	}
	fitted, _, err := model.Fit(t.Context(), perfmodel.Rows(rows))
	if err != nil {
		t.Fatal(err)
	}
	e, err := ExplainerOf(fitted, "hybrid")
	if err != nil {
		t.Fatal(err)
	}
	after, err := Explain(e, nil, c)
	if err != nil {
		t.Fatal(err)
	}
	if got := after.Stacks[0]; got.Framework != least.Framework || got.Probability <= least.Probability || !after.Measured {
		t.Errorf("%+v before, %+v after, measured %t; want %s first", before.Stacks, after.Stacks, after.Measured, least.Framework)
	}
}
