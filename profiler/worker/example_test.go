package worker_test

import (
	"fmt"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/profiler/worker"
)

// ExampleFeatures_Lacks shows plans that torch 1.13 on a CPU cannot train.
func ExampleFeatures_Lacks() {
	torch := worker.Features{Torch: "1.13.1", Features: map[string]any{"zero_redundancy_optimizer": true}}
	c := spec.Config{
		Model: spec.Model{Name: "tiny", Kind: spec.Decoder, Layers: 2, Hidden: 64, FFN: 256, Heads: 4, Vocab: 1000, SeqLen: 32},
		Shape: spec.NewShape(2),
	}
	for _, plan := range []spec.Plan{{DP: 2, ZeRO: 1}, {DP: 2, ZeRO: 3}, {DP: 2, Precision: spec.FP16}} {
		c.Plan = plan
		fmt.Printf("%q\n", torch.Lacks(c, worker.CPU, false))
	}
	// Output:
	// ""
	// "zero=3 needs FSDP, which torch 1.13.1 does not have or cannot import; torch 2.4 or later has it"
	// "precision=fp16 needs a CUDA device; a CPU has bf16 and fp32"
}
