package recipe

import (
	"testing"

	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// A change that a file cannot hold comes with the flags or files that can, or with nothing.
func TestElsewhere(t *testing.T) {
	base := spec.Plan{DP: 8, MicroBatch: 1, AccumSteps: 4, ZeRO: 3, Precision: spec.BF16}
	const accelerate = "distributed_type: DEEPSPEED\ndeepspeed_config:\n  deepspeed_config_file: ds.json\nmixed_precision: bf16\nnum_machines: 1\nnum_processes: 8\n"
	const axolotl = "base_model: a/b\nmicro_batch_size: 1\nsequence_len: 2048\ngradient_accumulation_steps: 4\ndeepspeed: ds/zero3_bf16.json\n"
	const trainer = "model_name_or_path: a/b\nper_device_train_batch_size: 1\ngradient_accumulation_steps: 4\nfsdp: full_shard auto_wrap\nbf16: true\n"
	for _, tc := range []struct {
		name, text string
		to         func(p *spec.Plan)
		want       string
	}{
		{"accelerate.yaml", accelerate, func(p *spec.Plan) { p.MicroBatch, p.AccumSteps = 4, 1 }, "--per_device_train_batch_size 4 among the program's arguments; --gradient_accumulation_steps 1 among the program's arguments"},
		{"accelerate.yaml", accelerate, func(p *spec.Plan) { p.ZeRO = 2 }, "zero_optimization.stage: 2 in ds.json"},
		{"accelerate.yaml", accelerate, func(p *spec.Plan) { p.Recompute = spec.RecomputeFull }, "--gradient_checkpointing true among the program's arguments"},
		{"accelerate.yaml", accelerate, func(p *spec.Plan) { p.PP, p.DP = 2, 4 }, ""},
		{"accelerate.yaml", accelerate, func(p *spec.Plan) { p.Precision = spec.FP8 }, ""}, // the file has a key
		{"axolotl.yml", axolotl, func(p *spec.Plan) { p.ZeRO, p.Offload = 2, spec.OffloadOptimizer }, "zero_optimization.stage: 2 in ds/zero3_bf16.json; zero_optimization.offload_optimizer.device: cpu and zero_optimization.offload_param.device: none in ds/zero3_bf16.json"},
		{"axolotl.yml", axolotl, func(p *spec.Plan) { p.MicroBatch, p.AccumSteps, p.ZeRO, p.Offload = 2, 2, 2, spec.OffloadOptimizer },
			"micro_batch_size: 2 in axolotl.yml; gradient_accumulation_steps: 2 in axolotl.yml; zero_optimization.stage: 2 in ds/zero3_bf16.json; zero_optimization.offload_optimizer.device: cpu and zero_optimization.offload_param.device: none in ds/zero3_bf16.json"},
		{"axolotl.yml", axolotl, func(p *spec.Plan) { p.PP, p.DP = 2, 4 }, ""},
		{"trainer.yaml", trainer, func(p *spec.Plan) { p.TP, p.DP = 2, 4 }, "parallelism_config_tp_size: 2 and parallelism_config_dp_shard_size: 4 under parallelism_config in the file of Accelerate"},
		{"trainer.yaml", trainer, func(p *spec.Plan) { p.Recompute = spec.RecomputeSelective }, ""},
	} {
		r, err := Read(tc.name, []byte(tc.text), Options{})
		if err != nil {
			t.Fatal(err)
		}
		m := spec.Model{Name: "x", Kind: spec.Decoder, Layers: 32, Hidden: 4096, FFN: 11008, Heads: 32, Vocab: 32000, SeqLen: 2048}
		from := spec.Config{Model: m, Accelerator: h100, Plan: base.Normal(), Shape: spec.Packed(8, 8), SeqLen: 2048}
		to := from
		tc.to(&to.Plan)
		to.Plan = to.Plan.Normal()
		if got := r.Elsewhere(from, to); got != tc.want {
			t.Errorf("%s: %s: %q, want %q", tc.name, to.Plan, got, tc.want)
		}
	}
}

// The words of FSDP in a list are changed in their place, in block and in flow style.
func TestListEdits(t *testing.T) {
	for text, want := range map[string]string{
		"fsdp:\n  - full_shard\n  - auto_wrap\n":       "fsdp:\n  - shard_grad_op\n  - auto_wrap\n",
		"fsdp: [full_shard, auto_wrap]\n":              "fsdp: [shard_grad_op, auto_wrap]\n",
		"fsdp:\n- auto_wrap\n- full_shard\nseed: 1\n":  "fsdp:\n- auto_wrap\n- shard_grad_op\nseed: 1\n",
		"fsdp:\n  - full_shard # why\n  - auto_wrap\n": "",
		"fsdp:\n  - \"full_shard\"\n  - auto_wrap\n":   "",
		"fsdp: full_shard auto_wrap\n":                 "fsdp: shard_grad_op auto_wrap\n",
	} {
		const head = "base_model: a/b\nmicro_batch_size: 1\nsequence_len: 2048\nbf16: true\n"
		r, err := Read("a.yml", []byte(head+text), Options{})
		if err != nil {
			t.Fatal(err)
		}
		plan, _, err := r.Plan(8)
		if err != nil || plan.ZeRO != 3 {
			t.Fatalf("%s: %s, %v", text, plan, err)
		}
		from := spec.Config{Model: networks[0], Accelerator: h100, Plan: plan, Shape: spec.Packed(8, 8), SeqLen: 2048}
		to := from
		to.Plan.ZeRO = 2
		if got, why := r.edit(&from, &to, Options{}); want == "" && why == "" || want != "" && got != head+want {
			t.Errorf("%q: %q, %s, want %q", text, got, why, want)
		}
	}
}
