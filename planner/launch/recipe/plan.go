package recipe

import (
	"cmp"
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"

	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// Plan returns the execution plan of the file on that many devices, 0 = those of the file. notes say what was assumed. It is
// an error if the devices are not known, or the degrees do not divide them.
func (r *Recipe) Plan(devices int) (p spec.Plan, notes []string, err error) {
	note := func(format string, args ...any) { notes = append(notes, fmt.Sprintf(format, args...)) }
	if n, ok := r.numbers[Devices]; ok && devices == 0 {
		devices = n
	}
	if devices < 1 || devices > maxDevices {
		return p, nil, fmt.Errorf("recipe: %s: the number of devices is not known: got %d, want 1..%d", r.name, devices, maxDevices)
	}
	p = spec.Plan{TP: r.degree(TP), PP: r.degree(PP), CP: r.degree(CP), EP: r.degree(EP), VirtualStages: max(r.degree(VPP), 1)}
	if p.PP == 1 {
		p.VirtualStages = 1 // layers of a stage without a pipeline
	}
	split := mul(mul(p.TP, p.PP), p.CP)
	if split < 1 || p.EP < 1 || devices%split != 0 {
		return p, nil, fmt.Errorf("recipe: %s: %d devices, but tp=%d x pp=%d x cp=%d = %d does not divide them", r.name, devices, p.TP, p.PP, p.CP, split)
	}
	p.DP = devices / split
	r.modes(&p, note)
	if err := r.batch(&p, note); err != nil {
		return p, nil, err
	}
	return p.Normal(), notes, nil
}

// maxDevices bounds the devices of a plan.
const maxDevices = 1 << 20

// batch sets micro-batch and accumulation. A global batch that the file gives stays, whatever the devices are.
func (r *Recipe) batch(p *spec.Plan, note func(string, ...any)) error {
	micro, hasMicro := r.numbers[MicroBatch]
	if !hasMicro {
		micro = 1
		per := entry{value: r.texts[perDevice]}
		if n, ok := per.whole(); ok && n > 0 {
			micro = mul(n, p.TP*p.PP*p.CP)
			if p.PP > 1 {
				p.AccumSteps, micro = micro, 1
			}
		} else if r.Format != "torchtitan" && r.Format != "megatron" {
			note("the micro-batch is not in the file: 1 is assumed")
		}
	}
	p.MicroBatch = micro
	global, hasGlobal := r.numbers[GlobalBatch]
	if local, ok := r.numbers[localBatch]; ok && p.PP > 1 && !r.explicit[GlobalBatch] {
		global, hasGlobal = mul(local, p.DP), true
	} else if hasGlobal && !r.explicit[GlobalBatch] {
		hasGlobal = false
	}
	if accum, ok := r.numbers[GradAccum]; ok && r.explicit[GradAccum] && !(hasGlobal && r.explicit[GlobalBatch] && hasMicro && mul(micro, mul(accum, p.DP)) != global) {
		p.AccumSteps = max(accum, 1)
		if hasGlobal && !hasMicro && global%mul(p.AccumSteps, p.DP) == 0 {
			p.MicroBatch = global / mul(p.AccumSteps, p.DP)
		}
		return r.checkBatch(p)
	}
	if !hasGlobal {
		p.AccumSteps = max(p.AccumSteps, 1)
		return r.checkBatch(p)
	}
	if global < 1 || micro < 1 || global%mul(micro, p.DP) != 0 {
		return fmt.Errorf("recipe: %s: a global batch of %d is not a multiple of micro-batch %d x dp=%d", r.name, global, micro, p.DP)
	}
	p.AccumSteps = global / mul(micro, p.DP)
	return r.checkBatch(p)
}

func (r *Recipe) checkBatch(p *spec.Plan) error {
	const most = 1 << 24
	if p.MicroBatch < 1 || mul(p.MicroBatch, mul(p.AccumSteps, p.DP)) > most {
		return fmt.Errorf("recipe: %s: micro-batch %d x %d accumulation steps x dp=%d is not in 1..%d samples", r.name, p.MicroBatch, p.AccumSteps, p.DP, most)
	}
	return nil
}

// stageInName finds the ZeRO stage in the name of a DeepSpeed file.
var stageInName = regexp.MustCompile(`(?i)(?:zero|_z|/z|z)[-_]?(?:stage)?[-_]?([0-3])`)

// modes sets ZeRO, offload, recomputation, schedule, sequence parallelism and precision.
func (r *Recipe) modes(p *spec.Plan, note func(string, ...any)) {
	stage, ok := r.numbers[ZeRO]
	if !ok {
		for _, key := range []string{"deepspeed", "deepspeed_config.deepspeed_config_file"} {
			if m := stageInName.FindStringSubmatch(r.valueOf(key)); m != nil {
				stage, _ = strconv.Atoi(m[1])
				note("zero=%d is taken from the name of %s; --set zero_stage=N replaces it", stage, r.valueOf(key))
			} else if v := r.valueOf(key); v != "" {
				stage = 3
				note("zero=3 is assumed for %s; --set zero_stage=N replaces it", v)
			}
		}
	}
	p.ZeRO = stage
	if p.PP > 1 && p.ZeRO > 1 {
		note("zero=%d with a pipeline is predicted as zero=1", p.ZeRO)
		p.ZeRO = 1
	}
	switch o := r.texts[Offload]; {
	case strings.Contains(o, "params"):
		p.Offload, p.ZeRO = spec.OffloadParams, 3
	case strings.Contains(o, "optimizer"):
		if p.Offload = spec.OffloadOptimizer; p.ZeRO == 0 {
			p.ZeRO = 1
		}
	}
	if p.DP*p.CP == 1 && p.Offload != spec.OffloadParams {
		p.ZeRO = 0
	}
	if n := r.numbers[instances]; n > 1 && p.ZeRO > 0 && p.DP*p.CP%n == 0 {
		p.Shard = p.DP * p.CP / n
	} else if n := r.numbers[Shard]; n > 0 && p.ZeRO > 0 && n < p.DP*p.CP && p.DP*p.CP%n == 0 {
		p.Shard = n
	}
	p.Recompute = spec.Recompute(r.texts[Recompute])
	if s := r.texts[Schedule]; p.PP > 1 && s != "" {
		p.Schedule = spec.Schedule(s)
		if p.Schedule.ZeroBubble() || p.Schedule == spec.ScheduleGPipe {
			p.VirtualStages = 1
		}
		if n := r.numbers[Layers]; p.Schedule == spec.ScheduleZBV && n > 0 && n%(2*p.PP) != 0 {
			note("schedule=%s with %d layers, which two chunks on each of %d stages do not divide, is predicted as 1f1b", p.Schedule, n, p.PP)
			p.Schedule = spec.ScheduleDefault
		}
		if p.Schedule.ZeroBubble() && p.Recompute == spec.RecomputeFull {
			note("schedule=%s with full recomputation is predicted as 1f1b", p.Schedule)
			p.Schedule = spec.ScheduleDefault
		}
	}
	p.SequenceParallel = p.TP > 1 && r.numbers[SP] == 1
	switch v := r.texts[Precision]; v {
	case "int8", "int4":
		note("multiplications in %s are predicted as bf16", v)
		p.Precision = spec.BF16
	default:
		p.Precision = spec.Precision(v)
	}
}

// Samples returns the tokens of one sample, 0 where the file does not say.
func (r *Recipe) Samples() int { return r.numbers[SeqLen] }

// TrainTokens returns the tokens that the file trains on, by its steps or samples, 0 where it does not say.
func (r *Recipe) TrainTokens(globalBatch, seq int) float64 {
	number := func(key string) float64 {
		e := entry{value: r.valueOf(key)}
		n, _ := e.whole()
		return float64(max(n, 0))
	}
	if n := number("--train-tokens"); n > 0 {
		return n
	}
	if n := number("--train-samples"); n > 0 {
		return n * float64(seq)
	}
	for _, key := range []string{"--train-iters", "training.steps", "trainer.max_steps", "step_scheduler.max_steps", "max_steps", "steps", "train_steps"} {
		if n := number(key); n > 0 {
			return n * float64(globalBatch) * float64(seq)
		}
	}
	return 0
}

// Tokenizer returns the name of the tokenizer, "" where the file does not say.
func (r *Recipe) Tokenizer() string { return r.texts[tokenizer] }

// Network returns the network that the file describes by its widths; ok is false where it has none. notes say what was
// assumed. vocab is the vocabulary where the file gives none.
func (r *Recipe) Network(vocab int) (m spec.Model, notes []string, ok bool) {
	note := func(format string, args ...any) { notes = append(notes, fmt.Sprintf(format, args...)) }
	layers, hidden := r.numbers[Layers], r.numbers[Hidden]
	if hidden < 1 || r.numbers[Heads] < 1 || layers < 1 && r.texts[hybrid] == "" {
		return m, nil, false
	}
	m = spec.Model{Kind: spec.Decoder, Layers: layers, Hidden: hidden, Heads: r.numbers[Heads], KVHeads: r.numbers[KVHeads], HeadDim: r.numbers[HeadDim], FFN: r.numbers[FFN],
		Vocab: r.numbers[Vocab], SeqLen: r.numbers[SeqLen], QRank: r.numbers[QRank], KVRank: r.numbers[KVRank], MTPLayers: r.numbers[MTP],
		GatedMLP: r.numbers[Gated] == 1, TiedEmbeddings: r.or(Tied, 0) == 1}
	if strings.Contains(r.valueOf("program"), "bert") {
		m.Kind = spec.Encoder
	}
	if m.Vocab == 0 {
		m.Vocab = vocab
		note("the vocabulary is not in the file: %d tokens are assumed; --set vocab=N replaces them", vocab)
	}
	if m.FFN == 0 && r.numbers[Experts] == 0 || m.FFN == 0 && r.numbers[ExpertFFN] == 0 {
		m.FFN = 4 * hidden
		if m.GatedMLP && r.Format == "megatron" { // arguments.py: int((4 * hidden * 2 / 3) / 64) * 64
			m.FFN = int(float64(4*hidden)*2/3/64) * 64
		}
	}
	r.patterns(&m, note)
	r.expertsOf(&m, note)
	m.Name = fmt.Sprintf("%dx%d", m.Layers, m.Hidden)
	return m, notes, true
}

// patterns reads the layers of hybrids: M is a mixer, * attention, - an MLP, E experts.
func (r *Recipe) patterns(m *spec.Model, note func(string, ...any)) {
	pattern := r.texts[hybrid]
	if pattern == "" {
		return
	}
	count := func(c string) int { return strings.Count(pattern, c) }
	m.Layers = count("M") + count("*") + count("-") + count("E")
	m.SSMLayers, m.MLPLayers = count("M"), count("-")+count("E")
	m.SSMHeadDim, m.SSMState, m.SSMGroups = 64, 128, 8
	m.SSMHeads = 2 * m.Hidden / 64
	note("mixers of width 2 x hidden, with heads of 64, a state of 128 and 8 groups, are assumed")
}

// expertsOf reads the experts.
func (r *Recipe) expertsOf(m *spec.Model, note func(string, ...any)) {
	m.Experts = r.numbers[Experts]
	if m.Experts < 2 {
		m.Experts = 0
		return
	}
	m.ExpertsPerToken = min(r.or(TopK, 2), m.Experts)
	if r.numbers[TopK] == 0 && r.hasKey("--moe-train-capacity-factor") {
		m.ExpertsPerToken = 1
	}
	m.ExpertFFN = cmp.Or(r.numbers[ExpertFFN], m.FFN)
	if shared := r.numbers[SharedFFN]; shared > 0 && m.ExpertFFN > 0 {
		m.SharedExperts = max(int(math.Round(float64(shared)/float64(m.ExpertFFN))), 1)
	}
	pattern := r.texts[moeFreq]
	if pattern == "" || pattern == "1" {
		return
	}
	dense, every, ok := denseLayers(pattern, m.LayersWithMLP())
	if !ok {
		note("--moe-layer-freq %s is not understood: all layers are taken to have experts", pattern)
		return
	}
	if m.DenseLayers = dense; every > 1 {
		m.MoEEvery = every
	}
}

// AdapterText returns the adapter as a request has it, such as lora:16:qkv+o; "" without one.
func (r *Recipe) AdapterText() string {
	kind := r.texts[Adapter]
	if kind == "" {
		return ""
	}
	rank := max(r.numbers[LoRARank], 0)
	if rank == 0 {
		rank = 8 // the default of PEFT
	}
	out := fmt.Sprintf("%s:%d", kind, rank)
	text := strings.ToLower(r.texts[Modules])
	var parts []string
	for _, m := range []struct {
		name  string
		words []string
	}{{"qkv", []string{"q_proj", "k_proj", "v_proj", "qkv", "query", "all", "*_proj"}}, {"o", []string{"o_proj", "dense", "all", "*_proj"}}, {"mlp", []string{"gate_proj", "up_proj", "down_proj", "fc1", "fc2", "all", "*_proj"}}} {
		for _, w := range m.words {
			if strings.Contains(text, w) {
				parts = append(parts, m.name)
				break
			}
		}
	}
	if len(parts) > 0 {
		out += ":" + strings.Join(parts, "+")
	}
	return out
}

// Set replaces a number or text that a file gives, by the name of its field.
func (r *Recipe) Set(name, value string) error {
	of := Field(name)
	if r.replaced == nil {
		r.replaced = map[string]string{}
	}
	r.replaced[name] = value
	switch of {
	case ModelName, Offload, Recompute, Precision, Optimizer, Adapter, Schedule:
		r.texts[of] = value
		return nil
	}
	e := entry{value: value}
	n, ok := e.whole()
	if !ok || n < 0 {
		return fmt.Errorf("recipe: %s: %q is not a whole number of 0 or more", name, value)
	}
	r.numbers[of], r.explicit[of] = n, true
	return nil
}

// Settable reports whether Set knows a name.
func Settable(name string) bool {
	switch Field(name) {
	case Layers, Hidden, Heads, KVHeads, HeadDim, FFN, Vocab, SeqLen, TP, PP, CP, EP, VPP, ZeRO, Shard, MicroBatch, GradAccum, GlobalBatch, LoRARank, Devices, SP,
		ModelName, Offload, Recompute, Precision, Optimizer, Adapter, Schedule:
		return true
	}
	return false
}
