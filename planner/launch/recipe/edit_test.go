package recipe

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/perfmodel/spec/spectest"
	"github.com/pacer-ml/pacer/planner"
)

var h100 = spec.Accelerator{Name: "H100-80GB-SXM", Arch: "Hopper", BF16: 989e12, FP16: 989e12, FP8: 1979e12, MemBytes: 80e9}

// onH100 is a configuration of a plan on nodes of 8 H100.
func onH100(m spec.Model, p spec.Plan, samples int) spec.Config {
	return spec.Config{Model: m, Accelerator: h100, Plan: p, Shape: spec.Packed(p.Devices(), 8), SeqLen: samples}
}

// edited changes the plan that a file says for 8 devices, and returns the file that says the new one, or why there is none.
func edited(t *testing.T, name, text string, change func(*spec.Plan)) (got, why string) {
	t.Helper()
	r, err := Read(name, []byte(text), Options{})
	if err != nil {
		t.Fatal(err)
	}
	plan, _, err := r.Plan(8)
	if err != nil {
		t.Fatal(err)
	}
	from := onH100(networks[0], plan, r.Samples())
	to := from
	change(&to.Plan)
	return r.edit(&from, &to, Options{})
}

// patched applies a unified diff to a text, as patch does.
func patched(t interface{ Fatalf(string, ...any) }, text, diff string) string {
	old := strings.SplitAfter(text, "\n")
	var out []string
	at, last := 0, byte(0)
	for _, line := range strings.SplitAfter(diff, "\n") {
		var from, n, to, m int
		switch {
		case line == "" || strings.HasPrefix(line, "diff ") || strings.HasPrefix(line, "--- ") && len(out) == 0 || strings.HasPrefix(line, "+++ ") && len(out) == 0:
		case strings.HasPrefix(line, "@@"):
			if _, err := fmt.Sscanf(line, "@@ -%d,%d +%d,%d @@", &from, &n, &to, &m); err != nil {
				t.Fatalf("%q: %v\n%s", line, err, diff)
			}
			for ; at < from-1; at++ {
				out = append(out, old[at])
			}
		case line[0] == '\\':
			if last != '-' {
				out[len(out)-1] = strings.TrimSuffix(out[len(out)-1], "\n")
			}
		case line[0] == '+':
			out, last = append(out, line[1:]), '+'
		default:
			if at == len(old) || strings.TrimSuffix(old[at], "\n") != strings.TrimSuffix(line[1:], "\n") {
				t.Fatalf("line %d of the file is not %q\n%s\n%s", at+1, line[1:], diff, text)
			}
			if last = line[0]; last == ' ' {
				out = append(out, line[1:])
			}
			at++
		}
	}
	return strings.Join(append(out, old[at:]...), "")
}

// Applying the diff of a change and reading the file back gives exactly the changed plan, or there is a reason.
func checkDiffs(t interface{ Fatalf(string, ...any) }, name, text string, devices int, m spec.Model, reasons map[string]string) (diffs, changes int) {
	r, err := Read(name, []byte(text), Options{})
	if err != nil {
		t.Fatalf("%s: %v\n%s", name, err, text)
	}
	if n, ok := r.Number(Devices); ok {
		devices = n
	}
	if own, _, ok := r.Network(50304); ok {
		m = own
	}
	r.SetLayers(m.Layers)
	plan, _, err := r.Plan(devices)
	if err != nil || plan.Check(m) != nil {
		return 0, 0
	}
	from := onH100(m, plan, max(r.Samples(), 2048))
	changed := planner.SingleChanges(plan, &planner.Request{Model: m, Accelerator: from.Accelerator})
	for _, f := range []spec.Precision{spec.BF16, spec.FP16} { // as on devices without fp8 or bf16
		ported := plan
		ported.Precision = f
		if plan.Precision != "" && plan.Precision != f {
			changed = append(changed, planner.SingleChange{Name: "precision=" + string(f), Plan: ported})
		}
	}
	for _, change := range changed {
		to := from
		to.Plan = change.Plan
		to.Plan.SequenceParallel = to.Plan.SequenceParallel || r.ImpliesSP() && to.Plan.TP > 1
		changes++
		diff, why := r.Diff(from, to, Options{})
		if (diff == "") != (why != "") {
			t.Fatalf("%s: %s: diff %q and reason %q", name, change.Name, diff, why)
		}
		if why != "" {
			reasons[r.Format+": "+change.Name+": "+why] = name
			continue
		}
		edited := patched(t, text, diff)
		again, err := Read(name, []byte(edited), Options{})
		if err != nil {
			t.Fatalf("%s: %s: %v\n%s", name, change.Name, err, diff)
		}
		again.SetLayers(m.Layers)
		got, _, err := again.Plan(devices)
		if err != nil || again.Format != r.Format || !samePlan(got, to.Plan) {
			t.Fatalf("%s: %s: the edited file of %s says %s, want %s; %v\n%s", name, change.Name, again.Format, got, to.Plan, err, diff)
		}
		if len(again.Problems) > len(r.Problems) {
			t.Fatalf("%s: %s: new problems %v\n%s", name, change.Name, again.Problems, diff)
		}
		diffs++
	}
	return diffs, changes
}

