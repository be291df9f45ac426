package stack

// Stack is one release of a training stack.
type Stack struct {
	Name    string `json:"name"`
	Version string `json:"version,omitempty"` // of the first release with these parts, "" if its releases have dates only
	Date    string `json:"date"`              // of that release, YYYY-MM
	Parts   Parts  `json:"parts"`
	Reports Memory `json:"reports"` // what its own figure of peak memory counts
	Source  string `json:"source"`
}

// Memory says what a figure of peak memory counts.
type Memory string

// Figures of peak memory.
const (
	Device    Memory = "device"    // all memory of the device in use, as nvidia-smi shows it
	Reserved  Memory = "reserved"  // memory that PyTorch's allocator reserved: no context, no communicators
	Allocated Memory = "allocated" // memory of tensors: no fragmentation either
)

// line is the history of one training stack.
type line struct {
	name     string
	aliases  []string // further names
	after    string   // the line that this one became, "" if it goes on
	end      string   // date after which it was no longer developed, "" if it is
	releases []release
	reports  Memory
	source   string
}

// release is a change of parts at a date. parts holds "PART=VALUE" for those that differ from the release before,
// or, in the first one, from usual.
type release struct {
	version, date string
	parts         string
}

// usual is a PyTorch program without further libraries.
var usual = Parts{Attention: Unfused, Launch: Eager, Adapters: None, Loss: Plain, Weights: Half, Gradients: FP32, Reduce: Half, Overlap: None, Optimizer: Adam,
	ZeRO: FSDP, TP: None, Sequence: Plan, CP: Ring, EP: None, Dispatch: AllToAll, Routing: Plain, Sends: After, Stages: Even, Recompute: Core, Activations: Kept, Gathered: Again, Outputs: Freed}

