package recipe

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/planner/launch/recipe/keyfile"
	"github.com/pacer-ml/pacer/planner/launch/recipe/shell"
)

// planEdit returns the changes after which a file says a part of plan p. Without any, why says why there are none.
type planEdit func(r *Recipe, p *spec.Plan) (out []change, why string)

// part is a part of a plan.
type part struct {
	of    Field
	name  string // in the text form of plans
	value func(p *spec.Plan) string
}

func numbered(of func(p *spec.Plan) int) func(*spec.Plan) string {
	return func(p *spec.Plan) string { return strconv.Itoa(of(p)) }
}

// parts are those that edits change, in the order of the text form.
var parts = []part{
	{DP, "dp", numbered(func(p *spec.Plan) int { return p.DP })}, {TP, "tp", numbered(func(p *spec.Plan) int { return p.TP })},
	{PP, "pp", numbered(func(p *spec.Plan) int { return p.PP })}, {CP, "cp", numbered(func(p *spec.Plan) int { return p.CP })},
	{EP, "ep", numbered(func(p *spec.Plan) int { return p.EP })}, {VPP, "vp", numbered(func(p *spec.Plan) int { return p.VirtualStages })},
	{MicroBatch, "mb", numbered(func(p *spec.Plan) int { return p.MicroBatch })}, {GradAccum, "ga", numbered(func(p *spec.Plan) int { return p.AccumSteps })},
	{ZeRO, "zero", numbered(func(p *spec.Plan) int { return p.ZeRO })}, {Shard, "shard", numbered(func(p *spec.Plan) int { return p.Shard })},
	{Offload, "offload", func(p *spec.Plan) string { return string(p.Offload) }}, {Recompute, "recompute", func(p *spec.Plan) string { return string(p.Recompute) }},
	{SP, "sp", func(p *spec.Plan) string { return strconv.FormatBool(p.SequenceParallel) }},
	{Precision, "precision", func(p *spec.Plan) string { return string(p.Precision) }}, {Schedule, "schedule", func(p *spec.Plan) string { return string(p.Schedule) }},
}

// changes returns the keys that differ between two plans.
func (r *Recipe) changes(from, to *spec.Plan) (out []change, why string) {
	old, p := from.Normal(), to.Normal()
	for _, part := range parts {
		edit, ok := r.format.edits[part.of]
		value := part.value(&p)
		switch {
		case part.value(&old) == value && !(part.of == MicroBatch && r.Format == maxtextYAML.name):
			continue
		case !ok && (part.of == DP || part.of == GradAccum && r.explicit[GlobalBatch]):
			continue // it follows from the devices, or from the global batch
		case !ok && part.of == Shard && value == "0":
			continue
		case !ok:
			return nil, fmt.Sprintf("%s has no key for %s=%s", r.Format, part.name, value)
		}
		changes, why := edit(r, &p)
		if why != "" {
			return nil, fmt.Sprintf("%s=%s: %s", part.name, value, why)
		}
		for _, c := range changes {
			if !slices.Contains(out, c) { // two parts may be one key, such as the name of a DeepSpeed file
				out = append(out, c)
			}
		}
	}
	return out, ""
}

// writes puts a part into the first of keys that the file has, else into the first.
func writes(of Field, keys ...string) planEdit {
	return func(r *Recipe, p *spec.Plan) ([]change, string) {
		i := slices.IndexFunc(parts, func(x part) bool { return x.of == of })
		return []change{{key: r.named(keys...), value: parts[i].value(p)}}, ""
	}
}

// named returns the first of keys that the file has, else the first.
func (r *Recipe) named(keys ...string) string {
	return keys[max(slices.IndexFunc(keys, r.has), 0)]
}

// cannot is the edit of a part that a format has no key for.
func cannot(why string) planEdit {
	return func(*Recipe, *spec.Plan) ([]change, string) { return nil, why }
}

// wholeLayers writes recomputation of all layers or of none.
func wholeLayers(keys ...string) planEdit {
	return func(r *Recipe, p *spec.Plan) ([]change, string) {
		if p.Recompute == spec.RecomputeSelective {
			return nil, "activation checkpointing is of whole layers"
		}
		return []change{{key: r.named(keys...), value: strconv.FormatBool(p.Recompute == spec.RecomputeFull)}}, ""
	}
}

// words writes recomputation by names.
func words(key string, names map[spec.Recompute]string) planEdit {
	return func(_ *Recipe, p *spec.Plan) ([]change, string) {
		return []change{{key: key, value: names[p.Recompute]}}, ""
	}
}

// multiplies writes the format of multiplications: the keys of 8 bits, or without them the others. Keys that turn 8 bits on
// are turned off again, and keys that have the value already stay.
func multiplies(eight []change, off string, wide func(r *Recipe, of spec.Precision) []change) planEdit {
	return func(r *Recipe, p *spec.Plan) (out []change, why string) {
		of := p.Precision.Format()
		if of == spec.TF32 {
			of = spec.FP32
		}
		if of == spec.FP8 {
			return eight, ""
		}
		if !slices.Contains([]spec.Precision{spec.BF16, spec.FP16, spec.FP32}, of) {
			return nil, "the format has bf16, fp16, fp32 and fp8"
		}
		for _, c := range eight {
			if e := (keyfile.Entry{Value: r.valueOf(c.key)}); e.Value == c.value || e.Flag() {
				out = append(out, change{key: c.key, value: off})
			}
		}
		return append(out, wide(r, of)...), ""
	}
}

