package recipe

import (
	"cmp"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/planner/launch/recipe/keyfile"
	"github.com/pacer-ml/pacer/planner/launch/recipe/pattern"
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

// perChip returns the samples of MaxText's per_device_batch_size, which may be a fraction.
func (r *Recipe) perChip() (n float64, ok bool) {
	n, err := strconv.ParseFloat(r.texts[perDevice], 64)
	return n, err == nil && n < keyfile.MaxNumber
}

// trainerMicroBatch is the default of per_device_train_batch_size in transformers.
const trainerMicroBatch = 8

// maxDevices bounds the devices of a plan.
const maxDevices = 1 << 20

// batch sets micro-batch and accumulation. A global batch that the file gives stays, whatever the devices are.
func (r *Recipe) batch(p *spec.Plan, note func(string, ...any)) error {
	micro, hasMicro := r.numbers[MicroBatch]
	assumed := false
	done := func() error {
		if assumed {
			note("the micro-batch is not in the file: %d is assumed", p.MicroBatch)
		}
		return r.checkBatch(p)
	}
	if !hasMicro {
		micro = 1
		if perChip, ok := r.perChip(); ok && perChip > 0 {
			samples := perChip * float64(p.TP*p.PP*p.CP)
			if micro = int(math.Round(samples)); micro < 1 || math.Abs(samples-float64(micro)) > 1e-6 {
				return fmt.Errorf("recipe: %s: per_device_batch_size=%s is %g samples on the %d chips of a replica: want a whole number", r.name, r.texts[perDevice], samples, p.TP*p.PP*p.CP)
			}
			if p.PP > 1 {
				p.AccumSteps, micro = micro, 1
			}
		} else if r.Format != "torchtitan" && r.Format != "megatron" {
			if r.Format == "trainer" {
				micro = trainerMicroBatch
			}
			assumed = true
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
			p.MicroBatch, assumed = global/mul(p.AccumSteps, p.DP), false
		}
		return done()
	}
	if !hasGlobal {
		p.AccumSteps = max(p.AccumSteps, 1)
		return done()
	}
	if global < 1 || micro < 1 || global%mul(micro, p.DP) != 0 {
		return fmt.Errorf("recipe: %s: a global batch of %d is not a multiple of micro-batch %d x dp=%d", r.name, global, micro, p.DP)
	}
	p.AccumSteps = global / mul(micro, p.DP)
	return done()
}

func (r *Recipe) checkBatch(p *spec.Plan) error {
	const most = 1 << 24
	if p.MicroBatch < 1 || mul(p.MicroBatch, mul(p.AccumSteps, p.DP)) > most {
		return fmt.Errorf("recipe: %s: micro-batch %d x %d accumulation steps x dp=%d is not in 1..%d samples", r.name, p.MicroBatch, p.AccumSteps, p.DP, most)
	}
	return nil
}

// stageInName finds the ZeRO stage in the name of a DeepSpeed file.
var stageInName = regexp.MustCompile(`(?i)(?:zero|stage|z)[-_]?(?:stage)?[-_]?([0-3])`)

// offloadInName finds what a DeepSpeed file offloads by its name, such as zero3_bf16_cpuoffload_all.json.
func (r *Recipe) offloadInName(name string) string {
	if state, ok := shippedIn(r.Format, name); ok && state.offload == spec.OffloadParams {
		return "optimizer+params"
	}
	name = strings.ToLower(name)
	switch {
	case !strings.Contains(name, "offload"), strings.Contains(name, "no_off"), strings.Contains(name, "no-off"):
		return ""
	case strings.Contains(name, "_all"), strings.Contains(name, "param"):
		return "optimizer+params"
	}
	return "optimizer"
}

// modes sets ZeRO, offload, recomputation, schedule, sequence parallelism and precision.
func (r *Recipe) modes(p *spec.Plan, note func(string, ...any)) {
	stage, ok := r.numbers[ZeRO]
	offload := r.texts[Offload]
	if !ok {
		for _, key := range append([]string{"deepspeed_config.deepspeed_config_file", accelerateFile}, deepspeedOptions...) {
			if r.flagOf(key) { // a switch
				continue
			}
			if m := stageInName.FindStringSubmatch(r.valueOf(key)); m != nil {
				stage, _ = strconv.Atoi(m[1])
				note("zero=%d is taken from the name of %s; --set zero_stage=N replaces it", stage, r.valueOf(key))
				offload = r.offloadInName(r.valueOf(key))
			} else if v := r.valueOf(key); v != "" && (key != accelerateFile || strings.Contains(strings.ToLower(v), "fsdp")) {
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
	if offload != r.texts[Offload] {
		note("offload=%s is taken from the same name; --set offload=none replaces it", offload)
	}
	switch {
	case strings.Contains(offload, "params"):
		p.Offload, p.ZeRO = spec.OffloadParams, 3
	case strings.Contains(offload, "optimizer"):
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
	} else if r.numbers[withinNode] == 1 && p.ZeRO > 0 {
		r.shardWithinNode(p, note)
	}
	p.Recompute = spec.Recompute(r.texts[Recompute])
	r.blocks(p, note)
	if s := r.texts[Schedule]; p.PP > 1 && s != "" {
		p.Schedule = spec.Schedule(s)
		if p.Schedule.ZeroBubble() || p.Schedule == spec.ScheduleGPipe {
			p.VirtualStages = 1
		}
		if n := r.numbers[Layers]; p.Schedule.VShaped() && n > 0 && n%(2*p.PP) != 0 {
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
	case "":
		if slices.Contains([]string{"megatron", "deepspeed", "trainer", "accelerate", "nemo"}, r.Format) {
			note("the number format is not in the file: that of --precision is taken, else bf16")
		}
	default:
		p.Precision = spec.Precision(v)
	}
}

// blocks notes full recomputation of a block of layers, see RecomputedShare. If it is less than half of them, the plan has none.
func (r *Recipe) blocks(p *spec.Plan, note func(string, ...any)) {
	n, layers := r.recomputed(p)
	if n == 0 {
		return
	}
	if 2*n < layers {
		p.Recompute = spec.RecomputeNone
	}
	note("%d of the %d layers of a stage recompute: counted so, in a plan that says recompute=%s", n, layers, p.Recompute)
}

// RecomputedShare returns the share of the layers of each stage of p that recompute fully by --recompute-method block, in
// (0, 1), and 0 if all of them or none do. p is the plan of the file.
func (r *Recipe) RecomputedShare(p *spec.Plan) float64 {
	n, layers := r.recomputed(p)
	return float64(n) / float64(max(layers, 1))
}

// CountBlock takes the keys that say how many layers recompute as a block out of those that are not counted.
func (r *Recipe) CountBlock() {
	block := r.block()
	r.Uncounted = slices.DeleteFunc(r.Uncounted, func(u Uncounted) bool {
		return block != "" && strings.HasPrefix(u.Key, block) && (strings.HasSuffix(u.Key, "method") || strings.HasSuffix(u.Key, "layers"))
	})
}

// recomputed returns the layers of a stage of p that recompute as a block, 0 if all of them or none do, and the layers of a
// stage.
func (r *Recipe) recomputed(p *spec.Plan) (n, layers int) {
	block := r.block()
	if block == "" {
		return 0, 0
	}
	layers = r.numbers[Layers] / (max(p.PP, 1) * max(p.VirtualStages, 1))
	count := keyfile.Entry{Value: cmp.Or(r.valueOf(block+"num-layers"), r.valueOf(block+"num_layers"))}
	if n, ok := count.Whole(); ok && n > 0 && n < layers {
		return n, layers
	}
	return 0, layers
}

// block returns the prefix of the keys that say how many layers of a stage recompute fully as a block, "" if there are none.
func (r *Recipe) block() string {
	if r.texts[Recompute] == string(spec.RecomputeFull) {
		for _, prefix := range []string{"--recompute-", "--activations-checkpoint-", "--checkpoint-", "model.activations_checkpoint_", "model.recompute_", "recompute_"} {
			if r.valueOf(prefix+"method") == "block" {
				return prefix
			}
		}
	}
	return ""
}

// shardWithinNode shards states over the devices of a node (HYBRID_SHARD of FSDP).
func (r *Recipe) shardWithinNode(p *spec.Plan, note func(string, ...any)) {
	const usual = 8
	n := r.numbers[PerNode]
	if nodes := r.numbers[Nodes]; n == 0 && nodes > 0 {
		n = r.numbers[Devices] / nodes
	}
	if n == 0 {
		n = usual
		note("a node has %d devices, over which states are sharded; --set shard=N replaces it", n)
	}
	if ranks := p.DP * p.CP; n < ranks && ranks%n == 0 {
		p.Shard = n
	}
}

// Samples returns the tokens of one sample, 0 where the file does not say.
func (r *Recipe) Samples() int { return r.numbers[SeqLen] }

// TrainTokens returns the tokens that the file trains on, by its steps or samples, 0 where it does not say.
func (r *Recipe) TrainTokens(globalBatch, seq int) float64 {
	number := func(key string) float64 {
		e := keyfile.Entry{Value: r.valueOf(key)}
		n, _ := e.Whole()
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
	if parts := pattern.Adapted(strings.ToLower(r.texts[Modules])); len(parts) > 0 {
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
	e := keyfile.Entry{Value: value}
	n, ok := e.Whole()
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
