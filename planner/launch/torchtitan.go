package launch

import (
	"fmt"
	"strings"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/perfmodel/spec/stack"
)

// torchtitan writes a job file of torchtitan. The names are those of
// torchtitan/config/job_config.py of 0.2, the last releases configured in TOML.
var torchtitan = Framework{
	Name:     "torchtitan",
	Doc:      "torchtitan: a TOML job file (FSDP2, HSDP, TP, PP, CP, EP, float8)",
	Version:  "torchtitan 0.2 (torchtitan/config/job_config.py)",
	Stack:    "torchtitan@2025-10", // the date of 0.2
	File:     "job.toml",
	settings: torchtitanSettings,
	lacks:    torchtitanLacks,
	write:    writeTorchtitan,
}

// torchtitanSettings are keys for parts of the training stack: what is compiled, and of [parallelism]. Zero-bubble schedules
// fail on compiled models (github.com/pytorch/pytorch/issues/161904). Asynchronous tensor parallelism is that of the
// compiler. FSDP and ZeRO 2 and 3 are the same.
var torchtitanSettings = []setting{
	{part: "launch", value: stack.Compiled, text: "model", when: compilable},
	{part: "launch", value: stack.Eager},
	{part: "loss", value: stack.Compiled, text: "loss", when: compilable},
	{part: "loss", value: stack.Plain},
	{part: "zero", value: stack.Buckets, when: func(c *spec.Config, _ *stack.Parts) bool { return c.Plan.ZeRO > 1 }},
	{part: "tp", value: stack.Async, text: "enable_async_tensor_parallel", when: func(c *spec.Config, p *stack.Parts) bool {
		return p.Launch == stack.Compiled && compilable(c, p)
	}},
}

func compilable(c *spec.Config, _ *stack.Parts) bool { return !c.Plan.Schedule.VShaped() }

func torchtitanLacks(c *spec.Config, _ *stack.Parts) []lack {
	var l lacking
	p, m := &c.Plan, &c.Model
	l.servers(p)
	l.zeroBubbleH(p)
	tm, known := titanModelOf(m)
	l.when(known && m.KVRank > 0 && tm.name != "deepseek_v3", "model", "latent attention", "only its DeepSeek V3 models have it")
	l.when(!known, "model", titanKind(m), "it has Llama 3, Qwen 3 and DeepSeek V3 models, and those of llama3's form")
	l.when(c.Seq() == 0, "model", "no sequence length", "training.seq_len is required")
	l.when(p.TP > 1 && !p.SequenceParallel, "sp", 0, "its tensor parallelism is sequence parallel")
	l.when(p.ZeRO == 0 && p.DP*p.CP > 1 && p.Devices() > p.DP, "zero", 0, "replicas without sharding are for tp, pp and cp of 1")
	l.when(p.ZeRO == 1 && p.PP == 1, "zero", 1, "gradients are reduced and sharded with every micro-batch: zero=2")
	l.when(p.Offload == spec.OffloadOptimizer, "offload", p.Offload, "training.enable_cpu_offload moves parameters too, which is offload=params")
	l.when(p.Offload == spec.OffloadParams && p.DP*p.CP == 1, "offload", p.Offload, "it comes with FSDP, which takes dp x cp > 1")
	l.when(p.Recompute == spec.RecomputeSelective, "recompute", p.Recompute, "its selective modes recompute every second layer or multiplication, not the attention core")
	l.when(p.EP > 1 && p.EP%(p.CP*p.TP) != 0, "ep", p.EP, "cp x tp=%d must divide ep", p.CP*p.TP)
	l.when(p.EP > 1 && titanShard(p)*p.CP*p.TP%p.EP != 0, "ep", p.EP, "it must divide the %d devices of a shard group x cp x tp", titanShard(p)*p.CP*p.TP)
	l.when(tm.name == "qwen3" && p.PP > 1, "pp", p.PP, "its Qwen 3 has no pipeline")
	l.when(tm.name == "deepseek_v3" && p.CP > 1 && p.TP > 1, "cp", p.CP, "its DeepSeek V3 does not go with tp and cp together")
	l.when(p.Shard > 0 && p.Shard%p.CP != 0, "shard", p.Shard, "states are sharded over all of cp=%d", p.CP)
	l.when(p.CP > 1 && c.Seq()%(2*p.CP*p.TP) != 0, "cp", p.CP, "tp x 2 x cp must divide %d tokens", c.Seq())
	l.when(p.VirtualStages > 1 && p.AccumSteps%p.PP != 0, "vp", p.VirtualStages, "pp=%d must divide ga=%d", p.PP, p.AccumSteps)
	l.when(c.Shape.Most() != c.Shape.Least(), "shape", c.Shape.Devices, "run_train.sh starts as many processes on every node")
	l.when(p.DP*p.CP == 1 && p.Devices() > 1 && p.Precision != spec.FP32 && p.Precision != spec.TF32, "precision", p.Precision,
		"mixed precision comes with data or context parallelism: with neither, tp and pp are trained in float32")
	l.precision(p.Precision, "parameters are bfloat16 or float32, multiplications these or float8", spec.BF16, spec.FP32, spec.TF32, spec.FP8, "")
	return l
}