// lines are the training stacks. Dates are those of the releases, or of the commits, that changed a part.
//
//   - Megatron-LM accumulates gradients in fp32: 18 bytes of state per parameter in total, as in Korthikanti et
//     al. 2022, figure 1. Since October 2021 the all-reduce of a column-parallel layer's backward pass runs beside the
//     gradients of its weights (ColumnParallelLinearWithAsyncAllreduce, which forks of before lack). FlashAttention is an
//     option since early 2023 (--use-flash-attn). From August 2023 on it runs on Megatron Core, with Transformer Engine's
//     attention.
//   - Megatron Core fuses bias, GELU, dropout and RoPE, overlaps gradients (--overlap-grad-reduce) and stage
//     transfers of interleaved pipelines (overlap_p2p_comm), and has a fused loss from 0.6 on
//     (--cross-entropy-loss-fusion). With bf16 it reduces gradients in fp32 (--accumulate-allreduce-grads-in-fp32).
//   - NeMo and Megatron-Bridge are Megatron Core with recipes: TP overlap in userbuffers, sequence parallelism, a
//     fused loss. The performance scripts behind the published figures of Megatron-Bridge keep gradients in bf16
//     (grad_reduce_in_fp32 = False in scripts/performance/configs). From 26.06 on those of gated experts on Blackwell
//     capture whole iterations and overlap all-to-alls with another micro-batch (moe_a2a_overlap).
//   - DeepSpeed keeps fp16 gradients in fp16. With bf16 (runtime/bf16_optimizer.py) it keeps those of the
//     micro-batch in bf16 and an fp32 accumulator. It reduces gradients and gathers weights in flat copies of at most
//     5e8 elements, and its pipeline engine keeps stage outputs (runtime/pipe/engine.py). Megatron-DeepSpeed has
//     FlashAttention since 2023-06; models of Hugging Face use PyTorch's kernel since transformers 4.36 (2023-12).
//   - PyTorch's FSDP shards fp32 weights; PyTorch has fused attention since 2.0 (2023-03). torchtitan compiles
//     blocks, reduces in fp32, saves every other multiplication under "selective"
//     (models/llama3/infra/parallelize.py), and prints the peak that the allocator reserved. It compiles the loss
//     too since 2025-04 (components/loss.py, pull request 1033). Asynchronous tensor parallelism is off by default.
//   - No run of LLM Foundry, Nanotron, Colossal-AI and the JAX stacks (one compiled program per step) was measured:
//     their parts come from their documents.
//   - pacer-torch is Pacer's own worker: PyTorch with autocast. It records allocated bytes.
var lines = []line{
	{name: "Megatron-LM", aliases: []string{"megatron"}, after: "Megatron Core", source: "github.com/NVIDIA/Megatron-LM; Narayanan et al. SC 2021; Korthikanti et al. 2022", releases: []release{
		{"", "2019-09", "launch=fused loss=parallel zero=buckets"},
		{"", "2021-10", "tp=async"},
		{"", "2023-02", "attention=flash"},
	}},
	{name: "Megatron Core", aliases: []string{"MCore", "Megatron-Core", "Megatron-LM Core"}, source: "github.com/NVIDIA/Megatron-LM, megatron/core, CHANGELOG.md", releases: []release{
		{"0.3", "2023-08", "attention=flash launch=compiled loss=parallel zero=buckets tp=async overlap=backward sends=ahead reduce=fp32"},
		{"0.8", "2024-08", "attention=cudnn"},
		{"0.12", "2025-05", "loss=fused"},
		{"0.13", "2025-08", "dispatch=per-node routing=fused"},
	}},
	{name: "NeMo Megatron", aliases: []string{"NeMo-Framework-Launcher", "NeMo Launcher"}, after: "NeMo", source: "github.com/NVIDIA/NeMo-Framework-Launcher", releases: []release{
		{"22.09", "2022-09", nemo},
	}},
	{name: "NeMo", aliases: []string{"NVIDIA NeMo", "NeMo Framework", "NeMo 2.0"}, after: "Megatron-Bridge", source: "github.com/NVIDIA/NeMo, docs and recipes", releases: []release{
		{"23.11", "2023-11", nemo},
		{"24.09", "2024-09", "attention=cudnn"},
		{"25.04", "2025-04", "dispatch=per-node"},
	}},
	{name: "Megatron-Bridge", aliases: []string{"Megatron Bridge", "NeMo Megatron-Bridge"}, source: "github.com/NVIDIA-NeMo/Megatron-Bridge, scripts/performance", releases: []release{
		{"25.09", "2025-09", nemo + " attention=cudnn gradients=16bit weights=fp8 dispatch=per-node routing=fused"},
		{"26.06", "2026-06", "routing=graphs ep=backward"},
	}},
	{name: "Megatron-DeepSpeed", aliases: []string{"GPT-NeoX", "BigScience Megatron-DeepSpeed"}, source: "github.com/deepspeedai/Megatron-DeepSpeed; github.com/bigscience-workshop/Megatron-DeepSpeed", end: "2024-06", releases: []release{
		{"", "2021-03", "launch=fused " + deepSpeed + " loss=parallel"},
		{"", "2023-06", "attention=flash"},
	}},
	{name: "DeepSpeed", aliases: []string{"microsoft/DeepSpeed"}, source: "github.com/deepspeedai/DeepSpeed", releases: []release{
		{"0.3", "2020-09", deepSpeed},
		{"0.12", "2023-12", "attention=torch"},
	}},
	{name: "Hugging Face", aliases: []string{"HuggingFace", "transformers", "HF Trainer", "HF"}, source: "github.com/huggingface/transformers, release 4.36", releases: []release{
		{"4.0", "2020-11", "loss=parallel " + deepSpeed},
		{"4.36", "2023-12", "attention=torch"},
	}},
	{name: "Accelerate", aliases: []string{"HF Accelerate", "axolotl", "TRL", "LLaMA-Factory"}, source: "github.com/huggingface/accelerate; github.com/axolotl-ai-cloud/axolotl; github.com/huggingface/trl", releases: []release{
		{"0.13", "2022-10", fsdp + " outputs=kept gathered=kept"},
		{"0.26", "2023-12", "attention=torch"},
	}},
	{name: "Unsloth", source: "github.com/unslothai/unsloth", releases: []release{
		{"", "2023-12", "attention=torch launch=fused loss=chunked zero=fsdp"},
	}},
	{name: "FSDP", aliases: []string{"PyTorch FSDP", "FSDP2", "torch FSDP", "fms-fsdp"}, source: "Zhao et al., VLDB 2023; github.com/foundation-model-stack/fms-fsdp", releases: []release{
		{"1.11", "2022-03", fsdp + " outputs=kept gathered=kept recompute=blocks"},
		{"2.0", "2023-03", "attention=torch launch=compiled"},
	}},
	{name: "torchtitan", source: "github.com/pytorch/torchtitan; Liang et al., ICLR 2025", reports: Reserved, releases: []release{
		{"", "2024-04", "attention=torch launch=compiled routing=fused reduce=fp32 sequence=always recompute=operators outputs=kept gathered=kept " + fsdp},
		{"", "2025-04", "loss=compiled"},
	}},
	{name: "LLM Foundry", aliases: []string{"llm-foundry", "MosaicML", "Composer"}, source: "github.com/mosaicml/llm-foundry", releases: []release{
		{"", "2023-04", "attention=flash " + fsdp},
	}},
	{name: "Nanotron", source: "github.com/huggingface/nanotron", releases: []release{
		{"", "2024-01", "attention=flash reduce=fp32 overlap=backward sequence=always loss=parallel zero=buckets"},
	}},
	{name: "Colossal-AI", aliases: []string{"ColossalAI"}, source: "github.com/hpcaitech/ColossalAI", releases: []release{
		{"", "2022-01", "overlap=backward loss=parallel zero=buckets"},
		{"", "2023-06", "attention=flash"},
	}},
	{name: "MaxText", source: "github.com/AI-Hypercomputer/maxtext", releases: []release{{"", "2023-04", jax}}},
	{name: "Levanter", source: "github.com/stanford-crfm/levanter", releases: []release{{"", "2023-06", jax}}},
	{name: "LitGPT", source: "github.com/Lightning-AI/litgpt", reports: Allocated, releases: []release{
		{"", "2023-03", "attention=torch overlap=backward"},
	}},
	{name: "InternEvo", source: "github.com/InternLM/InternEvo", releases: []release{
		{"", "2023-07", "attention=flash launch=fused overlap=backward loss=parallel gradients=16bit zero=buckets"},
	}},
	{name: "XTuner", source: "github.com/InternLM/xtuner", releases: []release{
		{"1.0", "2025-09", "attention=flash-3 launch=compiled loss=chunked ep=async " + fsdp},
	}},
	{name: "LiBai", aliases: []string{"OneFlow LiBai", "OneFlow"}, source: "github.com/Oneflow-Inc/libai", releases: []release{
		{"", "2022-03", "launch=compiled loss=parallel zero=buckets overlap=backward stages=middle"},
	}},
	{name: "PyTorch", aliases: []string{"PyTorch DDP", "DDP", "Lightning", "torchrun"}, source: "github.com/pytorch/pytorch", releases: []release{
		{"1.5", "2020-04", fsdp + " weights=autocast reduce=fp32 outputs=kept gathered=kept"},
		{"2.0", "2023-03", "attention=torch"},
	}},
	{name: "pacer-torch", source: "profiler/torch", reports: Allocated, releases: []release{
		{"", "2026-01", "attention=torch " + fsdp + " weights=autocast reduce=fp32 outputs=kept"},
	}},
}

// Parts that several lines share.
const (
	nemo      = "attention=flash launch=graphs loss=fused zero=buckets tp=fused overlap=backward sends=ahead sequence=always"
	deepSpeed = "zero=deepspeed outputs=kept cp=a2a"
	fsdp      = "zero=fsdp overlap=backward"
	jax       = "attention=flash launch=graphs reduce=fp32 overlap=backward tp=async loss=fused zero=fsdp"
)