// Every change of a published file has a diff that gives its plan, or a reason.
func TestDiffsOfPublishedFiles(t *testing.T) {
	dir, rows := published(t)
	reasons, diffs, changes := map[string]string{}, map[string]int{}, map[string]int{}
	for _, row := range rows[1:] {
		text, err := os.ReadFile(filepath.Join(dir, row[0]))
		if err != nil {
			t.Fatal(err)
		}
		d, c := checkDiffs(t, row[0], string(text), 64, networks[0], reasons)
		diffs[row[1]], changes[row[1]] = diffs[row[1]]+d, changes[row[1]]+c
	}
	for format, n := range changes {
		t.Logf("%s: %d of %d changes have a diff", format, diffs[format], n)
	}
	for why, name := range reasons {
		t.Logf("%s (%s)", why, name)
	}
	// Most other changes are of parts that the format has no key for.
	for format, least := range map[string]int{"megatron": 118, "nemo": 76, "deepspeed": 84, "torchtitan": 86, "axolotl": 88, "maxtext": 128, "trainer": 64, "accelerate": 38, "automodel": 15} {
		if diffs[format] < least {
			t.Errorf("%s: %d changes have a diff, want at least %d", format, diffs[format], least)
		}
	}
}

// drawn are the values of a file of TestDiffsOfAnyFile.
type drawn struct{ tp, pp, mb, ga, dp, zero, global int }