// titanFlavors are the models of torchtitan by shape: name and flavor in
// torchtitan/models/*/__init__.py.
var titanFlavors = []struct {
	name, flavor                   string
	layers, hidden, heads, kv      int
	experts, expertFFN, vocabLeast int
}{
	{"llama3", "8B", 32, 4096, 32, 8, 0, 0, 128256},
	{"llama3", "70B", 80, 8192, 64, 8, 0, 0, 128256},
	{"llama3", "405B", 126, 16384, 128, 8, 0, 0, 128256},
	{"qwen3", "0.6B", 28, 1024, 16, 8, 0, 0, 151936},
	{"qwen3", "1.7B", 28, 2048, 16, 8, 0, 0, 151936},
	{"qwen3", "4B", 36, 2560, 32, 8, 0, 0, 151936},
	{"qwen3", "8B", 36, 4096, 32, 8, 0, 0, 151936},
	{"qwen3", "14B", 40, 5120, 40, 8, 0, 0, 151936},
	{"qwen3", "32B", 64, 5120, 64, 8, 0, 0, 151936},
	{"qwen3", "30B-A3B", 48, 2048, 32, 4, 128, 768, 151936},
	{"deepseek_v3", "16B", 27, 2048, 16, 16, 64, 1408, 102400},
	{"deepseek_v3", "236B", 60, 5120, 128, 128, 160, 1536, 102400},
	{"deepseek_v3", "671B", 61, 7168, 128, 128, 256, 2048, 129280},
}

// TorchtitanShape returns the layers and the width of a flavor of torchtitan's models.
func TorchtitanShape(name, flavor string) (layers, hidden int, ok bool) {
	for _, f := range titanFlavors {
		if f.name == name && f.flavor == flavor {
			return f.layers, f.hidden, true
		}
	}
	return 0, 0, false
}

// titanModel is torchtitan's name of a model.
type titanModel struct {
	name, flavor string
	own          bool // the flavor must be added to those of name
}

// titanModelOf returns the flavor with m's shape. Other dense decoders with gated MLPs
// have llama3's form and get a new flavor. Where m has no vocabulary, the rest of the
// shape decides.
func titanModelOf(m *spec.Model) (titanModel, bool) {
	for _, f := range titanFlavors {
		if m.Layers == f.layers && m.Hidden == f.hidden && m.Heads == f.heads && m.KV() == f.kv && m.Experts == f.experts &&
			(f.experts == 0 || m.ExpertFFN == f.expertFFN) && (m.Vocab == 0 || m.Vocab == f.vocabLeast) {
			return titanModel{name: f.name, flavor: f.flavor}, true
		}
	}
	if m.Kind == spec.Decoder && m.HasShape() && m.GatedMLP && m.Experts == 0 && m.Head()*m.Heads == m.Hidden {
		return titanModel{"llama3", m.Name, true}, true
	}
	return titanModel{}, false
}

// titanKind describes a model that torchtitan does not support.
func titanKind(m *spec.Model) string {
	switch {
	case m.Kind != spec.Decoder || !m.HasShape():
		return kindOf(m)
	case m.Experts > 0:
		return fmt.Sprintf("%d layers of width %d with %d experts", m.Layers, m.Hidden, m.Experts)
	case !m.GatedMLP:
		return "decoder with a plain MLP"
	}
	return fmt.Sprintf("decoder with heads of width %d", m.Head())
}

