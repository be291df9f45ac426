package recipe

import (
	"math"
	"strings"
	"testing"

	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// Files as people write them for forks, newer releases and networks other than a plain decoder.
func TestOtherFiles(t *testing.T) {
	for _, tc := range []struct {
		name, text string
		want       map[Field]any
		params     float64 // of the network, in 10⁹; 0 = none
		kind       spec.Kind
		uncounted  string // a key among those that are not counted
	}{
		{name: "mindspeed.sh", text: "torchrun --nproc_per_node 8 pretrain_gpt.py --num-layers 10 --hidden-size 1024 --num-attention-heads 8 --ffn-hidden-size 4096 --swiglu --seq-length 2048 --vocab-size 32000 " +
			"--untie-embeddings-and-output-weights --num-experts 16 --moe-intermediate-size 512 --n-shared-experts 2 --first-k-dense-replace 1 --moe-router-topk 4 --micro-batch-size 1 --global-batch-size 8 --bf16",
			want: map[Field]any{ExpertFFN: 512, DP: 8, Experts: 16}, params: 0.3752, kind: spec.Decoder},
		{name: "layout.yaml", text: "MODEL_ARGS:\n  --num-layers: 14\n  --hidden-size: 512\n  --num-attention-heads: 8\n  --pipeline-model-parallel-size: 4\n  --pipeline-model-parallel-layout: Et*2|(tt|)*5t|tmL\n  --micro-batch-size: 1\n",
			want: map[Field]any{VPP: 2}},
		{name: "hybrid.sh", text: "torchrun --nproc_per_node 8 pretrain_mamba.py --num-layers 56 --hidden-size 4096 --num-attention-heads 32 --group-query-attention --num-query-groups 8 --hybrid-attention-ratio 0.08 --hybrid-mlp-ratio 0.5 " +
			"--seq-length 4096 --vocab-size 256000 --untie-embeddings-and-output-weights --micro-batch-size 4 --global-batch-size 32 --bf16", params: 8.653, kind: spec.Decoder},
		{name: "heads.sh", text: "torchrun --nproc_per_node 8 pretrain_gpt.py --num-layers 2 --hidden-size 1024 --num-attention-heads 16 --num-query-groups 2 --seq-length 128 --vocab-size 1000 --micro-batch-size 1 --global-batch-size 8 --bf16",
			params: 0.0262, kind: spec.Decoder},
		{name: "pattern.sh", text: "torchrun --nproc_per_node 8 pretrain_mamba.py --hybrid-layer-pattern 'M-M-|M*-/*-' --hidden-size 1024 --num-attention-heads 8 --mamba-num-heads 32 --mamba-head-dim 64 --mamba-state-dim 64 --mamba-num-groups 4 " +
			"--seq-length 1024 --vocab-size 1000 --micro-batch-size 1 --global-batch-size 8", params: 0.0509, kind: spec.Decoder},
		{name: "t5.sh", text: "torchrun --nproc_per_node 8 pretrain_t5.py --encoder-num-layers 12 --decoder-num-layers 12 --hidden-size 768 --num-attention-heads 12 --kv-channels 64 --ffn-hidden-size 3072 --encoder-seq-length 512 " +
			"--decoder-seq-length 128 --vocab-size 30000 --micro-batch-size 4 --global-batch-size 32 --bf16", params: 0.2212, kind: spec.EncoderDecoder},
		{name: "bert.yaml", text: "name: megatron_bert\ntrainer:\n  devices: 8\n  num_nodes: 2\nmodel:\n  micro_batch_size: 4\n  global_batch_size: 64\n  num_layers: 4\n  hidden_size: 512\n  num_attention_heads: 8\n  encoder_seq_length: 512\n  vocab_size: 1000\n",
			want: map[Field]any{DP: 16, GradAccum: 1}, params: 0.0131, kind: spec.Encoder},
		{name: "ds.sh", text: "N=2\ncat <<EOT > ds.json\n{ \"train_micro_batch_size_per_gpu\": $N, \"gradient_accumulation_steps\": 1, \"train_batch_size\": 16, \"zero_optimization\": { \"stage\": 2 } }\nEOT\n" +
			"deepspeed pretrain_gpt.py --num-layers 4 --hidden-size 256 --num-attention-heads 4 --seq-length 128 --batch-size $N --checkpoint-in-cpu --deepspeed_config ds.json --deepspeed",
			want: map[Field]any{MicroBatch: 2, DP: 8, Devices: 8, ZeRO: 2}, uncounted: "--checkpoint-in-cpu"},
		{name: "commented.json", text: "{\n  // stage\n  \"zero_optimization\": { \"stage\": 3, /* all */ \"offload_param\": { \"device\": \"nvme\", \"nvme_path\": \"/a//b\" }, }, # end\n  \"train_batch_size\": 32,\n}",
			want: map[Field]any{ZeRO: 3, GlobalBatch: 32, Offload: "params(nvme)"}},
		{name: "ulysses.json", text: `{"zero_optimization": {"stage": 3}, "sequence_parallel": {"enabled": true, "size": 4}, "expert_parallel": {"enabled": true, "autoep_size": 8}, "optimizer": {"type": "OneBitAdam"}}`,
			want: map[Field]any{CP: 4, EP: 8}, uncounted: "optimizer"},
		{name: "lf.yaml", text: "model_name_or_path: a/b\nstage: sft\ncutoff_len: 1024\nfinetuning_type: full\nper_device_train_batch_size: 2\n", want: map[Field]any{Recompute: "full"}},
		{name: "lf2.yaml", text: "model_name_or_path: a/b\nstage: sft\ncutoff_len: 1024\ndisable_gradient_checkpointing: true\npure_bf16: true\n", want: map[Field]any{Recompute: "none", Precision: "bf16"}, uncounted: "pure_bf16"},
		{name: "ax.yaml", text: "base_model: a/b-GPTQ\ngptq: true\nadapter: lora\nlora_r: 8\nsequence_len: 512\nmicro_batch_size: 1\noptimizer: adamw_bnb_8bit\n", want: map[Field]any{Bits: 4}, uncounted: "optimizer"},
		{name: "titan.toml", text: "[model]\nname = \"llama3\"\nflavor = \"8B\"\n[training]\nlocal_batch_size = 1\nseq_len = 4096\ndtype = \"bfloat16\"\n[compile]\nenable = false\ncomponents = [\"loss\"]\n", uncounted: "training.dtype"},
		{name: "old.toml", text: "[model]\nname = \"llama\"\nflavor = \"13B\"\n[training]\nbatch_size = 8\nseq_len = 4096\ntensor_parallel_degree = 8\npipeline_parallel_degree = 2\nfp8_linear = \"dynamic\"\n", want: map[Field]any{PP: 2, Precision: "fp8"}},
		{name: "copies.sh", text: "python MaxText/train.py MaxText/configs/base.yml run_name=a dcn_data_parallelism=4 ici_fsdp_parallelism=8 per_device_batch_size=4 max_target_length=4096 model_name=llama2-7b remat_policy=full",
			want: map[Field]any{DP: 32, Shard: 8, ZeRO: 3}},
		{name: "states.sh", text: "python MaxText/train.py MaxText/configs/base.yml run_name=a ici_data_parallelism=-1 ici_fsdp_parallelism=1 ici_tensor_sequence_parallelism=4 shard_optimizer_over_data=True optimizer_memory_host_offload=true parameter_memory_host_offload=false model_name=llama2-7b",
			want: map[Field]any{TP: 4, SP: 1, ZeRO: 1, Offload: "optimizer"}},
		{name: "host.sh", text: "python MaxText/train.py MaxText/configs/base.yml run_name=a ici_fsdp_parallelism=-1 shard_optimizer_over_data=True optimizer_memory_host_offload=true parameter_memory_host_offload=true param_scan_axis=0 model_name=llama2-7b",
			want: map[Field]any{ZeRO: 3, Offload: "optimizer+params"}},
		{name: "scaled.sh", text: "python3 MaxText/train.py MaxText/configs/base.yml run_name=a global_parameter_scale=16 per_device_batch_size=2 remat_policy=full", want: map[Field]any{Layers: 16, Hidden: 2048}, params: 15.83, kind: spec.Decoder},
		{name: "nemo2.yaml", text: "_target_: nemo.collections.llm.api.pretrain\nmodel:\n  config:\n    _target_: nemo.collections.llm.gpt.model.llama.Llama31Config8B\n    seq_length: 8192\ntrainer:\n  devices: 8\n  num_nodes: 2\n  strategy:\n    tensor_model_parallel_size: 2\n    context_parallel_size: 2\n  plugins:\n    precision: bf16-mixed\n    fp8: hybrid\ndata:\n  global_batch_size: 64\n  micro_batch_size: 1\noptim:\n  config:\n    use_distributed_optimizer: true\n",
			want: map[Field]any{ModelName: "Llama3.1-8B", TP: 2, CP: 2, DP: 4, GradAccum: 16, ZeRO: 1, Precision: "fp8", SeqLen: 8192}},
		{name: "provider.yaml", text: "model:\n  _target_: megatron.bridge.models.llama.llama_provider.Llama31ModelProvider70B\n  tensor_model_parallel_size: 4\n  seq_length: 8192\ntrain:\n  global_batch_size: 128\n  micro_batch_size: 1\n",
			want: map[Field]any{ModelName: "Llama3.1-70B", TP: 4, SeqLen: 8192}},
		{name: "method.sh", text: "torchrun --nproc_per_node 8 pretrain_gpt.py --num-layers 4 --hidden-size 256 --num-attention-heads 4 --seq-length 128 --micro-batch-size 1 --global-batch-size 8 --activations-checkpoint-method uniform",
			want: map[Field]any{Recompute: "full"}},
		{name: "interleaved.toml", text: "[model]\nname = \"llama3\"\nflavor = \"8B\"\n[training]\nlocal_batch_size = 8\nseq_len = 4096\n[parallelism]\npipeline_parallel_degree = 4\npipeline_parallel_schedule = \"Interleaved1F1B\"\n", want: map[Field]any{PP: 4, VPP: 2}},
		{name: "zb.toml", text: "[model]\nname = \"llama3\"\nflavor = \"8B\"\n[training]\nlocal_batch_size = 8\nseq_len = 4096\n[parallelism]\npipeline_parallel_degree = 4\npipeline_parallel_schedule = \"InterleavedZeroBubble\"\n", want: map[Field]any{PP: 4, VPP: nil, Schedule: "zb-h1"}},
		{name: "unused.yaml", text: "ddp:\n  use_distributed_optimizer: true\n  data_parallel_sharding_strategy: optim_grads_params\nmodel:\n  tensor_model_parallel_size: 1\n  seq_length: 4096\ntrain:\n  global_batch_size: 128\n  micro_batch_size: 2\n", want: map[Field]any{ZeRO: 1}},
		{name: "saved.yaml", text: "ddp:\n  use_distributed_optimizer: true\n  use_megatron_fsdp: true\n  data_parallel_sharding_strategy: optim_grads_params\nmodel:\n  tensor_model_parallel_size: 1\n  seq_length: 4096\n  recompute_granularity: full\n  recompute_method: uniform\ntrain:\n  global_batch_size: 128\n  micro_batch_size: 2\n",
			want: map[Field]any{ZeRO: 3, Recompute: "full"}, uncounted: "model.recompute_method"},
		{name: "bridge.yaml", text: "model:\n  tensor_model_parallel_size: 2\n  seq_length: 4096\ntrain:\n  global_batch_size: 128\n  micro_batch_size: 2\n  train_iters: 20\nddp:\n  use_distributed_optimizer: true\nmixed_precision: bf16_with_mxfp8_mixed\n",
			want: map[Field]any{TP: 2, MicroBatch: 2, GlobalBatch: 128, ZeRO: 1, Precision: "fp8"}},
		{name: "mamba.yaml", text: "name: megatron_mamba\ntrainer:\n  devices: 8\n  num_nodes: 1\nmodel:\n  micro_batch_size: 1\n  global_batch_size: 8\n  hybrid_override_pattern: null\n  ngroups_mamba: 8\n  num_layers: 4\n  hidden_size: 1024\n  ffn_hidden_size: 4096\n  num_attention_heads: 16\n  encoder_seq_length: 2048\n  vocab_size: 1000\n",
			params: 0.0347, kind: spec.Decoder},
		{name: "te.yaml", text: "step_scheduler:\n  global_batch_size: 64\n  local_batch_size: 2\nmodel:\n  pretrained_model_name_or_path: a/b\n  backend:\n    enable_deepep: true\n    te_fp8:\n      recipe: block\npeft:\n  _target_: x.PeftConfig\n  match_all_linear: true\n  dim: 8\ndistributed:\n  strategy: fsdp2\n  pp_size: 2\n  pipeline:\n    pp_microbatch_size: 1\nparallelizer:\n  activation_checkpointing: true\n",
			want: map[Field]any{Precision: "fp8", Recompute: "full", ZeRO: 1, MicroBatch: 1, Modules: "all-linear"}, uncounted: "model.backend.enable_deepep"},
		{name: "experts.yaml", text: "base_model: a/b\nadapter: lora\nlora_r: 8\nlora_target_modules:\n  - q_proj\nlora_target_parameters:\n  - experts.down_proj\nsequence_len: 512\nmicro_batch_size: 1\n", want: map[Field]any{Modules: "q_proj experts.down_proj"}},
		{name: "base.sh", text: "python3 MaxText/train.py MaxText/configs/base.yml run_name=a per_device_batch_size=1 model_name=llama2-7b dtype=float32 fused_mlp=False", want: map[Field]any{Recompute: "full", Precision: "fp32"}},
		{name: "clm.sh", text: "CONFIG=conf/stage2.json\ndeepspeed --num_gpus=4 --num_nodes 2 finetune.py --deepspeed $CONFIG --model_name_or_path ../models/Qwen3-8B/ --per_device_train_batch_size 2 --gradient_accumulation_steps 4 --gradient_checkpointing True --bf16 --block_size 4096 --train_file a.json --learning_rate 1e-5",
			want: map[Field]any{ModelName: "../models/Qwen3-8B/", Devices: 8, MicroBatch: 2, GradAccum: 4, GlobalBatch: 64, Recompute: "full", Precision: "bf16", SeqLen: 4096}, uncounted: "deepspeed"},
		{name: "hosts.sh", text: "deepspeed --include=\"a:0,1,2@b:4,5,6\" train.py --model_name_or_path a/b --per-device-train-batch-size 1 --model_max_length 2048 --lora_enable False --lora_r 64 --bits 16", want: map[Field]any{Devices: 6, Nodes: 2, SeqLen: 2048, Adapter: nil}},
		{name: "launch.sh", text: "accelerate launch --num_machines 2 --num_processes 16 --mixed_precision fp16 --use_deepspeed --zero_stage 3 --offload_optimizer_device cpu train.py --model_name_or_path=a/b --per_device_train_batch_size=1 --use_peft --load_in_4bit --max_seq_length=8192",
			want: map[Field]any{Devices: 16, Nodes: 2, ZeRO: 3, Offload: "optimizer", Precision: "fp16", Adapter: "qlora", LoRARank: 8}},
		{name: "config.sh", text: "accelerate launch --config_file fsdp.yaml train.py --model_name_or_path a/b --per_device_train_batch_size 4 --fp16 False --bf16 True", want: map[Field]any{MicroBatch: 4, Precision: "bf16", ZeRO: nil}, uncounted: "config_file"},
		{name: "a.slurm", text: "#!/bin/bash\n#SBATCH --nodes=4\n#SBATCH --gres=gpu:a100:4\nsrun torchrun --nnodes=$SLURM_NNODES --nproc_per_node=$SLURM_GPUS_ON_NODE train.py --model_name_or_path a/b --fsdp 'full_shard auto_wrap offload' --fsdp_transformer_layer_cls_to_wrap A --per_device_train_batch_size 4",
			want: map[Field]any{Devices: 16, ZeRO: 3, Offload: "optimizer+params"}},
		{name: "written.sh", text: "cat > ds.json <<EOF\n{\"zero_optimization\": {\"stage\": 2}, \"bf16\": {\"enabled\": true}}\nEOF\ntorchrun --nproc_per_node 8 train.py --deepspeed ds.json --model_name_or_path a/b --per_device_train_batch_size 4", want: map[Field]any{ZeRO: 2, Precision: "bf16", Devices: 8}},
		{name: "modules.sh", text: "torchrun --nproc_per_node 8 pretrain_gpt.py --num-layers 8 --hidden-size 1024 --num-attention-heads 8 --seq-length 512 --micro-batch-size 1 --bf16 --recompute-granularity selective --recompute-modules core_attn mlp", want: map[Field]any{Recompute: "selective"}, uncounted: "--recompute-modules"},
		{name: "half.sh", text: "torchrun --nproc_per_node 8 pretrain_gpt.py --num-layers 8 --hidden-size 1024 --num-attention-heads 8 --seq-length 512 --micro-batch-size 1 --bf16 --optimizer-cpu-offload --optimizer-offload-fraction 0.5", want: map[Field]any{Offload: "optimizer"}, uncounted: "--optimizer-offload-fraction"},
		{name: "cli.sh", text: "llamafactory-cli train --stage sft --model_name_or_path a/b --finetuning_type lora --lora_rank 4 --cutoff_len 1024 --per_device_train_batch_size 1 --template qwen", want: map[Field]any{Adapter: "lora", LoRARank: 4, SeqLen: 1024, Recompute: "full"}},
		{name: "defaults.sh", text: ": \"${TP:=4}\"\n: ${MBS:=2}\ntorchrun --nproc_per_node 8 pretrain_gpt.py --num-layers 8 --hidden-size 1024 --num-attention-heads 8 --seq-length 512 --micro-batch-size $MBS --tensor-model-parallel-size ${TP}", want: map[Field]any{TP: 4, MicroBatch: 2, DP: 2}},
		{name: "lora.yaml", text: "peft:\n  _target_: megatron.bridge.peft.lora.LoRA\n  target_modules: [linear_qkv, linear_fc1]\n  dim: 32\nmodel:\n  tensor_model_parallel_size: 2\n  seq_length: 4096\n  recompute_granularity: selective\n  recompute_modules: [moe]\n  mtp_num_layers: null\ntrain:\n  global_batch_size: 128\n  micro_batch_size: 2\n",
			want: map[Field]any{Adapter: "lora", LoRARank: 32, Modules: "linear_qkv linear_fc1"}, uncounted: "model.recompute_modules"},
		{name: "cli.yaml", text: "seed_everything: 1\ntrainer:\n  strategy: deepspeed_stage_3_offload\n  precision: 16-mixed\n  devices: 4\n  num_nodes: 2\n  accumulate_grad_batches: 8\ndata:\n  init_args:\n    batch_size: 2\nmodel:\n  class_path: a.B\n  init_args:\n    model_name_or_path: a/b\n",
			want: map[Field]any{ZeRO: 3, Offload: "optimizer", Precision: "fp16", Devices: 8, GradAccum: 8, MicroBatch: 2, GlobalBatch: 128, ModelName: "a/b"}},
		{name: "class.yaml", text: "trainer:\n  strategy:\n    class_path: lightning.pytorch.strategies.FSDPStrategy\n    init_args:\n      sharding_strategy: SHARD_GRAD_OP\n      cpu_offload: false\n  precision: bf16-true\n  devices: 8\ndata:\n  batch_size: 4\n", want: map[Field]any{ZeRO: 2, Precision: "bf16", Devices: 8, MicroBatch: 4}, uncounted: "trainer.precision"},
		{name: "gpt.yaml", text: "checkpoint_dir: checkpoints/a/b\nprecision: bf16-true\nquantize: bnb.nf4\ndevices: 4\nlora_r: 32\ntrain:\n  global_batch_size: 8\n  micro_batch_size: 1\n  max_seq_length: 512\n",
			want: map[Field]any{Adapter: "qlora", LoRARank: 32, Devices: 4, SeqLen: 512, GradAccum: 2, ZeRO: 3}},
		{name: "swift.sh", text: "megatron sft --load a --expert_model_parallel_size 8 --micro_batch_size 1 --global_batch_size 16 --packing true --max_length 8192 --recompute_granularity full", want: map[Field]any{EP: 8, SeqLen: 8192, Packed: 1, Recompute: "full"}},
	} {
		r, err := Read(tc.name, []byte(tc.text), Options{})
		if err != nil {
			t.Errorf("%s: %v", tc.name, err)
			continue
		}
		given := r.Given()
		for of, want := range tc.want {
			if given[of] != want {
				t.Errorf("%s: %s is %v, want %v", tc.name, of, given[of], want)
			}
		}
		if len(r.Unset) > 0 {
			t.Errorf("%s: variables without a value: %v", tc.name, r.Unset)
		}
		if len(r.Unknown) > 0 || len(r.Problems) > 0 {
			t.Errorf("%s: unknown keys %v, problems %v", tc.name, r.Unknown, r.Problems)
		}
		found := tc.uncounted == ""
		for _, u := range r.Uncounted {
			found = found || u.Key == tc.uncounted
			if strings.HasPrefix(u.Key, "compile.") {
				t.Errorf("%s: %s has an effect, though compile.enable is false", tc.name, u.Key)
			}
		}
		if !found {
			t.Errorf("%s: %s is not among the keys that are not counted: %v", tc.name, tc.uncounted, r.Uncounted)
		}
		if tc.params == 0 {
			continue
		}
		m, _, ok := r.Network(50304)
		if !ok || m.Kind != tc.kind || math.Abs(m.Params()/(tc.params*1e9)-1) > 0.002 {
			t.Errorf("%s: network of %.4g parameters, %s; want %g·10⁹, %s", tc.name, m.Params(), m.Kind, tc.params, tc.kind)
		}
	}
}

// An unknown strategy of Megatron-FSDP is a problem in files and arguments.
func TestUnknownShardingStrategy(t *testing.T) {
	for name, text := range map[string]string{
		"a.yaml": "ddp:\n  use_megatron_fsdp: true\n  data_parallel_sharding_strategy: optim_grad\nmodel:\n  tensor_model_parallel_size: 1\n  seq_length: 4096\ntrain:\n  global_batch_size: 128\n  micro_batch_size: 2\n",
		"a.sh":   "torchrun pretrain_gpt.py --num-layers 2 --hidden-size 64 --num-attention-heads 4 --seq-length 128 --micro-batch-size 1 --use-megatron-fsdp --data-parallel-sharding-strategy optim_grad",
	} {
		r, err := Read(name, []byte(text), Options{})
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(r.Problems, "; "); !strings.Contains(got, `"optim_grad" is not one of no_shard`) {
			t.Errorf("%s: problems %q", name, got)
		}
	}
}

// A script that another one completes names the variables that it takes, and Python is refused.
func TestVariablesWithoutValue(t *testing.T) {
	const text = "PARAMS=\" --num-layers ${NLS} --hidden-size ${HS} --num-attention-heads 8 --seq-length 128 --micro-batch-size 1\"\n"
	r, err := Read("config.sh", []byte(text), Options{})
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(r.Unset, " "); got != "HS NLS" {
		t.Errorf("variables without a value: %q", got)
	}
	if got := strings.Join(r.Problems, "; "); !strings.Contains(got, "--num-layers has no value") || !strings.Contains(got, "--set NAME=VALUE") {
		t.Errorf("problems: %s", got)
	}
	r, err = Read("config.sh", []byte(text), Options{Set: map[string]string{"NLS": "4", "HS": "256"}})
	if n, _ := r.Number(Layers); err != nil || n != 4 || len(r.Problems) > 0 || len(r.Unset) > 0 {
		t.Errorf("with values: %d layers, %v, %v, %v", n, r.Problems, r.Unset, err)
	}
	if _, err := Read("config.py", []byte("a = 1"), Options{}); err == nil || !strings.Contains(err.Error(), "Python is not read") {
		t.Errorf("Python: %v", err)
	}
}

// Arguments of other programs, and networks that are not transformers, are refused by name.
func TestRefusesOtherPrograms(t *testing.T) {
	for _, tc := range []struct{ text, want string }{
		{"deepspeed --module openrlhf.cli.train_sft --max_len 4096 --train_batch_size 256 --micro_train_batch_size 2 --zero_stage 2 --bf16", "arguments of openrlhf are not read"},
		{"python3 -m verl.trainer.main_ppo data.train_batch_size=1024 trainer.nnodes=1", "arguments of verl are not read"},
		{"NPROC_PER_NODE=4 swift sft --model a/b --lora_rank 8 --deepspeed zero2", "arguments of swift are not read"},
		{"FORCE_TORCHRUN=1 llamafactory-cli train examples/a.yaml", "it starts llamafactory-cli with examples/a.yaml: check that file"},
		{"torchrun --nproc_per_node 8 train.py --batch-size 1 --seq-length 4096 --model a/b --seed 1 --output-dir x", "no command with arguments of"},
		{"torchrun --nproc_per_node 8 train.py --gradient-accumulation-steps 1 --seq-length 4096 --dim 64", "no command with arguments of"},
		{"accelerate launch -m axolotl.cli.train b.yml", "it starts axolotl with b.yml: check that file"},
	} {
		if _, err := Read("a.sh", []byte(tc.text+"\n"), Options{}); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %v", tc.text, err)
		}
	}
	for _, text := range []string{
		"parallelism:\n  dp: 8\n  tp: 4\nmodel:\n  dtype: bfloat16\n  model_config:\n    hidden_size: 2048\ntokens:\n  micro_batch_size: 2\noptimizer:\n  zero_stage: 1\n",
		"output_dir: /tmp\ntokenizer:\n  path: a\nmodel:\n  _component_: a.b\nbatch_size: 2\ngradient_accumulation_steps: 4\noptimizer:\n  lr: 2e-5\ndtype: bf16\n",
	} {
		if r, err := Read("a.yaml", []byte(text), Options{}); err == nil {
			t.Errorf("a file of another program is read as one of %s: %v", r.Format, r.Given())
		}
	}
	r, err := Read("a.yaml", []byte("name: megatron_griffin\ntrainer:\n  devices: 8\nmodel:\n  num_layers: 4\n  hidden_size: 64\n  num_attention_heads: 4\n  micro_batch_size: 1\n"), Options{})
	if err != nil {
		t.Fatal(err)
	}
	if _, _, ok := r.Network(1000); ok || !strings.Contains(strings.Join(r.Problems, " "), "megatron_griffin") {
		t.Errorf("a network of Griffin is read as %v", r.Given())
	}
}

