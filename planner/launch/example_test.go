package launch_test

import (
	"errors"
	"fmt"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/planner/launch"
)

// Emit writes the file that starts a plan. A part without a setting is an error that
// names it.
func ExampleFramework_Emit() {
	plan, _ := spec.ParsePlan("dp=16,zero=3,shard=8,ga=4,precision=bf16")
	config := spec.Config{
		Model: spec.Model{Name: "Llama3-8B", Kind: spec.Decoder, Layers: 32, Hidden: 4096, FFN: 14336, Heads: 32, KVHeads: 8, Vocab: 128256, SeqLen: 8192, GatedMLP: true},
		Plan:  plan,
		Shape: spec.NewShape(8, 8),
	}
	f, _ := launch.Lookup("deepspeed")
	script, err := f.Emit(config)
	fmt.Print(script.Text, err, "\n")

	config.Plan.ZeRO = 1
	_, err = f.Emit(config)
	var e *launch.Inexpressible
	fmt.Println(errors.As(err, &e), e.Parts[0])
	fmt.Println("the whole plan:", e.Able)
	// Output:
	// {
	//   "train_batch_size": 64,
	//   "train_micro_batch_size_per_gpu": 1,
	//   "gradient_accumulation_steps": 4,
	//   "data_types": {
	//     "grad_accum_dtype": "fp32"
	//   },
	//   "bf16": {
	//     "enabled": true
	//   },
	//   "zero_optimization": {
	//     "stage": 3,
	//     "overlap_comm": true,
	//     "contiguous_gradients": true,
	//     "reduce_scatter": true,
	//     "mics_shard_size": 8
	//   }
	// }
	// <nil>
	// true shard=8: MiCS shards parameters too: zero=3; megatron and torchtitan can
	// the whole plan: [megatron]
}
