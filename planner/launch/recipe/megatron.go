package recipe

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/pacer-ml/pacer/planner/launch/recipe/keyfile"
	"github.com/pacer-ml/pacer/planner/launch/recipe/pattern"
)

// megatronArguments are the arguments of Megatron-LM (megatron/training/arguments.py of core 0.15 and before) and of its
// forks Megatron-DeepSpeed and BigScience's, in a shell script or alone.
var megatronArguments = format{
	name: "megatron", doc: "Megatron-LM: arguments of pretrain_gpt.py in a shell script, or MODEL_ARGS in YAML", syntax: isShell,
	needs: []string{"--num-layers", "--encoder-num-layers", "--hidden-size", "--hybrid-layer-pattern", "--hybrid-override-pattern", "--micro-batch-size", "--global-batch-size", "--tensor-model-parallel-size", "--model-parallel-size", "--pipeline-model-parallel-size"},
	keys:  megatronKeys, inert: megatronInert, weighs: megatronWeighs, finish: megatronFinish, emitted: "megatron",
}

// megatronYAML are the same arguments under MODEL_ARGS, as in Megatron-LM's own tests.
var megatronYAML = format{
	name: "megatron", syntax: isYAML,
	keys: megatronKeys, inert: append([]string{"ENV_VARS*", "TEST_TYPE", "METRICS*", "LAUNCHER", "MODE", "BEFORE_SCRIPT*"}, megatronInert...), weighs: megatronWeighs,
	prepare: modelArguments, finish: megatronFinish, emitted: "megatron",
}

// modelArguments turns MODEL_ARGS.--key into --key. Options that are false are not given.
func modelArguments(r *Recipe, entries []keyfile.Entry) []keyfile.Entry {
	var out []keyfile.Entry
	for _, e := range entries {
		name, ok := strings.CutPrefix(e.Key, "MODEL_ARGS.")
		if ok {
			e.Key = strings.ReplaceAll(name, "_", "-")
		}
		if ok && strings.EqualFold(e.Value, "false") {
			r.off = append(r.off, e)
			continue
		}
		out = append(out, e)
	}
	return out
}

var megatronKeys = map[string]rule{
	"--num-layers": number(Layers), "--encoder-num-layers": number(Layers), "--hidden-size": number(Hidden), "--num-attention-heads": number(Heads),
	"--num-query-groups": number(KVHeads), "--num-key-value-heads": number(KVHeads), "--group-query-attention": nothing,
	"--ffn-hidden-size": number(FFN), "--kv-channels": number(HeadDim), "--vocab-size": number(Vocab), "--padded-vocab-size": number(Vocab), "--pad-vocab-size-to": number(Vocab),
	"--seq-length": number(SeqLen), "--encoder-seq-length": number(SeqLen), "--swiglu": when(Gated, 1), "--untie-embeddings-and-output-weights": when(Tied, 0),
	"--hybrid-layer-pattern": text(hybrid), "--hybrid-override-pattern": text(hybrid), "--tokenizer-model": text(tokenizer), "--tokenizer-name-or-path": text(tokenizer),
	"--multi-latent-attention": nothing, "--q-lora-rank": number(QRank), "--kv-lora-rank": number(KVRank), "--mtp-num-layers": number(MTP),
	"--num-experts": positive(Experts), "--moe-router-topk": number(TopK), "--moe-ffn-hidden-size": number(ExpertFFN),
	"--decoder-num-layers": number(decoderLayers), "--qk-head-dim": number(qkHeadDim), "--qk-nope-head-dim": number(qkHeadDim), "--multi-head-latent-attention": nothing,
	"--mamba-num-heads": number(mixerHeads), "--mamba-head-dim": number(mixerHeadDim), "--mamba-state-dim": number(mixerState), "--mamba-num-groups": number(mixerGroups), "--hybrid-attention-ratio": nothing, "--hybrid-mlp-ratio": nothing,
	"--n-shared-experts": number(sharedExperts), "--num-shared-experts": number(sharedExperts), "--moe-intermediate-size": number(ExpertFFN), "--first-k-dense-replace": number(denseFirst), "--num-moe-experts": positive(Experts),
	"--moe-shared-expert-intermediate-size": number(SharedFFN), "--moe-layer-freq": text(moeFreq), "--topk": number(TopK),

	"--tensor-model-parallel-size": number(TP), "--model-parallel-size": number(TP), "--pipeline-model-parallel-size": number(PP), "--context-parallel-size": number(CP),
	"--ds-sequence-parallel-size": number(CP), "--expert-model-parallel-size": number(EP), "--moe-expert-parallel-size": number(EP),
	"--num-layers-per-virtual-pipeline-stage": number(perChunk), "--num-virtual-stages-per-pipeline-rank": number(VPP),
	"--pipeline-model-parallel-layout": text(layout), "--sequence-parallel": when(SP, 1),
	"--use-distributed-optimizer": distributed, "--zero-stage": number(ZeRO), "--use-megatron-fsdp": nothing, "--use-custom-fsdp": nothing,
	"--use-torch-fsdp2": when(ZeRO, 3), "--data-parallel-sharding-strategy": sharding, "--num-distributed-optimizer-instances": number(instances),
	"--optimizer-cpu-offload": when2(Offload, "optimizer"), "--cpu-optimizer": when2(Offload, "optimizer"),
	"--recompute-activations": when2(Recompute, "selective"), "--recompute-granularity": oneOf(Recompute, map[string]string{"selective": "selective", "full": "full"}),
	"--checkpoint-activations": when2(Recompute, "full"), "--activations-checkpoint-method": oneOf(Recompute, map[string]string{"uniform": "full", "block": "full"}), "--micro-batch-size": number(MicroBatch), "--batch-size": fallback(MicroBatch), "--global-batch-size": number(GlobalBatch),
	"--bf16": when2(Precision, "bf16"), "--fp16": when2(Precision, "fp16"), "--fp8-format": nothing, "--fp8-hybrid": nothing, "--fp8-e4m3": nothing, "--fp4-format": nothing,
	"--optimizer": lower(Optimizer), "--nproc-per-node": number(PerNode), "--nnodes": number(Nodes), "--num-gpus": number(PerNode), "--num-nodes": number(Nodes),
	"--lora-rank": number(LoRARank), "program": nothing,
	"--max-length": fallback(SeqLen), "--packing": yesNo(Packed), "--model": text(ModelName), "--train-type": nothing, // Megatron-SWIFT

}

