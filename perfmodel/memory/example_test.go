package memory_test

import (
	"fmt"

	"github.com/pacer-ml/pacer/perfmodel/memory"
	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// ExampleEstimate shows what a 7 B decoder needs on each of 8 devices: ZeRO-3 shards the states, without it
// every device holds all of them.
func ExampleEstimate() {
	c := spec.Config{
		Model: spec.Model{Name: "7b", Kind: spec.Decoder, Layers: 32, Hidden: 4096, FFN: 11008, GatedMLP: true, Heads: 32, Vocab: 32000, SeqLen: 2048},
		Plan:  spec.Plan{DP: 8, MicroBatch: 1, Recompute: spec.RecomputeFull, Precision: spec.BF16},
	}
	for _, zero := range []int{0, 3} {
		c.Plan.ZeRO = zero
		b, err := memory.Estimate(c)
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Printf("ZeRO %d: fits 80 GB: %v, most for %s\n", zero, b.Fits(80e9), b.Parts()[0].Name)
	}
	// Output:
	// ZeRO 0: fits 80 GB: false, most for optimizer
	// ZeRO 3: fits 80 GB: true, most for optimizer
}
