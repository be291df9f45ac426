package recipe

import (
	"fmt"
	"maps"
	"math"
	"path"
	"slices"
	"strings"
	"sync"

	"github.com/pacer-ml/pacer/planner/launch/recipe/keyfile"
)

// format is a kind of launch file: how its keys are found, and what they say.
type format struct {
	name   string // of Recipe.Format
	doc    string
	syntax syntaxKind
	// assignments: arguments are KEY=VALUE and not --KEY VALUE
	assignments bool
	// underscores: the key of --some-option is some_option
	underscores bool
	needs       []string // a file has at least one of these keys; nil = any
	keys        map[string]rule
	inert       []string // patterns of keys that change neither time nor memory, as in path.Match
	weighs      map[string]effect
	prepare     func(*Recipe, []keyfile.Entry) []keyfile.Entry // before the keys are read; nil = nothing
	finish      func(*Recipe)                                  // after the keys are read
	outside     map[Field]place                                // where else the parts of a plan are set
	edits       map[Field]planEdit                             // of the parts of a plan; nil for formats that package launch writes
	emitted     string                                         // framework of package launch that writes the format
}

type syntaxKind int

const (
	isYAML syntaxKind = iota
	isTOML
	isJSON
	isShell
)

// rule reads one key.
type rule func(r *Recipe, e *keyfile.Entry)

// effect is what a key that predictions do not count may do: the standard deviation of the logarithm of the step time
// and of the memory.
type effect struct {
	why          string
	time, memory float64
}

// number sets a field to a whole number. A value that the file leaves open sets nothing.
func number(of Field) rule {
	return func(r *Recipe, e *keyfile.Entry) {
		empty := r.format.syntax == isShell && (e.Bare || e.Value == "") // --option "$UNSET"
		if e.Open() && !empty || e.Value == "-1" {
			return
		}
		switch n, ok := e.Whole(); {
		case empty:
			r.problem("%s has no value: the shell variable that it takes is not set in the file; --set NAME=VALUE gives it", e.Key)
		case !ok || n < 0:
			r.problem("%s: %q is not a whole number", e.Key, e.Value)
		default:
			r.numbers[of] = n
		}
	}
}

// fallback is number for a key that another one goes before, wherever it stands.
func fallback(of Field) rule {
	return func(r *Recipe, e *keyfile.Entry) {
		if _, ok := r.numbers[of]; !ok {
			number(of)(r, e)
		}
	}
}

// positive is number for values where 0 says nothing.
func positive(of Field) rule {
	return func(r *Recipe, e *keyfile.Entry) {
		if e.Value != "0" {
			number(of)(r, e)
		}
	}
}

// text sets a field to the value as it is written.
func text(of Field) rule {
	return func(r *Recipe, e *keyfile.Entry) {
		if !e.Open() {
			r.texts[of] = e.Value
		}
	}
}

// lower is text in lower case.
func lower(of Field) rule {
	return func(r *Recipe, e *keyfile.Entry) {
		if !e.Open() {
			r.texts[of] = strings.ToLower(e.Value)
		}
	}
}

// when sets a field if the value says yes.
func when(of Field, n int) rule {
	return func(r *Recipe, e *keyfile.Entry) {
		if e.Flag() {
			r.numbers[of] = n
		}
	}
}

// yesNo sets a field to 1 or 0.
func yesNo(of Field) rule {
	return func(r *Recipe, e *keyfile.Entry) {
		if !e.Open() {
			r.numbers[of] = 0
			when(of, 1)(r, e)
		}
	}
}

// word sets a field to a text if the value says yes, and to another one if it says no; "" sets nothing.
func word(of Field, yes, no string) rule {
	return func(r *Recipe, e *keyfile.Entry) {
		v := no
		if e.Flag() {
			v = yes
		}
		if v != "" && !e.Open() {
			r.texts[of] = v
		}
	}
}

// oneOf sets a field to the text that a value stands for. Values are compared in lower case.
func oneOf(of Field, means map[string]string) rule {
	return func(r *Recipe, e *keyfile.Entry) {
		if e.Open() && means[strings.ToLower(e.Value)] == "" {
			return
		}
		v, ok := means[strings.ToLower(e.Value)]
		if !ok {
			r.problem("%s: %q is not one of %s", e.Key, e.Value, strings.Join(slices.Sorted(maps.Keys(means)), ", "))
			return
		}
		r.texts[of] = v
	}
}

// formats of the same words in several frameworks.
var precisions = map[string]string{"bf16": "bf16", "bfloat16": "bf16", "torch.bfloat16": "bf16", "fp16": "fp16", "float16": "fp16", "half": "fp16", "16": "fp16",
	"16-mixed": "fp16", "bf16-mixed": "bf16", "bf16-true": "bf16", "fp32": "fp32", "float32": "fp32", "32": "fp32", "32-true": "fp32", "fp8": "fp8", "torch.float32": "fp32", "torch.float16": "fp16"}