// files are launch files of each format, in the ways in which people write them.
var files = []struct {
	name, format string
	text         func(d drawn, yes bool) string
}{
	{"a.sh", "megatron", func(d drawn, yes bool) string {
		return fmt.Sprintf("#!/bin/bash\nTP=%d # tensor\nPP=${PP:-%d}\nMICRO=%d\nGPUS=%d\nARGS=\"--num-layers 32 --hidden-size 4096 --num-attention-heads 32 --seq-length 4096 \\\n  --tensor-model-parallel-size $TP --save ckpt-%d\"\nMORE=(\n  --pipeline-model-parallel-size ${PP}\n  --micro-batch-size $MICRO\n  --global-batch-size %d %s\n  --bf16\n)\ntorchrun --nproc-per-node $GPUS pretrain_gpt.py $ARGS ${MORE[@]}\n",
			d.tp, d.pp, d.mb, d.dp*d.tp*d.pp, d.tp, d.global, flagIf(yes, "--use-distributed-optimizer"))
	}},
	{"b.sh", "megatron", func(d drawn, yes bool) string {
		return fmt.Sprintf("deepspeed --num-gpus %d pretrain_gpt.py --num-layers 24 --hidden-size 2048 --num-attention-heads 16 --seq-length 2048 --micro-batch-size=%d --global-batch-size %d --tensor-model-parallel-size %d --zero-stage %d --fp16 %s --deepspeed\n",
			d.dp*d.tp, d.mb, d.dp*d.mb*d.ga, d.tp, d.zero%2, flagIf(yes, "--checkpoint-activations"))
	}},
	{"m.yaml", "megatron", func(d drawn, yes bool) string {
		return fmt.Sprintf("MODEL_ARGS:\n  --num-layers: 32\n  --hidden-size: 4096\n  --num-attention-heads: 32\n  --seq-length: 4096\n  --micro-batch-size: %d\n  --global-batch-size: %d\n  --tensor-model-parallel-size: %d\n  --pipeline-model-parallel-size: %d\n  --use-distributed-optimizer: %v\n  --sequence-parallel: false\n  --bf16: true\n", d.mb, d.global, d.tp, d.pp, yes)
	}},
	{"d.json", "deepspeed", func(d drawn, yes bool) string {
		offload := ""
		if yes && d.zero > 0 {
			offload = ",\n    \"offload_optimizer\": {\"device\": \"cpu\", \"pin_memory\": true}"
		}
		return fmt.Sprintf("{\n  \"train_micro_batch_size_per_gpu\": %d, \"gradient_accumulation_steps\": %d,\n  \"bf16\": {\"enabled\": true},\n  \"zero_optimization\": {\n    \"stage\": %d%s\n  }\n}\n", d.mb, d.ga, d.zero, offload)
	}},
	{"n.yaml", "nemo", func(d drawn, yes bool) string {
		return fmt.Sprintf("trainer:\n  num_nodes: %d\n  devices: %d\n  precision: bf16\nmodel:\n  mcore_gpt: %v\n  num_layers: 32\n  hidden_size: 4096\n  ffn_hidden_size: ${multiply:4, ${.hidden_size}}\n  num_attention_heads: 32\n  encoder_seq_length: 4096\n  micro_batch_size: %d # per replica\n  global_batch_size: %d\n  tensor_model_parallel_size: %d\n  pipeline_model_parallel_size: %d\n  virtual_pipeline_model_parallel_size: null\n  activations_checkpoint_granularity:\n  optim:\n    name: fused_adam\n",
			d.dp, d.tp*d.pp, yes, d.mb, d.global, d.tp, d.pp)
	}},
	{"n2.yaml", "nemo", func(d drawn, yes bool) string {
		return fmt.Sprintf("_target_: nemo.collections.llm.api.pretrain\nmodel:\n  config:\n    _target_: nemo.collections.llm.gpt.model.llama.Llama31Config8B\n    seq_length: 8192\ntrainer:\n  devices: %d\n  num_nodes: 1\n  strategy:\n    tensor_model_parallel_size: %d\n    pipeline_model_parallel_size: %d\n    sequence_parallel: false\n  plugins:\n    precision: bf16-mixed\ndata:\n  global_batch_size: %d\n  micro_batch_size: %d\noptim:\n  config:\n    use_distributed_optimizer: %v\n",
			d.dp*d.tp*d.pp, d.tp, d.pp, d.global, d.mb, yes)
	}},
	{"br.yaml", "nemo", func(d drawn, yes bool) string {
		return fmt.Sprintf("model:\n  tensor_model_parallel_size: %d\n  pipeline_model_parallel_size: 1\n  sequence_parallel: %v\n  seq_length: 4096\ntrain:\n  global_batch_size: %d\n  micro_batch_size: %d\nddp:\n  use_distributed_optimizer: true\nmixed_precision: bf16_mixed\n", d.tp, yes, 16*d.mb*d.ga, d.mb)
	}},
	{"a.yaml", "automodel", func(d drawn, yes bool) string {
		return fmt.Sprintf("recipe: TrainFinetuneRecipeForNextTokenPrediction\nstep_scheduler:\n  global_batch_size: %d\n  local_batch_size: %d\nmodel:\n  pretrained_model_name_or_path: meta-llama/Llama-3.1-8B\n  torch_dtype: bf16\ndistributed:\n  strategy: fsdp2\n  dp_size: none\n  tp_size: %d\n  activation_checkpointing: %v\n", d.dp*d.mb*d.ga, d.mb, d.tp, yes)
	}},
	{"x.yml", "axolotl", func(d drawn, yes bool) string {
		return fmt.Sprintf("base_model: meta-llama/Llama-3.1-8B\nsequence_len: 4096\nmicro_batch_size: %d\ngradient_accumulation_steps: %d\ngradient_checkpointing: %v\nbf16: auto\ndatasets:\n  - path: x\n    type: alpaca\n%s", d.mb, d.ga, yes,
			map[bool]string{true: "fsdp_version: 2\nfsdp_config:\n  offload_params: false\n  reshard_after_forward: " + fmt.Sprint(d.zero == 3) + "\n", false: "deepspeed:\n"}[d.zero > 1])
	}},
	{"t.yaml", "trainer", func(d drawn, yes bool) string {
		return fmt.Sprintf("model_name_or_path: Qwen/Qwen2.5-7B\nstage: sft\nfinetuning_type: full\ncutoff_len: 4096\nper_device_train_batch_size: %d\ngradient_accumulation_steps: %d\ngradient_checkpointing: %v\nbf16: true", d.mb, d.ga, yes)
	}},
	{"h.sh", "trainer", func(d drawn, yes bool) string {
		return fmt.Sprintf("MBS=%d\nGA=${GA:-%d}\ntorchrun --nproc_per_node=%d train.py --model_name_or_path Qwen/Qwen2.5-7B --gradient_accumulation_steps $GA \\\n  --per_device_train_batch_size ${MBS} --max_length 4096 --gradient_checkpointing %v --bf16 %s\n", d.mb, d.ga, 2*d.dp, yes,
			map[bool]string{true: "--fsdp \"full_shard auto_wrap\"", false: ""}[d.zero == 3])
	}},
	{"f.yaml", "accelerate", func(d drawn, yes bool) string {
		return fmt.Sprintf("compute_environment: LOCAL_MACHINE\ndistributed_type: FSDP\nfsdp_config:\n  fsdp_version: 2\n  fsdp_offload_params: %v\n  fsdp_reshard_after_forward: true\nmixed_precision: 'bf16'\nnum_machines: 1\nnum_processes: %d\n", yes, 2*d.dp)
	}},
	{"e.yaml", "accelerate", func(d drawn, yes bool) string {
		return fmt.Sprintf("distributed_type: DEEPSPEED\ndeepspeed_config: {zero_stage: %d, gradient_accumulation_steps: %d}\nmixed_precision: bf16\nnum_machines: 1\nnum_processes: %d\n", d.zero, d.ga, 2*d.dp)
	}},
	{"g.yaml", "accelerate", func(d drawn, yes bool) string {
		return fmt.Sprintf("distributed_type: MULTI_GPU\nmixed_precision: bf16\nnum_machines: 1\nnum_processes: %d", 2*d.dp)
	}},
	{"x.sh", "maxtext", func(d drawn, yes bool) string {
		return fmt.Sprintf("python3 -m MaxText.train base.yml model_name=llama3-8b per_device_batch_size=%d \\\n  ici_fsdp_parallelism=-1 max_target_length=4096 steps=10 remat_policy=%s\n", d.mb, map[bool]string{true: "full", false: "none"}[yes])
	}},
}

