package launch

import (
	"fmt"
	"math"
	"strings"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/perfmodel/spec/stack"
)

// megatron is Megatron-LM. The names are those of megatron/training/arguments.py
// of core 0.15, and the conditions those its validate_args asserts.
var megatron = Framework{
	Name:     "megatron",
	Doc:      "Megatron-LM: a script with the flags of pretrain_gpt.py or pretrain_bert.py, under torchrun",
	Version:  "Megatron-LM core 0.15 (megatron/training/arguments.py)",
	Stack:    "Megatron Core@0.15",
	File:     "launch.sh",
	settings: megatronSettings,
	lacks:    megatronLacks,
	write:    writeMegatron,
}

func megatronLacks(c *spec.Config, s *stack.Parts) []lack {
	var l lacking
	p, m := &c.Plan, &c.Model
	l.servers(p)
	l.zeroBubbleH(p)
	l.when(p.Schedule.VShaped() || p.Schedule == spec.ScheduleGPipe, "schedule", p.Schedule, "pipelines run 1F1B")
	l.when(m.Kind != spec.Decoder && m.Kind != spec.Encoder || !m.HasShape(), "model", kindOf(m), "pretrain_gpt.py and pretrain_bert.py train decoders and encoders of known shape")
	l.when(c.Seq() == 0, "model", "no sequence length", "--seq-length is required")
	l.when(p.Offload == spec.OffloadParams, "offload", p.Offload, "parameters stay on the devices")
	l.when(p.Offload == spec.OffloadOptimizer && p.ZeRO > 1, "offload", p.Offload, "--optimizer-cpu-offload goes with the distributed optimizer (zero 0 and 1), not with Megatron-FSDP")
	l.when(p.TP > 1 && m.Experts > 0 && !p.SequenceParallel, "sp", 0, "experts with tp > 1 are trained with sequence parallelism only")
	l.when(p.EP > 1 && p.TP > p.EP && p.TP%p.EP != 0, "ep", p.EP, "ep or tp=%d must divide the other", p.TP)
	l.when(p.CP > 1 && c.Seq()%(2*p.CP) != 0, "cp", p.CP, "2 x cp must divide %d tokens", c.Seq())
	l.when(m.Experts > 0 && p.EP > 1 && p.Precision == spec.FP16, "precision", p.Precision, "experts are not trained in fp16")
	l.when(p.Precision.Format() == spec.FP8 && (s.Weights == stack.FP8 || s.Weights == stack.FP8Once) && p.ZeRO == 0 && p.Offload == spec.OffloadNone, "stack", "weights="+s.Weights, "--fp8-param-gather goes with the distributed optimizer (zero 1 and above)")
	l.precision(p.Precision, "it has no such format", spec.BF16, spec.FP16, spec.FP32, spec.TF32, spec.FP8, spec.FP4, "")
	return l
}

// kindOf names a model's kind for a message.
func kindOf(m *spec.Model) string {
	if m.Kind == "" {
		return "of unknown kind"
	}
	return string(m.Kind)
}

func writeMegatron(f Framework, c *spec.Config, d *spec.Details) Script {
	var b bash
	p := &c.Plan
	b.head(c, f)
	b.torchrun(c.Shape)
	switch {
	case p.ZeRO > 1:
		b.line("unset CUDA_DEVICE_MAX_CONNECTIONS # Megatron-FSDP does not run with 1")
	case p.TP > 1 || p.CP > 1:
		b.line("export CUDA_DEVICE_MAX_CONNECTIONS=1 # tp and cp ask for it before Blackwell")
	}
	b.tf32(p.Precision)
	b.array("MODEL", megatronModel(c, d)...)
	b.array("PLAN", append(megatronPlan(c, f.parts(c)), megatronStack(&f, c)...)...)
	b.comment("Not of the plan: what is trained on, for how long, how fast it learns.")
	b.array("TRAIN", append(megatronData(&c.Model), []string{"--train-iters", `"${TRAIN_ITERS:-50}"`}, []string{"--lr", `"${LR:-1e-4}"`},
		[]string{"--eval-iters", "0"}, []string{"--log-throughput"}, []string{"--log-interval", "1"})...)
	script := "pretrain_gpt.py"
	if c.Model.Kind == spec.Encoder {
		script = "pretrain_bert.py"
	}
	b.line(`cd "${MEGATRON:-.}" # a checkout of NVIDIA/Megatron-LM`)
	b.line(`exec "${TORCHRUN[@]}" %s "${MODEL[@]}" "${PLAN[@]}" "${TRAIN[@]}" "$@"`, script)
	return Script{Text: b.String(), Notes: megatronNotes(c, d)}
}