// Offload and stage follow from the name of a DeepSpeed file, and a change names another one that the framework ships.
func TestShippedDeepSpeedFiles(t *testing.T) {
	const text = "base_model: a/b\nsequence_len: 512\nmicro_batch_size: 1\ngradient_accumulation_steps: 1\ngradient_checkpointing: true\ndeepspeed: deepspeed_configs/zero3_bf16_cpuoffload_all.json\n"
	r, err := Read("a.yaml", []byte(text), Options{})
	if err != nil {
		t.Fatal(err)
	}
	p, _, err := r.Plan(8)
	if err != nil || p.ZeRO != 3 || p.Offload != spec.OffloadParams {
		t.Fatalf("plan %s, %v", p, err)
	}
	to := p
	to.ZeRO, to.Offload = 2, spec.OffloadNone
	text2, why := r.Diff(spec.Config{Plan: p}, spec.Config{Plan: to}, Options{})
	if why != "" || !strings.Contains(text2, "+deepspeed: deepspeed_configs/zero2.json") {
		t.Errorf("%s%s", text2, why)
	}
	to.Offload = spec.OffloadOptimizer
	if _, why := r.Diff(spec.Config{Plan: p}, spec.Config{Plan: to}, Options{}); !strings.Contains(why, "no DeepSpeed file beside") {
		t.Errorf("reason %q", why)
	}
}

