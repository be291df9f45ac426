package recipe

import (
	"strings"
	"testing"

	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// What a framework does with keys that are absent, out of use, within another key or twice is what its own code does.
func TestAsTheFrameworkReadsIt(t *testing.T) {
	const (
		args    = "torchrun --nproc_per_node 8 train.py --model_name_or_path a/b --per_device_train_batch_size 4 --bf16 --max_seq_length 2048 --gradient_accumulation_steps 1 "
		core    = "torchrun --nproc_per_node 8 pretrain_gpt.py --num-layers 32 --hidden-size 1024 --num-attention-heads 8 --seq-length 512 --vocab-size 1000 --micro-batch-size 1 --global-batch-size 8 "
		plugins = "deepspeed_config:\n  zero_stage: 3\n  offload_optimizer_device: cpu\nfsdp_config:\n  fsdp_reshard_after_forward: true\n  fsdp_offload_params: true\n  fsdp_activation_checkpointing: true\nmixed_precision: bf16\nnum_machines: 1\nnum_processes: 8\n"
		titan   = "[model]\nname = \"llama3\"\nflavor = \"8B\"\n"
		axolotl = "base_model: a/b\nsequence_len: 4096\nbf16: true\n"
		factory = "model_name_or_path: a/b\nstage: sft\ncutoff_len: 2048\nper_device_train_batch_size: 1\nbf16: true\n"
		peft    = "model_name_or_path: a/b\nper_device_train_batch_size: 2\nbf16: true\nlora_r: 16\n"
		batch   = "\"train_batch_size\": 64, \"train_micro_batch_size_per_gpu\": 2, "
	)
	for name, c := range map[string]struct {
		file, text, plan string // of 8 devices
		adapter          string
		said, problem    string // part of what is assumed, and of the problems
	}{
		"adapters that are off":             {file: "a.yaml", text: peft + "use_peft: false\n", plan: "dp=8,mb=2,precision=bf16", said: "gradient_checkpointing is not in the file"},
		"adapters that are on":              {file: "a.yaml", text: peft + "use_peft: true\n", plan: "dp=8,mb=2,precision=bf16", adapter: "lora:16"},
		"adapters by default":               {file: "a.yaml", text: factory, plan: "dp=8,mb=1,recompute=full,precision=bf16", adapter: "lora:8:qkv+o+mlp", said: "lora of rank 8"},
		"no adapters by word":               {file: "a.yaml", text: factory + "finetuning_type: full\n", plan: "dp=8,mb=1,recompute=full,precision=bf16"},
		"samples of a device and step":      {file: "a.yaml", text: axolotl + "batch_size: 32\nmicro_batch_size: 4\n", plan: "dp=8,mb=4,ga=8,precision=bf16"},
		"samples and steps":                 {file: "a.yaml", text: axolotl + "batch_size: 32\nmicro_batch_size: 4\ngradient_accumulation_steps: 2\n", plan: "dp=8,mb=4,ga=2,precision=bf16", problem: "axolotl takes one of them"},
		"plugins out of use":                {file: "a.yaml", text: "distributed_type: MULTI_GPU\n" + plugins, plan: "dp=8,precision=bf16"},
		"the plugin of DeepSpeed":           {file: "a.yaml", text: "distributed_type: DEEPSPEED\n" + plugins, plan: "dp=8,zero=3,offload=optimizer,precision=bf16"},
		"the plugin of FSDP":                {file: "a.yaml", text: "distributed_type: FSDP\n" + plugins, plan: "dp=8,zero=3,offload=params,recompute=full,precision=bf16"},
		"a stage by default":                {file: "a.yaml", text: "distributed_type: DEEPSPEED\ndeepspeed_config: {}\nmixed_precision: bf16\nnum_processes: 8\n", plan: "dp=8,zero=2,precision=bf16", said: "zero=2"},
		"a stage by default in arguments":   {file: "a.sh", text: "accelerate launch --use_deepspeed --num_processes 8 " + args[strings.Index(args, "train.py"):], plan: "dp=8,mb=4,zero=2,precision=bf16", said: "zero=2"},
		"settings of FSDP in arguments":     {file: "a.sh", text: args + `--fsdp "shard_grad_op auto_wrap" --fsdp_config '{"fsdp_activation_checkpointing": true}'`, plan: "dp=8,mb=4,zero=2,recompute=full,precision=bf16"},
		"settings of FSDP in a file":        {file: "a.sh", text: "echo '{\"activation_checkpointing\": true}' >f.json\n" + args + `--fsdp full_shard --fsdp_config f.json`, plan: "dp=8,mb=4,zero=3,recompute=full,precision=bf16"},
		"DeepSpeed in arguments":            {file: "a.sh", text: args + `--deepspeed '{"zero_optimization": {"stage": 2}, "bf16": {"enabled": "auto"}}'`, plan: "dp=8,mb=4,zero=2,precision=bf16"},
		"DeepSpeed within JSON":             {file: "a.json", text: `{"model_name_or_path": "a/b", "bf16": true, "per_device_train_batch_size": 1, "deepspeed": {"zero_optimization": {"stage": 3, "offload_param": {"device": "cpu"}}}}`, plan: "dp=8,zero=3,offload=params,precision=bf16"},
		"DeepSpeed within YAML":             {file: "a.yaml", text: axolotl + "micro_batch_size: 1\ndeepspeed:\n  zero_optimization:\n    stage: 1\n  bf16:\n    enabled: true\n", plan: "dp=8,zero=1,precision=bf16"},
		"an option with nothing":            {file: "a.sh", text: args + `--deepspeed "" --gradient_accumulation_steps "$STEPS"`, plan: "dp=8,mb=4,precision=bf16", problem: "gradient_accumulation_steps has no value"},
		"parameters below stage 3":          {file: "a.json", text: "{" + batch + `"bf16": {"enabled": true}, "zero_optimization": {"stage": 2, "offload_optimizer": {"device": "cpu"}, "offload_param": {"device": "cpu"}}}`, plan: "dp=8,mb=2,ga=4,zero=2,offload=optimizer,precision=bf16", said: "stage 3 only"},
		"no number format of DeepSpeed":     {file: "a.json", text: "{" + batch + `"zero_optimization": {"stage": 1}}`, plan: "dp=8,mb=2,ga=4,zero=1,precision=fp32", said: "32 bits"},
		"an open number format":             {file: "a.json", text: "{" + batch + `"bf16": {"enabled": "auto"}, "zero_optimization": {"stage": 1}}`, plan: "dp=8,mb=2,ga=4,zero=1", said: "number format"},
		"two number formats":                {file: "a.json", text: "{" + batch + `"bf16": {"enabled": true}, "fp16": {"enabled": true}}`, plan: "dp=8,mb=2,ga=4,precision=bf16", problem: "bf16.enabled and fp16.enabled"},
		"no number format of Megatron-LM":   {file: "a.sh", text: core, plan: "dp=8,precision=fp32", said: "32 bits"},
		"two number formats in arguments":   {file: "a.sh", text: core + "--bf16 --fp16", plan: "dp=8,precision=fp16", problem: "--bf16 and --fp16"},
		"two words for recomputation":       {file: "a.sh", text: core + "--bf16 --recompute-activations --recompute-granularity full", plan: "dp=8,recompute=selective,precision=bf16"},
		"few layers recompute":              {file: "a.sh", text: core + "--bf16 --recompute-granularity full --recompute-method block --recompute-num-layers 4", plan: "dp=8,precision=bf16", said: "4 of the 32 layers"},
		"most layers recompute":             {file: "a.sh", text: core + "--bf16 --recompute-granularity full --recompute-method block --recompute-num-layers 30", plan: "dp=8,recompute=full,precision=bf16", said: "30 of the 32 layers"},
		"torchtitan's defaults":             {file: "a.toml", text: titan + "[optimizer]\nlr = 1e-4\n", plan: "dp=8,mb=8,zero=3,recompute=selective", said: "local_batch_size=8"},
		"a pipeline's batch on fewer":       {file: "a.toml", text: titan + "[training]\nlocal_batch_size = 16\n[parallelism]\ndata_parallel_shard_degree = 4\npipeline_parallel_degree = 4\npipeline_parallel_schedule = \"1F1B\"\n", plan: "dp=2,pp=4,mb=1,ga=16,zero=1,recompute=selective"},
		"a variable of the environment":     {file: "a.yaml", text: "trainer:\n  devices: 8\n  num_nodes: ${oc.env:NODES,1}\n  precision: bf16\nmodel:\n  micro_batch_size: 1\n  global_batch_size: 16\n  num_layers: 2\n", plan: "dp=8,mb=1,ga=2,precision=bf16"},
		"a byte order mark":                 {file: "a.yaml", text: "\ufeff" + peft, plan: "dp=8,mb=2,precision=bf16", adapter: "lora:16"},
		"degrees of Accelerate's arguments": {file: "a.sh", text: "accelerate launch --use_fsdp --num_processes 8 --parallelism_config_tp_size 2 " + args[strings.Index(args, "train.py"):], plan: "dp=4,tp=2,mb=4,zero=3,precision=bf16"},
	} {
		r, err := Read(c.file, []byte(c.text), Options{})
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		want, err := spec.ParsePlan(c.plan)
		if err != nil {
			t.Fatal(err)
		}
		got, notes, err := r.Plan(8)
		if err != nil || got != want.Normal() {
			t.Errorf("%s: plan %s, %v, want %s", name, got, err, want)
		}
		if got := r.AdapterText(); got != c.adapter {
			t.Errorf("%s: adapter %q, want %q", name, got, c.adapter)
		}
		if said := strings.Join(append(notes, r.Assumed...), "; "); !strings.Contains(said, c.said) {
			t.Errorf("%s: %q is not in what is assumed: %s", name, c.said, said)
		}
		if problems := strings.Join(r.Problems, "; "); (problems == "") != (c.problem == "") || !strings.Contains(problems, c.problem) {
			t.Errorf("%s: problems %q, want %q", name, problems, c.problem)
		}
		if strings.Contains(strings.Join(r.Unknown, " "), "deepspeed") {
			t.Errorf("%s: not known: %v", name, r.Unknown)
		}
		for _, u := range r.Uncounted {
			if strings.Contains(u.Why, "another file") {
				t.Errorf("%s: %s=%s is said to be in another file", name, u.Key, u.Value)
			}
		}
	}
}

// Malformed JSON is refused with its line, as are keys that stand twice and YAML that would take its parser long.
func TestRefusedWithTheirPlace(t *testing.T) {
	for _, c := range [][3]string{
		{"a.json", "{\n\"train_batch_size\": 8,\n\"bf16\" {}\n}", "a.json:3: malformed JSON"},
		{"a.json", "{\n\"train_batch_size\": 8,\n", "a.json:2: malformed JSON: unexpected EOF"},
		{"a.json", "{\n\"fp16\": {\"enabled\": true,\n\"enabled\": false}}", `a.json:3: malformed JSON: key "fp16.enabled" stands twice`},
		{"a.yaml", "model_name_or_path: a/b\n" + strings.Repeat("k: v\n", 1<<15), "more than 4096 keys"},
	} {
		if _, err := Read(c[0], []byte(c[1]), Options{}); err == nil || !strings.Contains(err.Error(), c[2]) {
			t.Errorf("%.40q: %v, want %q", c[1], err, c[2])
		}
	}
}

// Megatron and NeMo split each expert over all tensor parallel ranks unless a file says otherwise, torchtitan over none.
func TestExpertTensorParallel(t *testing.T) {
	const core = "torchrun --nproc_per_node 8 pretrain_gpt.py --num-layers 4 --hidden-size 1024 --num-attention-heads 8 --seq-length 512 --vocab-size 1000 --micro-batch-size 1 --global-batch-size 8 --num-experts 8 "
	const nemo = "model:\n  tensor_model_parallel_size: 4\n  expert_model_parallel_size: 8\n  num_moe_experts: 8\n  num_layers: 4\n  hidden_size: 1024\ntrainer:\n  devices: 8\n"
	const titan = "[model]\nname = \"llama4\"\nflavor = \"17bx16e\"\n[parallelism]\ntensor_parallel_degree = 2\nexpert_parallel_degree = 8\n"
	for name, c := range map[string]struct {
		file, text, want string
	}{
		"by default":               {"a.sh", core + "--tensor-model-parallel-size 4 --expert-model-parallel-size 8", "over 4 tensor parallel ranks, and predicted over 1"},
		"as plans have it":         {"a.sh", core + "--tensor-model-parallel-size 4 --expert-model-parallel-size 8 --expert-tensor-parallel-size 1", ""},
		"few experts":              {"a.sh", core + "--tensor-model-parallel-size 4 --expert-model-parallel-size 2 --expert-tensor-parallel-size 2", ""},
		"a degree of 0":            {"a.sh", core + "--tensor-model-parallel-size 4 --expert-model-parallel-size 0", ""},
		"no expert parallelism":    {"a.sh", core + "--tensor-model-parallel-size 4", ""},
		"no tensor parallelism":    {"a.sh", core + "--expert-model-parallel-size 8", ""},
		"by default in NeMo":       {"a.yaml", nemo, "over 4 tensor parallel ranks, and predicted over 1"},
		"as plans have it, NeMo":   {"a.yaml", nemo + "  strategy:\n    expert_tensor_parallel_size: 1\n", ""},
		"by default in torchtitan": {"a.toml", titan, ""},
		"by a setting, torchtitan": {"a.toml", titan + "expert_tensor_parallel_degree = 2\n", "over 2 tensor parallel ranks, and predicted over 1"},
		"none by a setting there":  {"a.toml", titan + "expert_tensor_parallel_degree = 1\n", ""},
	} {
		r, err := Read(c.file, []byte(c.text), Options{})
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		got := ""
		for _, u := range r.Uncounted {
			if strings.Contains(u.Key, "expert") {
				got = u.Why
			}
		}
		if !strings.HasSuffix(got, c.want) || (got == "") != (c.want == "") {
			t.Errorf("%s: not counted: %v, want %q", name, r.Uncounted, c.want)
		}
	}
}