// tomlFile builds a job file.
type tomlFile struct{ strings.Builder }

func (t *tomlFile) table(name string)             { fmt.Fprintf(t, "\n[%s]\n", name) }
func (t *tomlFile) number(key string, n int)      { fmt.Fprintf(t, "%s = %d\n", key, n) }
func (t *tomlFile) flag(key string, v bool)       { fmt.Fprintf(t, "%s = %t\n", key, v) }
func (t *tomlFile) text(key, v string)            { fmt.Fprintf(t, "%s = %s\n", key, tomlString(v)) }
func (t *tomlFile) comment(s string)              { fmt.Fprintf(t, "# %s\n", oneLine(s)) }
func (t *tomlFile) texts(key string, vs []string) { fmt.Fprintf(t, "%s = %s\n", key, tomlStrings(vs)) }

// tomlString writes a basic string (TOML 1.0): quotes, backslashes and control
// characters escaped.
func tomlString(s string) string {
	var b strings.Builder
	b.WriteByte('"')
	for _, r := range strings.ToValidUTF8(s, "?") {
		switch {
		case r == '"' || r == '\\':
			b.WriteByte('\\')
			b.WriteRune(r)
		case r < ' ' || r == 0x7f:
			fmt.Fprintf(&b, `\u%04X`, r)
		default:
			b.WriteRune(r)
		}
	}
	b.WriteByte('"')
	return b.String()
}

func tomlStrings(vs []string) string {
	out := make([]string, len(vs))
	for i, v := range vs {
		out[i] = tomlString(v)
	}
	return "[" + strings.Join(out, ", ") + "]"
}

func writeTorchtitan(f Framework, c *spec.Config, d *spec.Details) Script {
	var t tomlFile
	p := &c.Plan
	for _, line := range title(c, f) {
		t.comment(line)
	}
	notes := t.model(c, d)
	settings, _ := f.follow(c)
	t.training(c)
	t.parallelism(c, written(settings, "tp"))
	t.table("activation_checkpoint")
	t.text("mode", string(p.Recompute)) // none and full, as torchtitan calls them
	if p.Precision == spec.FP8 {
		t.table("quantize.linear.float8")
		t.flag("enable_fsdp_float8_all_gather", p.ZeRO > 0)
		t.flag("precompute_float8_dynamic_scale_for_fsdp", p.ZeRO > 0)
		t.texts("filter_fqns", []string{"output"})
	}
	if compiled := append(written(settings, "launch"), written(settings, "loss")...); len(compiled) > 0 {
		t.table("compile")
		t.flag("enable", true)
		t.texts("components", compiled)
	}
	return Script{Text: t.String(), Notes: append(notes, titanStart(f, c)...)}
}

// titanStart returns the note about how to start the job.
func titanStart(f Framework, c *spec.Config) []string {
	per := c.Shape.Most()
	start := fmt.Sprintf("NGPU=%d CONFIG_FILE=%s ./run_train.sh", per, quote(f.File))
	if n := c.Shape.Nodes(); n > 1 {
		start = fmt.Sprintf("on every node: torchrun --nnodes %d --nproc-per-node %d --rdzv-backend c10d --rdzv-endpoint MASTER:29500 -m torchtitan.train --job.config_file %s", n, per, quote(f.File))
	}
	out := []string{"start it with: " + start}
	switch c.Plan.Precision {
	case spec.TF32:
		out = append(out, "precision=tf32: export TORCH_ALLOW_TF32_CUBLAS_OVERRIDE=1")
	case spec.FP32:
		out = append(out, "precision=fp32: export NVIDIA_TF32_OVERRIDE=0")
	}
	return out
}