// megatronNotes names the flags that follow a convention and not the model.
func megatronNotes(c *spec.Config, d *spec.Details) []string {
	var out []string
	m := c.Model
	if counted := m; m.ParamCount > 0 {
		counted.ParamCount = 0
		if n := counted.Params(); n > 0 && math.Abs(n/m.ParamCount-1) > 0.02 {
			out = append(out, fmt.Sprintf("%s has %.4g parameters, the shape in the flags %.4g: what sets it apart has to be added", m.Name, m.ParamCount, n))
		}
	}
	if m.LeadingDense() > 0 {
		out = append(out, "the layers without experts are written as the first ones (--moe-layer-freq)")
	}
	if m.KVRank > 0 {
		out = append(out, "latent attention has positions stretched by YaRN unless --rope-type rope is given: check --rotary-scaling-factor")
	}
	if m.Kind == spec.Decoder {
		out = append(out, "TRAIN mocks the data")
	}
	return append(out, megatronLayerNotes(&m, d)...)
}

// megatronData writes the flags of the data: mock samples for decoders, for which the
// tokenizer adds one token to the vocabulary. Encoders have no mock samples.
func megatronData(m *spec.Model) [][]string {
	if m.Kind == spec.Encoder {
		return [][]string{{"--data-path", `"${DATA_PATH:?a preprocessed data set}"`}, {"--tokenizer-type", "BertWordPieceLowerCase"}, {"--vocab-file", `"${VOCAB_FILE:?the vocabulary}"`}}
	}
	return [][]string{{"--mock-data"}, {"--tokenizer-type", "NullTokenizer"}, {"--vocab-size", itoa(max(m.Vocab-1, 1))}}
}

// megatronModel writes the flags of the network.
func megatronModel(c *spec.Config, d *spec.Details) [][]string {
	m := &c.Model
	a := [][]string{
		{"--num-layers", itoa(m.Layers)}, {"--hidden-size", itoa(m.Hidden)}, {"--num-attention-heads", itoa(m.Heads)},
	}
	if m.FFN > 0 {
		a = append(a, []string{"--ffn-hidden-size", itoa(m.FFN)})
	}
	a = append(a, megatronHeads(m, d)...)
	a = append(a, []string{"--seq-length", itoa(c.Seq())}, []string{"--max-position-embeddings", itoa(max(c.Seq(), m.SeqLen))})
	a = append(a, megatronLayers(m, d)...)
	if m.MTPLayers > 0 {
		a = append(a, []string{"--mtp-num-layers", itoa(m.MTPLayers)})
	}
	if !m.TiedEmbeddings {
		a = append(a, []string{"--untie-embeddings-and-output-weights"})
	}
	a = append(a, []string{"--attention-dropout", "0"}, []string{"--hidden-dropout", "0"})
	return append(a, megatronExperts(m)...)
}

// megatronHeads writes the heads of attention. Latent attention normalizes its compressed queries, keys and values
// (DeepSeek-V2, arXiv 2405.04434, section 3.1.2).
func megatronHeads(m *spec.Model, d *spec.Details) [][]string {
	var a [][]string
	if m.Head()*m.Heads != m.Hidden {
		a = append(a, []string{"--kv-channels", itoa(m.Head())})
	}
	l, latent := m.Latent()
	if !latent {
		if m.KV() != m.Heads {
			a = append(a, []string{"--group-query-attention"}, []string{"--num-query-groups", itoa(m.KV())})
		}
		return a
	}
	a = append(a, []string{"--multi-latent-attention"})
	if m.QRank > 0 {
		a = append(a, []string{"--q-lora-rank", itoa(m.QRank)})
	}
	a = append(a, []string{"--kv-lora-rank", itoa(m.KVRank)}, []string{"--qk-head-dim", itoa(m.Head())},
		[]string{"--qk-pos-emb-head-dim", itoa(int(l.Rotated))}, []string{"--v-head-dim", itoa(m.Head())})
	if !d.QKNorm {
		a = append(a, []string{"--qk-layernorm"})
	}
	return a
}

func megatronExperts(m *spec.Model) [][]string {
	if m.Experts == 0 {
		return nil
	}
	a := [][]string{
		{"--num-experts", itoa(m.Experts)}, {"--moe-router-topk", itoa(m.ExpertsPerToken)}, {"--moe-ffn-hidden-size", itoa(m.ExpertFFN)},
	}
	if m.ExpertsPerToken == 1 { // softmax of one score has no gradient
		a = append(a, []string{"--moe-router-pre-softmax"})
	}
	if m.SharedExperts > 0 {
		a = append(a, []string{"--moe-shared-expert-intermediate-size", itoa(m.SharedExperts * m.ExpertFFN)})
	}
	switch {
	case m.MoEEvery > 1:
		pattern := fmt.Sprintf("([0]*%d+[1])*%d", m.MoEEvery-1, m.MoELayers())
		if rest := m.Layers % m.MoEEvery; rest > 0 {
			pattern += fmt.Sprintf("+[0]*%d", rest)
		}
		a = append(a, []string{"--moe-layer-freq", pattern})
	case m.DenseLayers > 0:
		a = append(a, []string{"--moe-layer-freq", fmt.Sprintf("([0]*%d+[1]*%d)", m.DenseLayers, m.MoELayers())})
	}
	return a
}