// nothing is the rule of a key that another rule looks at, or that goes with another key.
func nothing(*Recipe, *keyfile.Entry) {}

// distributed reads --use-distributed-optimizer, which Megatron-FSDP asks for too.
func distributed(r *Recipe, e *keyfile.Entry) {
	if r.numbers[ZeRO] < 1 {
		when(ZeRO, 1)(r, e)
	}
}

// when2 sets a field to a text if the option is given.
func when2(of Field, v string) rule { return word(of, v, "") }

// shardingStages are the ZeRO stages of the strategies of Megatron-FSDP.
var shardingStages = map[string]int{"no_shard": 0, "optim": 1, "optim_grads": 2, "optim_grads_params": 3}

// sharding reads --data-parallel-sharding-strategy, which applies under Megatron-FSDP.
func sharding(r *Recipe, e *keyfile.Entry) {
	if stage, ok := r.shardingStage(e.Key, e.Value); ok && (r.hasKey("--use-megatron-fsdp") || r.hasKey("--use-custom-fsdp")) {
		r.numbers[ZeRO] = stage
	}
}

// shardingStage returns the ZeRO stage of a strategy of Megatron-FSDP; an unknown one is a problem of its key.
func (r *Recipe) shardingStage(key, strategy string) (stage int, ok bool) {
	if stage, ok = shardingStages[strategy]; !ok {
		r.problem("%s: %q is not one of no_shard, optim, optim_grads, optim_grads_params", key, strategy)
	}
	return stage, ok
}

// hasKey reports whether the file has a key.
func (r *Recipe) hasKey(key string) bool {
	for i := range r.entries {
		if r.entries[i].Key == key || strings.TrimPrefix(r.entries[i].Key, "MODEL_ARGS.") == key {
			return !strings.EqualFold(r.entries[i].Value, "false")
		}
	}
	return false
}