// apply reads the entries of a file.
func (f *format) apply(r *Recipe, entries []keyfile.Entry) {
	if f.prepare != nil {
		entries = f.prepare(r, entries)
	}
	r.entries = entries
	for i := range entries {
		e := &entries[i]
		known, hasEffect := f.keys[e.Key]
		w, weighs := f.weight(e.Key)
		switch {
		case known != nil:
			known(r, e)
			r.Understood = append(r.Understood, e.Key)
		case weighs && f.inEffect(e):
			r.uncounted(e.Key, e.Value, w)
		case weighs || hasEffect || f.isInert(e.Key):
			r.Ignored = append(r.Ignored, e.Key)
		default:
			r.Unknown = append(r.Unknown, e.Key)
		}
	}
	if f.finish != nil {
		f.finish(r)
	}
	r.optimizerStates()
	for k := range r.numbers {
		r.explicit[k] = true
	}
	derive(r)
}

// uncounted adds a key that predictions do not count. Several keys of one setting have its effect once.
func (r *Recipe) uncounted(key, value string, of effect) {
	if slices.ContainsFunc(r.Uncounted, func(u Uncounted) bool { return u.Why == of.why }) {
		of.time, of.memory = 0, 0
	}
	r.Uncounted = append(r.Uncounted, Uncounted{Key: key, Value: value, Why: of.why, Time: of.time, Memory: of.memory})
}

// without removes the keys with a prefix from those that are not counted: another key turns them off.
func (r *Recipe) without(prefix string) {
	r.Uncounted = slices.DeleteFunc(r.Uncounted, func(u Uncounted) bool {
		off := strings.HasPrefix(u.Key, prefix)
		if off {
			r.Ignored = append(r.Ignored, u.Key)
		}
		return off
	})
}

// inEffect reports whether a key does anything by its value.
func (f *format) inEffect(e *keyfile.Entry) bool {
	if len(e.List) > 0 {
		return true
	}
	switch strings.ToLower(e.Value) {
	case "false", "no", "off", "0", "disabled", "0.0", "fused", "flash", "no_shard":
		return false
	case "1":
		return !strings.HasSuffix(e.Key, "_degree")
	}
	return !e.Open() || f.syntax == isShell && e.Value != ""
}

// weight returns the effect of a key that is not counted.
func (f *format) weight(key string) (effect, bool) {
	if w, ok := f.weighs[key]; ok {
		return w, true
	}
	key = plainKey.Replace(key)
	for _, pattern := range f.weighPatterns() {
		if matched(pattern, key) {
			return f.weighs[pattern], true
		}
	}
	return effect{}, false
}

// weighPatterns returns the keys of weighs, sorted once: scripts have thousands of options.
func (f *format) weighPatterns() []string {
	if sorted, ok := patternsOf.Load(f); ok {
		return sorted.([]string)
	}
	sorted := slices.Sorted(maps.Keys(f.weighs))
	patternsOf.Store(f, sorted)
	return sorted
}

var patternsOf sync.Map // *format: []string

func (f *format) isInert(key string) bool {
	key = plainKey.Replace(key)
	return slices.ContainsFunc(f.inert, func(pattern string) bool { return matched(pattern, key) })
}

// under returns keys below another one.
func under(prefix string, names ...string) (out []string) {
	for _, name := range names {
		out = append(out, prefix+name)
	}
	return out
}

// matched reports whether a plain key matches a pattern in which * stands for anything.
func matched(pattern, key string) bool {
	ok, err := path.Match(pattern, key)
	return ok && err == nil
}

// plainKey makes a key one name for path.Match.
var plainKey = strings.NewReplacer("[]", "", "/", "_")

// score is the number of entries that f knows, 0 without one that it needs.
func (f *format) score(entries []keyfile.Entry) (n int) {
	if f.needs != nil && !slices.ContainsFunc(entries, func(e keyfile.Entry) bool { return slices.Contains(f.needs, e.Key) }) {
		return 0
	}
	for i := range entries {
		key := strings.TrimPrefix(entries[i].Key, "MODEL_ARGS.")
		if f.keys[key] != nil {
			n += 2
		} else if _, ok := f.weight(key); ok || f.isInert(key) {
			n++
		}
	}
	return n
}