// megatronPlan writes the flags of the plan.
func megatronPlan(c *spec.Config, parts *stack.Parts) [][]string {
	p := &c.Plan
	a := [][]string{{"--micro-batch-size", itoa(p.MicroBatch)}, {"--global-batch-size", itoa(p.GlobalBatch())},
		{"--tensor-model-parallel-size", itoa(p.TP)}, {"--pipeline-model-parallel-size", itoa(p.PP)}, {"--context-parallel-size", itoa(p.CP)}}
	a = append(a, megatronStages(c)...)
	if c.Model.Experts > 0 {
		a = append(a, []string{"--expert-model-parallel-size", itoa(p.EP)}, []string{"--expert-tensor-parallel-size", itoa(expertTP(p))})
		if p.Precision == spec.BF16 || p.Precision == spec.FP8 {
			a = append(a, []string{"--moe-grouped-gemm"})
		}
		if m, nodes := &c.Model, p.EP/max(c.Shape.Most(), 1); m.NodeLimit > 0 && nodes > m.NodeLimit && p.EP%c.Shape.Most() == 0 && m.Experts%nodes == 0 {
			a = append(a, []string{"--moe-router-num-groups", itoa(nodes)}, []string{"--moe-router-group-topk", itoa(m.NodeLimit)}) // groups are nodes
		}
		if p.EP == 1 {
			a = append(a, []string{"--moe-token-dispatcher-type", "alltoall"})
		}
	}
	if p.SequenceParallel {
		a = append(a, []string{"--sequence-parallel"})
	}
	a = append(a, megatronZeRO(p)...)
	a = append(a, megatronRecompute(p, parts)...)
	return append(a, megatronPrecision(p, parts)...)
}

// megatronStages writes the layers of each stage where stages are uneven.
func megatronStages(c *spec.Config) [][]string {
	p := &c.Plan
	switch {
	case uneven(c):
		var parts []string
		for _, n := range chunks(c) {
			part := ""
			if n > 0 {
				part = fmt.Sprintf("t*%d", n)
			}
			parts = append(parts, part)
		}
		last := strings.Repeat("m", c.Model.MTPLayers) + "L"
		return [][]string{{"--pipeline-model-parallel-layout", "E" + strings.Join(parts, "|") + last}}
	case p.VirtualStages > 1:
		return [][]string{{"--num-layers-per-virtual-pipeline-stage", itoa(c.Model.Layers / (p.PP * p.VirtualStages))}}
	}
	return nil
}

// megatronZeRO writes what data parallel ranks shard: nothing, the optimizer states
// (distributed optimizer), or gradients and parameters too (Megatron-FSDP).
func megatronZeRO(p *spec.Plan) [][]string {
	var a [][]string
	if p.ZeRO > 0 || p.Offload == spec.OffloadOptimizer {
		a = append(a, []string{"--use-distributed-optimizer"})
	}
	if p.ZeRO > 1 {
		strategy := map[int]string{2: "optim_grads", 3: "optim_grads_params"}[p.ZeRO]
		a = append(a, []string{"--use-megatron-fsdp"}, []string{"--data-parallel-sharding-strategy", strategy},
			[]string{"--no-gradient-accumulation-fusion"}, []string{"--ckpt-format", "fsdp_dtensor"})
	}
	if n := replicas(p); p.ZeRO > 0 && n > 1 {
		a = append(a, []string{"--num-distributed-optimizer-instances", itoa(n)})
	}
	if p.Offload == spec.OffloadOptimizer {
		a = append(a, []string{"--optimizer-cpu-offload"}, []string{"--optimizer-offload-fraction", "1.0"}, []string{"--use-precision-aware-optimizer"})
	}
	return a
}

// megatronRecompute writes recomputation, with the modules that the training stack states.
func megatronRecompute(p *spec.Plan, parts *stack.Parts) [][]string {
	switch p.Recompute {
	case spec.RecomputeSelective:
		return [][]string{{"--recompute-granularity", "selective"}, append([]string{"--recompute-modules"}, parts.ModuleNames()...)}
	case spec.RecomputeFull:
		return [][]string{{"--recompute-granularity", "full"}, {"--recompute-method", "uniform"}, {"--recompute-num-layers", "1"}}
	}
	return nil
}

// megatronPrecision writes the number format. 8 and 4 bits are the format of
// multiplications; parameters are bf16 unless --fp8-param-gather is given. Delayed scaling refuses to recompute norms and
// the activation of experts.
func megatronPrecision(p *spec.Plan, parts *stack.Parts) [][]string {
	switch p.Precision {
	case spec.BF16:
		return [][]string{{"--bf16"}}
	case spec.FP16:
		return [][]string{{"--fp16"}}
	case spec.FP8:
		recipe := "delayed"
		if again := parts.Modules(); p.Recompute == spec.RecomputeSelective && (again.Norms || again.MoEAct) {
			recipe = "tensorwise"
		}
		return [][]string{{"--bf16"}, {"--fp8-format", "hybrid"}, {"--fp8-recipe", recipe}}
	case spec.FP4:
		return [][]string{{"--bf16"}, {"--fp4-format", "e2m1"}, {"--fp4-recipe", "nvfp4"}}
	}
	return nil
}