// model writes the network, and the flavor to add to torchtitan's, if any.
func (t *tomlFile) model(c *spec.Config, d *spec.Details) (notes []string) {
	m := &c.Model
	tm, _ := titanModelOf(m)
	t.table("model")
	if tm.own {
		t.comment("To be added to the flavors in torchtitan/models/llama3/__init__.py, with:")
		for _, line := range titanFlavor(m, d) {
			t.comment("  " + line)
		}
		notes = append(notes, fmt.Sprintf("torchtitan has no model of this shape: add the flavor %s to llama3, as the comment in [model] says", m.Name))
		notes = append(notes, titanOwnNotes(d)...)
	}
	if m.MTPLayers > 0 {
		notes = append(notes, fmt.Sprintf("the modules of %s for multi-token prediction (mtp_layers=%d) are not trained: torchtitan has none", m.Name, m.MTPLayers))
	}
	t.text("name", tm.name)
	t.text("flavor", tm.flavor)
	if c.Plan.Precision == spec.FP8 {
		t.texts("converters", []string{"quantize.linear.float8"})
	}
	return notes
}

// training writes the batch. Without a pipeline a local batch is a micro-batch, and
// gradients accumulate up to the global batch; a pipeline splits a local batch into
// micro-batches.
func (t *tomlFile) training(c *spec.Config) {
	p := &c.Plan
	local := p.MicroBatch
	if p.PP > 1 {
		local *= p.AccumSteps
	}
	t.table("training")
	t.number("local_batch_size", local)
	t.number("global_batch_size", p.GlobalBatch())
	t.number("seq_len", c.Seq())
	if p.Precision == spec.FP32 || p.Precision == spec.TF32 {
		t.text("mixed_precision_param", "float32")
	} else {
		t.text("mixed_precision_param", "bfloat16")
	}
	t.text("mixed_precision_reduce", "float32")
	t.flag("enable_cpu_offload", p.Offload == spec.OffloadParams)
}

func (t *tomlFile) parallelism(c *spec.Config, flags []string) {
	p := &c.Plan
	shard := titanShard(p)
	t.table("parallelism")
	t.number("data_parallel_replicate_degree", p.DP/shard)
	t.number("data_parallel_shard_degree", shard)
	if p.ZeRO == 3 {
		t.text("fsdp_reshard_after_forward", "always")
	} else {
		t.text("fsdp_reshard_after_forward", "never")
	}
	t.number("tensor_parallel_degree", p.TP)
	for _, key := range flags {
		t.flag(key, true)
	}
	t.number("context_parallel_degree", p.CP)
	t.number("pipeline_parallel_degree", p.PP)
	if p.PP > 1 {
		t.pipeline(c)
	}
	if c.Model.Experts > 0 {
		t.number("expert_parallel_degree", p.EP)
		t.number("expert_tensor_parallel_degree", 1)
	}
}

// titanShard returns the number of replicas that states are sharded over; times CP it
// is the shard group.
func titanShard(p *spec.Plan) int {
	if p.ZeRO == 0 {
		return 1
	}
	return max(p.Shards()/p.CP, 1)
}

// pipeline writes the schedule and the layers of each stage: their number, or their
// names where stages are uneven.
func (t *tomlFile) pipeline(c *spec.Config) {
	p := &c.Plan
	t.text("pipeline_parallel_schedule", titanSchedule(p))
	t.number("pipeline_parallel_microbatch_size", p.MicroBatch)
	if !uneven(c) {
		t.number("pipeline_parallel_layers_per_stage", c.Model.Layers/(p.PP*p.Chunks()))
		t.number("pipeline_parallel_first_stage_less_layers", 0)
		t.number("pipeline_parallel_last_stage_less_layers", 0)
		return
	}
	held := chunks(c)
	parts := make([]string, len(held))
	next := 0
	for i, n := range held {
		var names []string
		if i == 0 {
			names = append(names, "tok_embeddings")
		}
		for range n {
			names = append(names, "layers."+itoa(next))
			next++
		}
		if i == len(held)-1 {
			names = append(names, "norm", "output")
		}
		parts[i] = "  " + tomlStrings(names)
	}
	fmt.Fprintf(t, "module_fqns_per_model_part = [\n%s,\n]\n", strings.Join(parts, ",\n"))
}

// titanSchedule returns the name of a schedule in torch.distributed.pipelining.
func titanSchedule(p *spec.Plan) string {
	switch {
	case p.Schedule == spec.ScheduleGPipe:
		return "GPipe"
	case p.Schedule == spec.ScheduleZBV:
		return "ZBVZeroBubble"
	case p.Schedule == spec.ScheduleDualPipeV:
		return "DualPipeV"
	case p.VirtualStages > 1:
		return "Interleaved1F1B"
	}
	return "1F1B"
}
