package recipe

import (
	"strings"
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
		from := onH100(m, base.Normal(), 2048)
		to := from
		tc.to(&to.Plan)
		to.Plan = to.Plan.Normal()
		if got := r.Elsewhere(from, to); got != tc.want {
			t.Errorf("%s: %s: %q, want %q", tc.name, to.Plan, got, tc.want)
		}
	}
}

// Options of accelerate launch are changed where they stand; a DeepSpeed file that a script names is not replaced by FSDP.
func TestAccelerateOptions(t *testing.T) {
	const head, tail = "accelerate launch --num_processes 8 --mixed_precision bf16 ", " train.py --model_name_or_path a/b --per_device_train_batch_size 2 --gradient_accumulation_steps 8 --max_seq_length 4096 --bf16\n"
	for _, tc := range []struct {
		options string
		to      func(p *spec.Plan)
		want    string
	}{
		{"--use_deepspeed --zero_stage 3", func(p *spec.Plan) { p.ZeRO = 2 }, "--use_deepspeed --zero_stage 2"},
		{"--use_fsdp --fsdp_sharding_strategy FULL_SHARD", func(p *spec.Plan) { p.ZeRO = 2 }, "--use_fsdp --fsdp_sharding_strategy SHARD_GRAD_OP"},
		{"--use_deepspeed --deepspeed_config_file ds3.conf", func(p *spec.Plan) { p.ZeRO = 2 }, ""},
		{"--config_file acc.yaml", func(p *spec.Plan) { p.ZeRO = 2 }, ""},
	} {
		if got, why := edited(t, "a.sh", head+tc.options+tail, tc.to); tc.want == "" && why == "" || tc.want != "" && got != head+tc.want+tail {
			t.Errorf("%s: %q, %s, want %q", tc.options, got, why, tc.want)
		}
	}
}

// A script that writes the file of Accelerate, and one that writes that of DeepSpeed under a temporary name, are read with it.
func TestWrittenConfigurations(t *testing.T) {
	for text, want := range map[string]spec.Plan{
		"#SBATCH --ntasks=2 --nodes=2 --gpus-per-node=8\nF=$(mktemp)\ncat >$F <<X\ndistributed_type: FSDP\nfsdp_config:\n  fsdp_version: 2\n  fsdp_reshard_after_forward: false\nX\naccelerate launch --config_file $F --num_processes $((8*SLURM_NNODES))": {DP: 16, ZeRO: 2},
		"D=$(mktemp -d)\ncat >$D/ds.json <<X\n{\"zero_optimization\": {\"stage\": 1}}\nX\naccelerate launch --num_processes 16 --use_deepspeed --deepspeed_config_file $D/ds.json":                                                                          {DP: 16, ZeRO: 1},
		"cat >ds.json <<X\n{\"zero_optimization\": {\"stage\": 1}}\nX\nsrun bash run.sh accelerate launch --num_processes 16 --use_deepspeed --deepspeed_config_file ds.json":                                                                               {DP: 16, ZeRO: 1},
	} {
		r, err := Read("a.sh", []byte(text+" train.py --model_name_or_path a/b --per_device_train_batch_size 1 --gradient_accumulation_steps 4 --max_seq_length 4096 --bf16\n"), Options{})
		if err != nil {
			t.Fatal(err)
		}
		want.MicroBatch, want.AccumSteps, want.Precision = 1, 4, spec.BF16
		if got, _, err := r.Plan(16); err != nil || !samePlan(got, want) || len(r.Unset) > 0 || strings.Contains(strings.Join(r.Assumed, " "), "not read") {
			t.Errorf("%s\n%s, want %s; %v, unset %v, not counted %v", text, got, want, err, r.Unset, r.Uncounted)
		}
	}
}

// Configurations of torchtitan that are not read are refused with what to write instead.
func TestTorchtitanElsewhere(t *testing.T) {
	for name, tc := range map[string][2]string{
		"run.sh":  {"torchrun -m torchtitan.train --job.config_file ${CONFIG:-llama3_8b.toml} --parallelism.tensor_parallel_degree 2 --training.local_batch_size=4 \"$@\"\n", "with llama3_8b.toml: check that file, after its keys have the values of --parallelism.tensor_parallel_degree 2, --training.local_batch_size=4"},
		"new.sh":  {"torchrun -m torchtitan.train --module llama3 --config llama3_8b\n", "write its values as TOML"},
		"conf.py": {"from torchtitan.trainer import Trainer\n", "write its values as TOML"},
	} {
		if _, err := Read(name, []byte(tc[0]), Options{}); err == nil || !strings.Contains(err.Error(), tc[1]) {
			t.Errorf("%s: %v, want %q", name, err, tc[1])
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
		got, why := edited(t, "a.yml", head+text, func(p *spec.Plan) {
			if p.ZeRO != 3 {
				t.Fatalf("%s: %s", text, p)
			}
			p.ZeRO = 2
		})
		if want == "" && why == "" || want != "" && got != head+want {
			t.Errorf("%q: %q, %s, want %q", text, got, why, want)
		}
	}
}