var megatronWeighs = map[string]effect{
	"--rampup-batch-size":         {"the batch grows at the beginning: the prediction is of its full size", 0, 0},
	"--cpu-offloading":            {"activations are moved to the host", 0.2, 0.3},
	"--cpu-offloading-*":          {"activations are moved to the host", 0.2, 0.3},
	"--recompute-num-layers":      {"only some layers recompute, unless it is 1 with method uniform", 0.03, 0.1},
	"--recompute-method":          {"groups of layers may recompute together", 0.02, 0.05},
	"--distribute-saved-act*":     {"inputs of recomputed layers are split over tensor parallel ranks", 0.02, 0.1},
	"--partition-activations":     {"inputs of recomputed layers are split over tensor parallel ranks", 0.02, 0.1},
	"--moe-*capacity-factor":      {"tokens beyond the capacity of an expert are dropped or padded", 0.1, 0.1},
	"--moe-pad-expert*":           {"experts are padded to their capacity", 0.1, 0.1},
	"--defer-embedding-wgrad*":    {"gradients of the embedding are computed in the pipeline bubble", 0.02, 0.02},
	"--tp-comm-overlap":           {"tensor parallel traffic overlaps with multiplications", 0.05, 0.02},
	"--overlap-moe-expert-par*":   {"expert parallel traffic overlaps with computation", 0.1, 0.05},
	"--use-precision-aware*":      {"optimizer states may have fewer bits", 0.02, 0.1},
	"--exp-avg*-dtype":            {"optimizer states have another format", 0.02, 0.15},
	"--main-*-dtype":              {"main weights or gradients have another format", 0.02, 0.1},
	"--megatron-fsdp-*-dtype":     {"gradients have another format", 0.05, 0.05},
	"--grad-reduce-in-bf16":       {"gradients are kept and reduced in bf16, and 32 bits are predicted", 0.05, 0.15},
	"--accumulate-allreduce*":     {"gradients accumulate in fp32", 0.03, 0.05},
	"--moe-flex-dispatcher*":      {"experts have another dispatcher", 0.1, 0.05},
	"--enable-cuda-graph":         {"kernels are launched by CUDA graphs", 0.1, 0.05},
	"--cuda-graph-*":              {"kernels are launched by CUDA graphs", 0.1, 0.05},
	"--external-cuda-graph":       {"kernels are launched by CUDA graphs", 0.1, 0.05},
	"--deterministic-mode":        {"deterministic kernels are slower", 0.1, 0.02},
	"--grpo-*":                    {"samples are generated between steps, which is not counted", 0.3, 0.2},
	"--langrl-*":                  {"samples are generated between steps, which is not counted", 0.3, 0.2},
	"--create-moe-param-group":    {"experts have an optimizer group of their own", 0, 0.02},
	"--fsdp-double-buffer":        {"FSDP keeps two buffers of gathered weights", 0.02, 0.05},
	"--use-torch-fsdp2-*":         {"FSDP2 may not reshard", 0.05, 0.1},
	"--no-overlap*":               {"traffic does not overlap with computation", 0.1, 0},
	"--swin-*":                    {"a vision backbone is not counted", 0.3, 0.3},
	"--inference-*":               {"inference between steps is not counted", 0.1, 0.1},
	"--attention-softmax-in-*":    {"scores are kept in fp32", 0.02, 0.03},
	"--moe-router-force-load*":    {"the router is forced to balance: real routing is slower", 0.05, 0.02},
	"--attention-backend":         {"attention may not be a fused kernel", 0.03, 0.03},
	"--fp8-param-gather":          {"weights are kept and gathered in fp8, and 16 bits are predicted", 0.03, 0.08},
	"--fp8-recipe":                {"scales of fp8 are kept in another way", 0.05, 0.02},
	"--checkpoint-in-cpu":         {"inputs of recomputed layers are on the host", 0.1, 0.1},
	"--checkpoint-num-layers":     {"groups of layers recompute together", 0.03, 0.1},
	"--memory-centric-tiled-*":    {"linear layers are computed in tiles", 0.1, 0.1},
	"--outer-dp-sharding*":        {"FSDP shards optimizer states over all replicas too", 0.03, 0.1},
	"--reuse-fp32-param":          {"16-bit weights share memory with their fp32 masters", 0.02, 0.1},
	"--o-lora-rank":               {"attention has a projection of low rank more", 0.05, 0.03},
	"--csa-*":                     {"attention is sparse", 0.2, 0.1},
	"--dsa-*":                     {"attention is sparse", 0.2, 0.1},
	"--swap-attention":            {"activations are moved to the host", 0.2, 0.3},
	"--fine-grained-activation-*": {"activations are moved to the host", 0.2, 0.3},
	"--offload-*":                 {"something is moved to the host", 0.2, 0.3},
	"--recompute-modules":         {"which modules recompute", 0.05, 0.1},
	"--optimizer-offload-frac*":   {"only a part of the optimizer is on the host", 0.2, 0.2},
}