func flagIf(yes bool, flag string) string {
	if yes {
		return flag
	}
	return ""
}

// Applying the diff of a change to a file of any format, and reading it back, gives exactly the changed plan.
func TestDiffsOfAnyFile(t *testing.T) {
	spectest.Checks(t, 30)
	diffs, reasons := map[string]int{}, map[string]string{}
	rapid.Check(t, func(t *rapid.T) {
		of := func(name string, values ...int) int { return rapid.SampledFrom(values).Draw(t, name) }
		d := drawn{tp: of("tp", 1, 2, 4), pp: of("pp", 1, 2, 4), mb: of("mb", 1, 2, 4), ga: of("ga", 1, 2, 8), dp: of("dp", 1, 2, 4), zero: of("zero", 0, 1, 2, 3)}
		d.global = d.dp * d.mb * d.ga * d.pp
		yes := rapid.Bool().Draw(t, "yes")
		for _, f := range files {
			n, _ := checkDiffs(t, f.name, f.text(d, yes), 16, networks[0], reasons)
			diffs[f.format+" "+f.name] += n
		}
	})
	for _, f := range files {
		if diffs[f.format+" "+f.name] == 0 && !testing.Short() {
			t.Errorf("%s: no diff of %s", f.format, f.name)
		}
	}
	t.Logf("diffs: %v", diffs)
	for why, name := range reasons {
		t.Logf("%s (%s)", why, name)
	}
}

// Whole layers are recomputed by a method that Megatron Core demands, and refuses with anything else.
func TestNeMoRecomputes(t *testing.T) {
	file := func(granularity, method, layers string) string {
		return "  activations_checkpoint_granularity: " + granularity + "\n  activations_checkpoint_method: " + method + "\n  activations_checkpoint_num_layers: " + layers + "\n"
	}
	whole := file("full", "uniform", "1")
	for _, c := range []struct {
		from string
		to   spec.Recompute
		want string
	}{
		{file("null", "null", "null"), spec.RecomputeFull, whole},
		{file("full", "block", "4"), spec.RecomputeSelective, file("selective", "null", "null")},
		{whole, spec.RecomputeNone, file("null", "null", "null")},
	} {
		head := "trainer:\n  devices: 8\n  precision: bf16\nmodel:\n  mcore_gpt: true\n  num_layers: 32\n  hidden_size: 4096\n  num_attention_heads: 32\n  encoder_seq_length: 4096\n  micro_batch_size: 1\n  global_batch_size: 64\n"
		got, why := edited(t, "nemo.yaml", head+c.from, func(p *spec.Plan) { p.Recompute = c.to })
		if got != head+c.want {
			t.Errorf("%s to %s:\n%s%s", c.from, c.to, got, why)
		}
	}
}
