package recipe

import (
	"slices"
	"strings"
	"testing"

	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// Legal but unusual files are read as the frameworks read them, and what is not followed is said.
func TestOddFiles(t *testing.T) {
	const megatron = "torchrun --nproc_per_node 8 pretrain_gpt.py --hidden-size 1024 --num-attention-heads 8 --seq-length 512 --micro-batch-size 1 --global-batch-size 64 "
	const program = "pretrain_gpt.py --hidden-size 1024 --num-attention-heads 8 --seq-length 512 --micro-batch-size 1 --global-batch-size 64 --num-layers 8 --tensor-model-parallel-size 2"
	for _, tc := range []struct {
		name, text string
		want       map[Field]any
		uncounted  string
		problem    string
		assumed    string
	}{
		{name: "hybrid.yaml", text: "distributed_type: FSDP\ncompute_environment: LOCAL_MACHINE\nmixed_precision: bf16\nnum_machines: 4\nnum_processes: 32\nfsdp_config:\n  fsdp_sharding_strategy: HYBRID_SHARD\n", want: map[Field]any{ZeRO: 3, Devices: 32}},
		{name: "hex.yaml", text: "base_model: a/b\nadapter: lora\nlora_r: 0x20\nmicro_batch_size: 1_0\nsequence_len: 4096\nlora_modules_to_save:\n  - embed_tokens\n", want: map[Field]any{LoRARank: 32, MicroBatch: 10}, uncounted: "lora_modules_to_save"},
		{name: "anchors.yaml", text: "base_model: &m a/b\ntokenizer_config: *m\nlora_modules_to_save: []\nsequence_len: &n 2048\neval_sequence_len: *n\nmicro_batch_size: 1\nsample_packing: on\n", want: map[Field]any{SeqLen: 2048, ModelName: "a/b", Packed: 1}},
		{name: "weights.sh", text: "python3 -m MaxText.train MaxText/configs/base.yml model_name=gemma2-27b per_device_batch_size=1 weight_dtype=bfloat16", uncounted: "weight_dtype"},
		{name: "stages.toml", text: "model.name = 'llama3'\nmodel.flavor = '405B'\nparallelism.pipeline_parallel_degree = 8\nparallelism.pipeline_parallel_layers_per_stage = 4\ntraining.seq_len = 8192\ntraining.local_batch_size = 16\n", want: map[Field]any{PP: 8, VPP: 4}},
		{name: "stages2.toml", text: "[model]\nname = 'llama3'\nflavor = '70B'\n[parallelism]\npipeline_parallel_degree = 4\npipeline_parallel_layers_per_stage = 10\n[training]\nseq_len = 8192\n", problem: "are 9 stages, which pp=4 does not divide"},
		{name: "stages3.toml", text: "[model]\nname = 'llama3'\nflavor = '70B'\n[parallelism]\npipeline_parallel_degree = 4\npipeline_parallel_layers_per_stage = 10\npipeline_parallel_first_stage_less_layers = 0\npipeline_parallel_last_stage_less_layers = 0\n[training]\nseq_len = 8192\n", want: map[Field]any{VPP: 2}},
		{name: "table.sh", text: "declare -A LAYERS=([7b]=32 [13b]=40)\nSIZE=13b\n" + megatron + "--num-layers ${LAYERS[$SIZE]}", want: map[Field]any{Layers: 40}},
		{name: "function.sh", text: "launch() { local tp=$1; shift; " + megatron + "--num-layers 8 --tensor-model-parallel-size $tp \"$@\"; }\nlaunch 2 --use-distributed-optimizer\n", want: map[Field]any{TP: 2, ZeRO: 1}},
		{name: "document.sh", text: "read -r -d '' ARGS <<'END' || true\n--num-layers 8\n--tensor-model-parallel-size 4\nEND\n" + megatron + "$ARGS", want: map[Field]any{TP: 4, Layers: 8}},
		{name: "several.sh", text: "for tp in 1 2 4; do " + megatron + "--num-layers 8 --tensor-model-parallel-size $tp; done", want: map[Field]any{TP: 1}, assumed: "3 training commands that differ"},
		{name: "wrap.sh", text: "eval TP=2\nsbatch --nodes=4 --gpus-per-node=4 --wrap=\"srun python pretrain_gpt.py --hidden-size 1024 --num-attention-heads 8 --seq-length 512 --micro-batch-size 1 --global-batch-size 64 --num-layers 8 --tensor-model-parallel-size $TP\"\n", want: map[Field]any{TP: 2, Nodes: 4, PerNode: 4, Devices: 16}},
		{name: "blanks.sh", text: "eval TP=2\nsbatch --nodes 4 --gpus-per-node 4 --wrap=\"srun python pretrain_gpt.py --hidden-size 1024 --num-attention-heads 8 --seq-length 512 --micro-batch-size 1 --global-batch-size 64 --num-layers 8 --tensor-model-parallel-size $TP\"\n", want: map[Field]any{TP: 2, Nodes: 4, PerNode: 4, Devices: 16}},
		{name: "wins.sh", text: "TP=2\ncat >job.sh <<X\n#SBATCH --gpus-per-node=8\nsrun python pretrain_gpt.py --hidden-size 1024 --num-attention-heads 8 --seq-length 512 --micro-batch-size 1 --global-batch-size 64 --num-layers 8 --tensor-model-parallel-size $TP\nX\nsbatch --nodes=4 --gpus-per-node=4 job.sh\n", want: map[Field]any{TP: 2, Nodes: 4, PerNode: 4, Devices: 16}},
		{name: "srun.sh", text: "srun --nodes=1 --ntasks=1 hostname\nsrun -l -N 2 --ntasks-per-node=8 python " + program, want: map[Field]any{TP: 2, Nodes: 2, PerNode: 8, Devices: 16}},
		{name: "step.sh", text: "#SBATCH --nodes=4 --gpus-per-node=8\nHEAD=$(srun --nodes=1 --ntasks=1 hostname)\nsrun -N2 torchrun --nproc-per-node 8 --nnodes 2 " + program, want: map[Field]any{Nodes: 2, Devices: 16}},
		{name: "ranks.sh", text: "srun -n 16 python " + program, want: map[Field]any{Devices: 16}},
		{name: "mpirun.sh", text: "mpirun -np 16 -npernode 4 -x NCCL_DEBUG=INFO python " + program, want: map[Field]any{Devices: 16, PerNode: 4}},
		{name: "mpi.sh", text: "mpirun -np 2 torchrun --nproc-per-node 8 --nnodes 2 " + program, want: map[Field]any{Nodes: 2, Devices: 16}},
		{name: "hydra.sh", text: "torchrun --nproc_per_node=8 megatron_gpt_pretraining.py --config-path=conf --config-name=gpt3_5b trainer.devices=8 trainer.num_nodes=2 ++trainer.precision=bf16 " +
			"model.num_layers=8 model.hidden_size=1024 model.num_attention_heads=8 model.encoder_seq_length=512 model.micro_batch_size=1 model.global_batch_size=64 +model.tensor_model_parallel_size=2",
			want: map[Field]any{TP: 2, Devices: 16, Layers: 8, SeqLen: 512, Precision: "bf16", GradAccum: 8}, assumed: "a configuration that is not read"},
		{name: "job.yaml", text: "apiVersion: kubeflow.org/v1\nkind: PyTorchJob\nmetadata: {name: a}\nspec:\n  pytorchReplicaSpecs:\n    Master:\n      replicas: 1\n      template: &t\n        spec:\n          containers:\n          - name: pytorch\n" +
			"            env: [{name: TP, value: \"2\"}]\n            command: [torchrun, pretrain_gpt.py]\n            args: [" + strings.Join(strings.Fields(strings.TrimSuffix(strings.TrimPrefix(program, "pretrain_gpt.py "), "2")), ", ") + ", $(TP), --bf16]\n" +
			"            resources: {limits: {nvidia.com/gpu: 8}}\n    Worker:\n      replicas: 3\n      template: *t\n", want: map[Field]any{TP: 2, Nodes: 4, PerNode: 8, Devices: 32, Precision: "bf16"}},
		{name: "batch.yaml", text: "apiVersion: batch/v1\nkind: Job\nspec:\n  completions: 2\n  template:\n    spec:\n      containers:\n      - name: a\n        command: [bash, -c, \"torchrun --nproc-per-node 8 --nnodes 2 " + strings.TrimSuffix(program, "2") + "$TP\"]\n" +
			"        env: [{name: TP, value: \"2\"}]\n", want: map[Field]any{TP: 2, Nodes: 2, Devices: 16}},
		{name: "set.yaml", text: "kind: JobSet\nspec:\n  replicatedJobs:\n  - replicas: 2\n    template:\n      spec:\n        completions: 4\n        template:\n          spec:\n            containers:\n            - args: [" +
			strings.Join(strings.Fields(strings.TrimPrefix(program, "pretrain_gpt.py")), ", ") + ", --bf16]\n              command: [torchrun, pretrain_gpt.py]\n              env: [{name: A, value: b}]\n              name: a\n" +
			"              resources: {limits: {nvidia.com/gpu: 8}}\n            - name: b\n              args: [--micro-batch-size, \"2\"]\n",
			want: map[Field]any{TP: 2, Nodes: 8, PerNode: 8, MicroBatch: 1, Precision: "bf16"}},
		{name: "short.sh", text: "srun -n16 python " + program, want: map[Field]any{Devices: 16}},
		{name: "again.sh", text: "while true; do " + megatron + "--num-layers 8 --tensor-model-parallel-size 2; sleep 9; done", want: map[Field]any{TP: 2}},
	} {
		r, err := Read(tc.name, []byte(tc.text), Options{})
		if err != nil {
			t.Errorf("%s: %v", tc.name, err)
			continue
		}
		switch r.Text(flavor) {
		case "405B":
			r.SetLayers(126)
		case "70B":
			r.SetLayers(80)
		}
		for of, want := range tc.want {
			if got := r.Given()[of]; got != want {
				t.Errorf("%s: %s is %v, want %v", tc.name, of, got, want)
			}
		}
		if len(r.Unknown) > 0 || len(r.Unset) > 0 {
			t.Errorf("%s: unknown %v, unset %v", tc.name, r.Unknown, r.Unset)
		}
		if got := slices.ContainsFunc(r.Uncounted, func(u Uncounted) bool { return u.Key == tc.uncounted }); got != (tc.uncounted != "") {
			t.Errorf("%s: not counted: %v", tc.name, r.Uncounted)
		}
		for _, said := range [][2]string{{strings.Join(r.Problems, "; "), tc.problem}, {strings.Join(r.Assumed, "; "), tc.assumed}} {
			if !strings.Contains(said[0], said[1]) || tc.problem == "" && len(r.Problems) > 0 {
				t.Errorf("%s: said %q, want %q", tc.name, said[0], said[1])
			}
		}
	}
}

// HYBRID_SHARD keeps a copy of the states on each node.
func TestHybridShard(t *testing.T) {
	for _, tc := range []struct {
		text  string
		shard int
	}{
		{"distributed_type: FSDP\nnum_machines: 8\nnum_processes: 32\nfsdp_config:\n  fsdp_sharding_strategy: HYBRID_SHARD\n", 4},
		{"distributed_type: FSDP\nnum_machines: 1\nnum_processes: 8\nfsdp_config:\n  fsdp_sharding_strategy: 5\n", 0},
		{"base_model: a/b\nmicro_batch_size: 1\nsequence_len: 512\nfsdp:\n  - hybrid_shard\n  - auto_wrap\n", 8},
		{"base_model: a/b\nmicro_batch_size: 1\nsequence_len: 512\nfsdp:\n  - full_shard\n", 0},
	} {
		r, err := Read("a.yaml", []byte(tc.text), Options{})
		if err != nil {
			t.Fatal(err)
		}
		devices := 0
		if _, ok := r.Number(Devices); !ok {
			devices = 64
		}
		p, _, err := r.Plan(devices)
		if err != nil || p.Shard != tc.shard || p.ZeRO < 2 {
			t.Errorf("%s: plan %s, shard %d, %v, want shard %d", tc.text, p, p.Shard, err, tc.shard)
		}
	}
}

// Edits keep sharding within a node, and do not look for a batch that the file does not have.
func TestEditsOfHybridShard(t *testing.T) {
	const text = "distributed_type: FSDP\nmixed_precision: bf16\nnum_machines: 4\nnum_processes: 32\nfsdp_config:\n  fsdp_sharding_strategy: HYBRID_SHARD\n  fsdp_activation_checkpointing: true\n"
	r, err := Read("a.yaml", []byte(text), Options{})
	if err != nil {
		t.Fatal(err)
	}
	p, _, err := r.Plan(0)
	if err != nil {
		t.Fatal(err)
	}
	p.AccumSteps = 2 // of a flag
	from := spec.Config{Accelerator: h100, Plan: p, Model: spec.Model{Name: "m", Kind: spec.Decoder, Layers: 32, Hidden: 4096, Heads: 32, FFN: 14336, Vocab: 32000, SeqLen: 4096}}
	for _, tc := range []struct {
		change func(*spec.Plan)
		want   string
	}{
		{func(p *spec.Plan) { p.ZeRO = 2 }, "+  fsdp_sharding_strategy: HYBRID_SHARD_ZERO2\n"},
		{func(p *spec.Plan) { p.Shard = 0 }, "+  fsdp_sharding_strategy: FULL_SHARD\n"},
		{func(p *spec.Plan) { p.Recompute = spec.RecomputeNone }, "+  fsdp_activation_checkpointing: false\n"},
		{func(p *spec.Plan) { p.Precision = spec.FP8 }, "+mixed_precision: fp8\n"},
	} {
		to := from
		tc.change(&to.Plan)
		diff, why := r.Diff(from, to, Options{})
		if !strings.Contains(diff, tc.want) {
			t.Errorf("%s: %q, %s, want %q", to.Plan, diff, why, tc.want)
		}
	}
}