// megatronInert are arguments about data, logs, checkpoints, the learning rate and numerics.
var megatronInert = []string{
	"--adam-*", "--lr", "--lr-*", "--min-lr", "--decoupled-*", "--weight-decay*", "--clip-grad", "--init-method-*", "--override-opt*", "--use-checkpoint-opt*", "--sgd-*",
	"--log-*", "--logging-*", "--tensorboard-*", "--wandb-*", "--timing-*", "--one-logger*", "--profile*", "--record-memory*", "--memory-snapshot*", "--use-pytorch-profiler", "--nvtx*",
	"--save", "--save-*", "--load", "--load-*", "--no-load-*", "--no-save-*", "--no-ckpt-*", "--ckpt-*", "--dist-ckpt-*", "--async-save", "--auto-detect-*", "--use-dist-ckpt*", "--use-persistent-ckpt*", "--finetune", "--pretrained-checkpoint", "--exit-*", "--kill-switch-*", "--use-mp-args*", "--use-checkpoint-args", "--no-use-*", "--universal-checkpoint",
	"--data-*", "--train-*", "--valid-*", "--test-*", "--mock-data", "--split", "--tokenizer-*", "--vocab-file", "--merge-file", "--vocab-extra-ids", "--num-workers", "--dataloader-*", "--no-mmap-*", "--no-create-*", "--tiktoken-*", "--reset-*", "--eod-*", "--num-dataset-*", "--s3-*", "--make-vocab-size-*", "--short-seq-prob", "--bert-no-binary-head", "--mask-*", "--iter-per-epoch", "--full-validation", "--sft*",
	"--eval-*", "--skip-*", "--seed", "--loss-scale*", "--initial-loss-scale", "--min-loss-scale", "--hysteresis", "--attention-dropout", "--hidden-dropout", "--ffn-dropout",
	"--normalization", "--norm-epsilon", "--layernorm-epsilon", "--apply-layernorm-1p", "--apply-residual*", "--apply-query-*", "--no-query-key-*", "--qk-layernorm", "--embed-layernorm", "--sync-tp-dup*", "--qk-l2-norm", "--qk-clip*",
	"--position-embedding-type", "--use-rotary-*", "--use-rope-*", "--rope-*", "--rotary-*", "--no-position-embedding", "--no-rope-*", "--mscale*", "--max-position-embeddings", "--beta-*", "--original-max-*",
	"--disable-bias-linear", "--add-*", "--squared-relu", "--openai-gelu", "--onnx-safe", "--no-bias-*", "--no-masked-*", "--bias-*", "--masked-*", "--openai-*", "--no-persist-*", "--no-softmax*", "--window-*", "--softmax-*",
	"--use-mcore-models", "--use-legacy-models", "--transformer-impl", "--spec", "--use-flash-attn*", "--export-*", "--te-*", "--main-*-functions", "--use-cpu-init*", "--init-model-with*", "--lazy-init*",
	"--moe-router-*", "--moe-aux-*", "--moe-z-*", "--moe-loss-*", "--moe-grouped-*", "--moe-token-dispatcher*", "--moe-permute-*", "--moe-per-*", "--moe-min-*", "--moe-enable-*", "--moe-extended-*", "--moe-layer-recompute", "--disable-moe-*", "--enable-expert-*", "--mtp-*", "--qk-pos-*", "--v-head-dim", "--expert-tensor-parallel-*", "--expert-interval", "--moe-deepep*",
	"--overlap-*", "--no-gradient-*", "--gradient-*", "--ddp-*", "--delay-*", "--align-*", "--use-nccl-*", "--nccl-*", "--no-async-*", "--empty-unused-*", "--manual-gc*", "--check-for-*", "--no-check-*", "--calculate-per-*", "--cross-entropy-*", "--no-contiguous-*", "--no-scatter-*", "--use-ring-*", "--high-priority-*", "--no-barrier-*", "--suggested-*", "--use-sharp", "--cp-comm-*", "--hierarchical-context*", "--microbatch-group-*", "--account-for-*", "--decoder-*-pipeline*", "--optimizer-offload-*", "--overlap-cpu-*", "--fp8-*", "--fp4-*", "--first-last-*", "--num-layers-at-*", "--keep-fp8*", "--disable-parameter*",
	"--megatron-fsdp-version", "--expert-outer-dp*", "--zero-*", "--warmup", "--decoder-seq-length", "--DDP-impl", "--disable-gloo*", "--extra-vocab-size", "--patch-tokenizer*", "--max-padding-length", "--dataset", "--qk-rope-head-dim", "--topk-group", "--routed-scaling-factor", "--seq-aux", "--shape-order", "--o-groups", "--moe-alltoall-*", "--moe-permutation-*", "--force-multi", "--rope-scaling*", "--synchronize-each-layer", "--contig*-checkpointing", "--tile-factor", "--per-split-*", "--inference-max*", "--attention-dropout*", "--train-mode",
	"--distributed-*", "--local-*", "--master-*", "--node-*", "--rdzv-*", "--standalone", "--max-restarts", "--tee", "--redirects", "--role", "--start-method", "--run-path", "--hostfile", "--no-ssh*", "--launcher*", "--include", "--exclude",
	"--deepspeed", "--deepspeed-*", "--ds-*", "--no-pipeline-parallel", "--pp-partition-*", "--use-tutel", "--abort-on-*", "--enable-*", "--moe-token-drop-policy", "--inference-rng*", "--mlp-type", "--rank*", "--jobid", "--wait", "--kill-on-*", "--mpi", "--container-*", "--label", "--export", "--output", "--error", "--unbuffered", "--ntasks*", "--gpus*", "--cpu-bind*", "--is-hybrid-model", "--mamba-*", "--group-query*", "--no-initialization", "--num-layers-in-*", "--yaml-cfg", "--no-use*", "--use-fused-*", "--adlr-*", "--use-tp-pp-*", "--replication*", "--result-*", "--rerun-*", "--error-*", "--straggler*", "--inprocess*", "--trust-remote-code", "--heterogeneous-*", "--bert-*", "--ict-*",
}