// The stage is in the name of the file that a command names, and so is what it offloads.
func TestStageInOptions(t *testing.T) {
	for option, want := range map[string]string{
		"--deepspeed conf/zero2.json": "zero=2", "--deepspeed_config_file ds/stage3_no_offloading.conf": "zero=3", "--deepspeed --deepspeed_config ds_z1.json": "zero=1", "--config_file accelerate/deepspeed_zero3_offload.yaml": "zero=3,offload=optimizer",
		"--config_file accelerate/fsdp2.yaml": "zero=3", "--config_file accelerate/single.yaml": "ga=4", "--deepspeed ds.json": "zero=3",
	} {
		r, err := Read("a.sh", []byte("accelerate launch --num_processes 8 "+option+" train.py --model_name_or_path a/b --per_device_train_batch_size 1 --gradient_accumulation_steps 4\n"), Options{})
		if err != nil {
			t.Fatal(err)
		}
		p, notes, err := r.Plan(8)
		if got := p.String(); err != nil || !strings.HasSuffix(got, ","+want) || len(notes)+len(r.Assumed) == 0 {
			t.Errorf("%s: plan %s, %v, notes %v, want %s", option, got, err, notes, want)
		}
	}
}

// MaxText takes fractions of a sample per chip.
func TestFractionsOfSamples(t *testing.T) {
	r, err := Read("a.yml", []byte("model_name: llama2-7b\nper_device_batch_size: 0.5\nici_tensor_parallelism: 2\nici_fsdp_parallelism: 4\nmax_target_length: 2048\nremat_policy: full\n"), Options{})
	if err != nil {
		t.Fatal(err)
	}
	p, _, err := r.Plan(8)
	if err != nil || p.MicroBatch != 1 || p.TP != 2 {
		t.Fatalf("plan %s, %v", p, err)
	}
	to := p
	to.MicroBatch, to.TP, to.DP = 1, 4, 2
	if text, why := r.Diff(spec.Config{Plan: p}, spec.Config{Plan: to}, Options{}); why != "" || !strings.Contains(text, "+per_device_batch_size: 0.25") {
		t.Errorf("%s%s", text, why)
	}
}