// wordOf writes the number format as a word of a key, unless the key has a word for it. Files without the key are in bf16.
func wordOf(words map[spec.Precision]string, keys ...string) func(*Recipe, spec.Precision) []change {
	return func(r *Recipe, of spec.Precision) []change {
		key := r.named(keys...)
		if precisions[strings.ToLower(r.valueOf(key))] == string(of) || !r.has(key) && of == spec.BF16 {
			return nil
		}
		return []change{{key: key, value: words[of]}}
	}
}

// switchesOf writes the number format as switches of bf16 and fp16, which exclude each other.
func switchesOf(r *Recipe, of spec.Precision) (out []change) {
	for key, format := range map[string]spec.Precision{"bf16": spec.BF16, "bfloat16": spec.BF16, "fp16": spec.FP16, "float16": spec.FP16, "pure_bf16": spec.BF16} {
		if v := r.valueOf(key); v != "" && format != of && strings.ToLower(v) != "false" {
			out = append(out, change{key: key, value: "false"})
		}
	}
	slices.SortFunc(out, func(a, b change) int { return strings.Compare(a.key, b.key) })
	key := map[spec.Precision]string{spec.BF16: r.named("bf16", "bfloat16", "pure_bf16"), spec.FP16: r.named("fp16", "float16")}[of]
	if e := (keyfile.Entry{Value: r.valueOf(key)}); key != "" && !e.Flag() && !(r.has(key) && e.Open()) {
		out = append(out, change{key: key, value: "true"})
	}
	return out
}

// elsewhere says which other file has ZeRO and offload, if one has.
func (r *Recipe) elsewhere() string {
	if v := cmp.Or(r.deepspeedName(), r.valueOf(accelerateFile)); v != "" {
		return "ZeRO and offload are in another file: change them in " + v
	}
	if slices.ContainsFunc(r.entries, func(e keyfile.Entry) bool { return strings.HasPrefix(e.Key, "deepspeed.") }) {
		return "ZeRO and offload are in the settings of DeepSpeed that the file has"
	}
	return ""
}

// deepspeedName is the DeepSpeed file that has ZeRO and offload, "" = none has.
func (r *Recipe) deepspeedName() string {
	for _, key := range append([]string{"deepspeed_config.deepspeed_config_file"}, deepspeedOptions...) {
		if v := r.valueOf(key); v != "" && v != "null" && !shell.IsBare(r.entries, key) {
			return v
		}
	}
	return ""
}

// fsdpStage writes the ZeRO stage of FSDP. start are the keys of a file that has no FSDP.
func fsdpStage(start func(zero int) []change, reshard, strategy []string) planEdit {
	return func(r *Recipe, p *spec.Plan) ([]change, string) {
		if why := r.elsewhere(); why != "" {
			return nil, why
		}
		old := r.texts[Offload]
		switch {
		case p.ZeRO == 1:
			return nil, "FSDP shards gradients too (zero=2) or weights too (zero=3)"
		case p.ZeRO == 0 && old != "" && old != "none":
			return nil, "what FSDP offloads is sharded"
		case p.ZeRO == 0 && (r.flagOf("fsdp_config.fsdp_activation_checkpointing") || r.flagOf("fsdp_config.activation_checkpointing")):
			return nil, "the activation checkpointing of the file is that of FSDP"
		case p.ZeRO == 0 && p.TP*p.CP > 1:
			return nil, "other parallelism " + byFSDP[len("it "):]
		case r.has("dist_config.name"):
			return nil, "dist_config of the file decides it"
		case r.numbers[ZeRO] == 0:
			return start(p.ZeRO), ""
		case p.ZeRO == 0:
			out := []change{}
			for _, key := range []string{"fsdp", "fsdp_version", "fsdp_config"} {
				if key == "fsdp_config" || r.has(key) {
					out = append(out, change{key: key, remove: true})
				}
			}
			if r.has("distributed_type") { // last: settings of FSDP are out of use then
				out = append(out, change{key: "distributed_type", value: "MULTI_GPU"})
			}
			return out, ""
		}
		if r.numbers[withinNode] == 1 && p.Shard != 0 {
			return r.renamed(hybridNames(p.ZeRO)), ""
		}
		if old := r.valueOf("fsdp"); old != "" { // words of version 1
			value := strings.NewReplacer("full_shard", "shard_grad_op", "shard_grad_op", "full_shard").Replace(old)
			return []change{{key: "fsdp", value: value}}, ""
		}
		var out []change
		for _, key := range append(slices.Clone(strategy), reshard...) {
			if v := r.valueOf(key); slices.Contains(strategy, key) && r.has(key) || strings.Contains(v, "_") { // version 1
				out = append(out, change{key: key, value: strategyNames(p.ZeRO)})
			}
		}
		if key := r.named(reshard...); len(out) == 0 || r.has(key) && out[len(out)-1].key != key {
			out = append(out, change{key: key, value: strconv.FormatBool(p.ZeRO == 3)})
		}
		return out, ""
	}
}

// fsdpMoves writes whether FSDP offloads.
func fsdpMoves(keys ...string) planEdit {
	return func(r *Recipe, p *spec.Plan) ([]change, string) {
		why := r.elsewhere()
		switch {
		case why != "":
			return nil, why
		case p.Offload == spec.OffloadOptimizer:
			return nil, "FSDP offloads weights and optimizer together"
		case p.Offload == spec.OffloadParams && p.ZeRO < 3:
			return nil, "FSDP offloads with zero=3"
		}
		return []change{{key: r.named(keys...), value: strconv.FormatBool(p.Offload == spec.OffloadParams)}}, ""
	}
}