// megatronFinish turns what depends on several arguments into facts.
func megatronFinish(r *Recipe) {
	for _, k := range []string{"--fp8-format", "--fp8-hybrid", "--fp8-e4m3"} {
		if r.hasKey(k) {
			r.texts[Precision] = "fp8"
		}
	}
	if r.hasKey("--num-query-groups") && !r.hasKey("--group-query-attention") {
		delete(r.numbers, KVHeads)
		r.assume("keys and values of every head: without --group-query-attention, Megatron-LM does not read --num-query-groups")
	}
	r.expertShards("--expert-tensor-parallel-size", r.degree(TP))
	r.oneFormat("--bf16", "--fp16")
	if r.texts[Precision] == "" && r.has("program") {
		r.texts[Precision] = "fp32"
		r.fp32("--bf16 nor --fp16")
	}
	if r.valueOf("--recompute-modules") == "core_attn" { // as without it
		r.without("--recompute-modules")
	}
	if r.hasKey("--recompute-activations") { // which wins over the granularity
		r.texts[Recompute] = "selective"
	}
	if n, ok := (&keyfile.Entry{Value: r.valueOf("--optimizer-offload-fraction")}).Whole(); ok && n == 1 {
		r.without("--optimizer-offload-fraction")
	}
	if r.hasKey("--fp4-format") {
		r.texts[Precision] = "fp4"
	}
	if n := r.numbers[Nodes]; n == 0 && r.numbers[PerNode] > 0 && (r.hasKey("--nproc-per-node") || r.hasKey("--num-gpus")) {
		r.numbers[Nodes] = 1
	}
	if r.numbers[Layers] > 0 || r.texts[hybrid] != "" {
		r.setDefault(Gated, 0)
		r.setDefault(Tied, 1)
	}
	if text := r.texts[layout]; text != "" && r.numbers[Layers] > 0 {
		if chunks := strings.Count(pattern.Layout(text), "|") + 1; chunks%r.degree(PP) == 0 {
			r.numbers[VPP] = max(chunks/r.degree(PP), 1)
		} else {
			r.problem("--pipeline-model-parallel-layout has %d chunks for %d stages", chunks, r.degree(PP))
		}
	}
	if r.texts[Recompute] == "full" && r.texts[Offload] == "" && r.hasKey("--cpu-offloading") {
		r.problem("--cpu-offloading does not go with full recomputation")
	}
}

// expertShards warns where each expert is split over other than the ranks of tp that ep leaves, which plans mean. n is the
// usual number where the file lacks key.
func (r *Recipe) expertShards(key string, n int) {
	for _, e := range r.entries {
		if given, ok := e.Whole(); ok && strings.HasSuffix(e.Key, key) {
			n = given
		}
	}
	tp, ep := r.degree(TP), r.degree(EP)
	if plan := max(tp, ep) / max(ep, 1); ep > 1 && tp > 1 && n != plan {
		r.Uncounted = append(r.Uncounted, Uncounted{key, strconv.Itoa(n), fmt.Sprintf("each expert is split over %d tensor parallel ranks, and predicted over %d", n, plan), 0.3, 0.4})
	}
}