// A file that a script sources may set arguments of the training: it is named, unless it only sets up a shell.
func TestSourcedFiles(t *testing.T) {
	r, err := Read("a.sh", []byte("source /etc/profile.d/modules.sh\n. ~/.bashrc\nsource venv/bin/activate\nsource ./common.sh\ntorchrun --nproc_per_node 8 pretrain_gpt.py --num-layers 4 --hidden-size 256 --num-attention-heads 4 --seq-length 128 --micro-batch-size 1 --global-batch-size 8\n"), Options{})
	if err != nil || len(r.Unknown) != 1 || r.Unknown[0] != "source ./common.sh" {
		t.Errorf("%v, unknown %q, want the sourced file", err, r.Unknown)
	}
}

// A micro-batch that follows from the global batch is not called an assumption.
func TestMicroBatchOfTheBatch(t *testing.T) {
	r, err := Read("ds.json", []byte(`{"train_batch_size": 256, "gradient_accumulation_steps": 4, "zero_optimization": {"stage": 1}}`), Options{})
	if err != nil {
		t.Fatal(err)
	}
	p, notes, err := r.Plan(8)
	if err != nil || p.MicroBatch != 8 || strings.Contains(strings.Join(notes, "; "), "micro-batch") {
		t.Errorf("micro-batch %d, notes %q: %v", p.MicroBatch, notes, err)
	}
}
