package hybrid_test

import (
	"context"
	"fmt"

	"github.com/pacer-ml/pacer/perfmodel/family/hybrid"
	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// ExamplePrior_Condition: the shipped prior predicts without a measurement. One measured row changes the
// predictions of other plans on the same devices.
func ExamplePrior_Condition() {
	ctx := context.Background()
	c := spec.Config{
		Model:       spec.Model{Name: "7b", Kind: spec.Decoder, Layers: 32, Hidden: 4096, FFN: 11008, GatedMLP: true, Heads: 32, Vocab: 32000, SeqLen: 2048},
		Accelerator: spec.Accelerator{Name: "A100", Arch: "Ampere", BF16: 312e12, MemBytes: 80e9, MemBps: 2e12, ScaleUpBps: 300e9, HostBps: 32e9},
		Link:        spec.Link{IntraBps: 300e9, InterBps: 100e9},
		Shape:       spec.NewShape(8),
		Plan:        spec.Plan{DP: 8, MicroBatch: 2, AccumSteps: 4, ZeRO: 3, Precision: spec.BF16},
	}
	before, err := hybrid.Shipped().Predict(ctx, c)
	if err != nil {
		fmt.Println(err)
		return
	}
	sec, _, _ := before.StepSec(c.Plan.GlobalBatch())
	row := spec.Measurement{Config: c, Outcome: spec.OK, StepSec: []float64{1.2 * sec}}
	fitted, err := hybrid.Shipped().Condition(ctx, []spec.Measurement{row})
	if err != nil {
		fmt.Println(err)
		return
	}
	c.Plan.MicroBatch = 4
	before, err1 := hybrid.Shipped().Predict(ctx, c)
	after, err2 := fitted.Predict(ctx, c)
	if err1 != nil || err2 != nil {
		fmt.Println(err1, err2)
		return
	}
	fmt.Println("predicts less after a slow row:", after.Throughput < before.Throughput)
	// Output:
	// predicts less after a slow row: true
}
