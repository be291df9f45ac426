package gp

import (
	"testing"

	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// TestPointOfRankAlone: one rank alone is where its own work is: without replicas and pipeline, with its share of layers.
func TestPointOfRankAlone(t *testing.T) {
	c := spec.Config{Model: spec.Model{Name: "m", Layers: 12, Hidden: 64, Heads: 4}, SeqLen: 128, Accelerator: spec.Accelerator{Name: "x"},
		Plan: spec.Plan{DP: 4, TP: 2, PP: 3, MicroBatch: 2, AccumSteps: 8}, Shape: spec.NewShape(8, 8, 8), AloneStage: 2}
	one := c
	one.AloneStage, one.Model.Layers, one.Shape = 0, 4, spec.NewShape(2)
	one.Plan.DP, one.Plan.PP = 1, 1
	got, want := PointOf(&c), PointOf(&one)
	want.Num[devices], want.Num[nodes] = 0, 0 // it runs on one device, with its share of tensors
	if got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
}