// derive fills in what follows by arithmetic from what the file gives.
func derive(r *Recipe) {
	if n, ok := r.numbers[Nodes]; ok && r.numbers[PerNode] > 0 {
		r.setDefault(Devices, mul(n, r.numbers[PerNode]))
	}
	r.deriveChunks()
	split := mul(mul(r.degree(TP), r.degree(PP)), r.degree(CP))
	if split < 1 {
		r.problem("a degree of parallelism is 0: want 1 or more")
		return
	}
	if n, ok := r.numbers[Devices]; ok {
		switch dp, has := r.numbers[DP]; {
		case n%split != 0 || n < split:
			r.problem("%d devices, but tp=%d x pp=%d x cp=%d = %d does not divide them", n, r.degree(TP), r.degree(PP), r.degree(CP), split)
		case !has:
			r.numbers[DP] = n / split
		case dp*split != n:
			r.problem("%d devices, but dp=%d x tp x pp x cp is %d", n, dp, dp*split)
		}
	} else if dp, ok := r.numbers[DP]; ok {
		r.numbers[Devices] = mul(dp, split)
	}
	deriveBatch(r)
	if dp, ok := r.numbers[DP]; ok {
		r.setDefault(Devices, mul(dp, split))
	}
}

// deriveChunks turns layers per chunk into virtual stages, where the layers are known.
func (r *Recipe) deriveChunks() {
	per, n := r.numbers[perChunk], r.numbers[Layers]
	if per < 1 || n < 1 || r.degree(PP) < 1 {
		return
	}
	if r.Format == "torchtitan" {
		r.titanStages(n, per)
	} else if chunk := mul(per, r.degree(PP)); n%chunk == 0 {
		r.setDefault(VPP, n/chunk)
	} else {
		r.problem("%d layers do not divide into chunks of %d on %d stages", n, per, r.degree(PP))
	}
}

// titanStages counts the virtual stages of torchtitan, in which the embedding and the output count as layers. As there, the
// ranks must divide them.
func (r *Recipe) titanStages(layers, per int) {
	if r.degree(PP) == 1 {
		return
	}
	stages := (layers + r.or(firstLess, 1) + r.or(lastLess, 1) + per - 1) / per
	if stages%r.degree(PP) != 0 {
		r.problem("%d layers, the embedding and the output in stages of %d layers are %d stages, which pp=%d does not divide", layers, per, stages, r.degree(PP))
		return
	}
	r.setDefault(VPP, stages/r.degree(PP))
}

// SetLayers sets the layers of the network that the file names. Virtual stages may follow from them.
func (r *Recipe) SetLayers(n int) {
	r.setDefault(Layers, n)
	r.deriveChunks()
}

// deriveBatch fills in the fourth of replicas, micro-batch, accumulation and global batch.
func deriveBatch(r *Recipe) {
	global, hasGlobal := r.numbers[GlobalBatch]
	micro, hasMicro := r.numbers[MicroBatch]
	accum, hasAccum := r.numbers[GradAccum]
	dp, hasDP := r.numbers[DP]
	if hasMicro && micro < 1 || hasAccum && accum < 1 || hasGlobal && global < 1 || hasDP && dp < 1 {
		r.problem("a batch, a number of micro-batches or of replicas is 0: want 1 or more")
		return
	}
	switch {
	case hasMicro && hasAccum && hasDP && !hasGlobal:
		r.numbers[GlobalBatch] = mul(micro, mul(accum, dp))
	case hasGlobal && hasMicro && hasDP && !hasAccum:
		if b := mul(micro, dp); global%b == 0 {
			r.numbers[GradAccum] = global / b
		} else {
			r.problem("a global batch of %d is not a multiple of micro-batch %d x dp=%d", global, micro, dp)
		}
	case hasGlobal && hasMicro && hasAccum && !hasDP:
		if b := mul(micro, accum); global%b == 0 {
			r.numbers[DP] = global / b
		}
	case hasGlobal && hasMicro && hasAccum && hasDP && mul(micro, mul(accum, dp)) != global:
		r.problem("a global batch of %d, but micro-batch %d x %d accumulation steps x dp=%d is %d", global, micro, accum, dp, mul(micro, mul(accum, dp)))
	case hasGlobal && hasMicro && global == micro && !hasDP && !hasAccum && r.degree(CP) == 1:
		r.numbers[DP], r.numbers[GradAccum] = 1, 1
	}
	if ep := r.degree(EP); ep > 1 && hasDP {
		if ranks := mul(mul(dp, r.degree(CP)), r.degree(TP)); ranks%ep != 0 {
			r.problem("ep=%d does not divide the %d ranks of dp x cp x tp", ep, ranks)
		}
	}
}

// mul multiplies without overflow.
func mul(a, b int) int {
	if a != 0 && b > math.MaxInt32*1024/max(a, 1) {
		return math.MaxInt32 * 1024
	}
	return a * b
}

func (r *Recipe) problem(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	if !slices.Contains(r.Problems, text) {
		r.Problems = append(r.Problems, text)
	}
}
