package recipe

import (
	"slices"
	"strings"
	"testing"

	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// What a file says nothing about is not assumed, and what another file says is named.
func TestDeepSpeedElsewhere(t *testing.T) {
	for value, want := range map[string]string{"null": "", "": "", "deepspeed_configs/zero3.json": "the ZeRO stage and offload are in deepspeed_configs/zero3.json, which is not read"} {
		r, err := Read("a.yml", []byte("base_model: a/b\nsequence_len: 512\nmicro_batch_size: 2\nbf16: true\ndeepspeed: "+value+"\n"), Options{})
		if err != nil {
			t.Fatal(err)
		}
		if slices.ContainsFunc(r.Assumed, func(s string) bool { return strings.Contains(s, "ZeRO stage") }) != (want != "") || want != "" && !slices.Contains(r.Assumed, want) {
			t.Errorf("deepspeed: %s: assumed %q, want %q", value, r.Assumed, want)
		}
	}
}

// The branch that a condition of true or false leaves out is not read.
func TestConstantConditions(t *testing.T) {
	for condition, want := range map[string]int{"true": 4, ":": 4, "false": 2, "! false": 4, "[ 1 -eq 2 ]": 2, "true && false": 2, "X=1": 2} {
		text := "TP=2\nif " + condition + "; then TP=4; fi\ntorchrun --nproc_per_node 8 pretrain_gpt.py --num-layers 8 --hidden-size 1024 --num-attention-heads 8 --seq-length 512 --micro-batch-size 1 --tensor-model-parallel-size $TP\n"
		if condition == "X=1" { // an assignment succeeds, but is not a condition that is followed
			text = strings.Replace(text, "then TP=4", "then true", 1)
		}
		r, err := Read("a.sh", []byte(text), Options{})
		if err != nil {
			t.Fatal(err)
		}
		if n, _ := r.Number(TP); n != want {
			t.Errorf("if %s: tp=%d, want %d", condition, n, want)
		}
	}
}

// Fields are replaced by numbers and words of their kind only.
func TestSet(t *testing.T) {
	r, err := Read("a.yml", []byte("base_model: a/b\nsequence_len: 512\nmicro_batch_size: 2\n"), Options{})
	if err != nil {
		t.Fatal(err)
	}
	for value, ok := range map[string]bool{"4": true, "0": true, "four": false, "-1": false, "1.5": false, "": false} {
		if err := r.Set("micro_batch", value); (err == nil) != ok {
			t.Errorf("micro_batch=%q: %v", value, err)
		}
	}
	if err := r.Set("precision", "fp8"); err != nil || r.Text(Precision) != "fp8" {
		t.Errorf("precision=%s, %v", r.Text(Precision), err)
	}
}

// The parts of a pipeline's stages are virtual stages.
func TestStagesByHand(t *testing.T) {
	for parts, want := range map[string]int{`[["a"], ["b"]]`: 1, `[["a"], ["b"], ["c"], ["d"]]`: 2, `[["a"], ["b"], ["c"], ["d"], ["e"], ["f"]]`: 3} {
		text := "[model]\nname = \"llama3\"\nflavor = \"8B\"\n[training]\nlocal_batch_size = 8\nseq_len = 4096\n[parallelism]\npipeline_parallel_degree = 2\nmodule_fqns_per_model_part = " + parts + "\n"
		r, err := Read("a.toml", []byte(text), Options{})
		if err != nil {
			t.Fatal(err)
		}
		if n, _ := r.Number(VPP); n != want {
			t.Errorf("%s: %d virtual stages, want %d", parts, n, want)
		}
	}
}

// A plan of a file, edited to another: the lines that are new, or the reason why there are none.
func TestEditedLines(t *testing.T) {
	const nemo = "trainer:\n  devices: 8\n  precision: bf16\nmodel:\n  mcore_gpt: true\n  num_layers: 32\n  hidden_size: 4096\n  num_attention_heads: 32\n  encoder_seq_length: 4096\n  micro_batch_size: 1\n  global_batch_size: 64\n  optim:\n    name: fused_adam\n"
	const maxtext = "python3 MaxText/train.py base.yml model_name=llama3-8b max_target_length=16384 per_device_batch_size=1 ici_fsdp_parallelism=-1 ici_context_parallelism=2 ici_tensor_parallelism=2 remat_policy=full\n"
	const trainer = "torchrun --nproc_per_node 8 train.py --model_name_or_path a/b --bf16 --gradient-checkpointing False --per_device_train_batch_size=2 --gradient_accumulation_steps 4 --max_length 512 --fsdp \"full_shard auto_wrap\"\n"
	for _, tc := range []struct {
		name, text string
		change     func(*spec.Plan)
		line, why  string
	}{
		{"a.sh", maxtext, func(p *spec.Plan) { p.MicroBatch, p.AccumSteps = p.MicroBatch/2, 2*p.AccumSteps }, "per_device_batch_size=0.5 ", ""},
		{"a.sh", maxtext, func(p *spec.Plan) { p.CP, p.DP, p.AccumSteps, p.MicroBatch = 1, 2*p.DP, 1, p.MicroBatch/2 }, "ici_context_parallelism=1 ", ""},
		{"a.sh", maxtext, func(p *spec.Plan) { p.ZeRO = 1 }, "ici_data_parallelism=-1 shard_optimizer_over_data=true ", ""},
		{"a.sh", maxtext, func(p *spec.Plan) { p.ZeRO = 2 }, "", "MaxText shards weights, gradients and states together, or states alone"},
		{"a.sh", maxtext, func(p *spec.Plan) { p.SequenceParallel = true }, "ici_tensor_sequence_parallelism=2 ", ""},
		{"a.sh", maxtext, func(p *spec.Plan) { p.Offload = spec.OffloadParams }, "parameter_memory_host_offload=true param_scan_axis=0 ", ""},
		{"a.sh", strings.TrimSpace(maxtext) + " dcn_data_parallelism=2 ici_data_parallelism=1", func(p *spec.Plan) { p.ZeRO = 0 }, "dcn_data_parallelism=2 ici_data_parallelism=-1", ""},
		{"a.sh", trainer, func(p *spec.Plan) { p.ZeRO = 2 }, `--fsdp "shard_grad_op auto_wrap"`, ""},
		{"a.sh", trainer, func(p *spec.Plan) { p.Offload = spec.OffloadParams }, `--fsdp "full_shard auto_wrap offload"`, ""},
		{"a.sh", trainer, func(p *spec.Plan) { p.ZeRO = 0 }, "--max_length 512 \n", ""},
		{"a.sh", trainer, func(p *spec.Plan) { p.Precision = spec.FP16 }, "--bf16 false ", ""},
		{"a.sh", trainer, func(p *spec.Plan) { p.Recompute = spec.RecomputeFull }, "--gradient-checkpointing true ", ""},
		{"a.sh", trainer, func(p *spec.Plan) { p.MicroBatch, p.AccumSteps = 1, 8 }, "--per_device_train_batch_size=1 --gradient_accumulation_steps 8", ""},
		{"a.sh", strings.Replace(trainer, "full_shard auto_wrap", "full_shard", 1), func(p *spec.Plan) { p.Offload = spec.OffloadOptimizer }, "", "FSDP offloads weights and optimizer together"},
		{"a.yaml", nemo, func(p *spec.Plan) { p.ZeRO, p.Offload = 3, spec.OffloadParams }, "", "optimizers of NeMo that run on the host are not known to pacer"},
		{"a.yaml", nemo + "    cpu_offload: false\n", func(p *spec.Plan) { p.ZeRO, p.Offload = 3, spec.OffloadParams }, "", "optimizers of NeMo that run on the host are not known to pacer"},
		{"a.yaml", nemo, func(p *spec.Plan) { p.Offload = spec.OffloadOptimizer }, "", "optimizers of NeMo that run on the host are not known to pacer"},
		{"a.yaml", nemo + "    cpu_offload: false\n", func(p *spec.Plan) { p.ZeRO, p.Offload = 1, spec.OffloadOptimizer }, "    cpu_offload: true\n", ""},
	} {
		got, why := edited(t, tc.name, tc.text, tc.change)
		if !strings.Contains(got, tc.line) || (why == "") != (tc.why == "") || !strings.Contains(why, tc.why) {
			t.Errorf("%s: %q, want %q\n%s\nwant %q", tc.text, why, tc.why, got, tc.line)
		}
	}
}
