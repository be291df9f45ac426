package analytic_test

import (
	"fmt"

	"github.com/pacer-ml/pacer/perfmodel/family/analytic"
	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// ExampleModel_Explain splits a predicted step by cause. Without full recomputation the step would be shorter,
// if it fits in memory.
func ExampleModel_Explain() {
	c := spec.Config{
		Model:       spec.Model{Name: "7b", Kind: spec.Decoder, Layers: 32, Hidden: 4096, FFN: 11008, GatedMLP: true, Heads: 32, Vocab: 32000, SeqLen: 2048},
		Accelerator: spec.Accelerator{Name: "A100", Arch: "Ampere", BF16: 312e12, MemBytes: 80e9, MemBps: 2e12, ScaleUpBps: 300e9, HostBps: 32e9},
		Link:        spec.Link{IntraBps: 300e9, InterBps: 100e9},
		Shape:       spec.NewShape(8),
		Framework:   "FSDP@2024",
		Plan:        spec.Plan{DP: 8, MicroBatch: 2, AccumSteps: 4, ZeRO: 3, Recompute: spec.RecomputeFull, Precision: spec.BF16},
	}
	parts, err := (&analytic.Model{}).Explain(c)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("recomputation is %.0f %% of the step, tensor parallelism %.0f %%\n", 100*parts.Recompute/parts.Total(), 100*parts.TP/parts.Total())
	// Output:
	// recomputation is 24 % of the step, tensor parallelism 0 %
}
