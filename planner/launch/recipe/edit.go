package recipe

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/rogpeppe/go-internal/diff"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/planner/launch"
)

// Keys that an edit changes, of formats that package launch does not write.
var (
	nemoEdits = map[Field]string{MicroBatch: "model.micro_batch_size", TP: "model.tensor_model_parallel_size", PP: "model.pipeline_model_parallel_size", CP: "model.context_parallel_size",
		EP: "model.expert_model_parallel_size", VPP: "model.virtual_pipeline_model_parallel_size", Recompute: "model.activations_checkpoint_granularity", SP: "model.sequence_parallel"}
	automodelEdits  = map[Field]string{MicroBatch: "step_scheduler.local_batch_size", TP: "distributed.tp_size", CP: "distributed.cp_size", EP: "distributed.ep_size", Recompute: "distributed.activation_checkpointing"}
	axolotlEdits    = map[Field]string{MicroBatch: "micro_batch_size", GradAccum: "gradient_accumulation_steps", TP: "tensor_parallel_size", CP: "context_parallel_size", Recompute: "gradient_checkpointing", ZeRO: "fsdp_config.reshard_after_forward"}
	trainerEdits    = map[Field]string{MicroBatch: "per_device_train_batch_size", GradAccum: "gradient_accumulation_steps", TP: "tensor_model_parallel_size", PP: "pipeline_model_parallel_size", EP: "expert_model_parallel_size", Recompute: "gradient_checkpointing"}
	accelerateEdits = map[Field]string{GradAccum: "gradient_accumulation_steps", TP: "parallelism_config.parallelism_config_tp_size", CP: "parallelism_config.parallelism_config_cp_size", Recompute: "fsdp_config.fsdp_activation_checkpointing", ZeRO: "fsdp_config.fsdp_reshard_after_forward"}
	maxtextEdits    = map[Field]string{MicroBatch: "per_device_batch_size", GradAccum: "gradient_accumulation_steps", TP: "ici_tensor_parallelism", CP: "ici_context_parallelism", Recompute: "remat_policy"}
)

// change is a key with a new value. Without remove the key is added where it is missing.
type change struct {
	key, value string
	remove     bool
}

// Diff returns the change of the file, as a unified diff, after which it says the plan of to instead of that of from. ok is
// false where the format has no key for the change, or a value is written in a way that an edit does not follow: the
// edited file is read back before it is offered.
func (r *Recipe) Diff(from, to spec.Config, o Options) (text string, ok bool) {
	for _, changes := range r.alternatives(&from, &to) {
		if edited, ok := r.edited(changes); ok && len(changes) > 0 && r.gives(edited, changes, &to, o) {
			return string(diff.Diff(r.name, []byte(r.text), r.name, []byte(edited))), true
		}
	}
	return "", false
}

// alternatives returns the changes to try, in order.
func (r *Recipe) alternatives(from, to *spec.Config) [][]change {
	if r.format.emitted == torchtitanTOML.emitted {
		return r.titanChanges(from, to)
	}
	return [][]change{r.changes(from, to)}
}

// gives reports whether the edited file says the plan of to, and all else that the file said.
func (r *Recipe) gives(edited string, changes []change, to *spec.Config, o Options) bool {
	o.Format = r.Format
	again, err := Read(r.name, []byte(edited), o)
	if err != nil {
		return false
	}
	if _, known := r.numbers[Layers]; known {
		again.SetLayers(to.Model.Layers)
	}
	got, _, err := again.Plan(to.Plan.Devices())
	return err == nil && samePlan(got, to.Plan) && (r.format.syntax != isTOML || again.keeps(r.entries, changes))
}

// keeps reports whether r has the entries of a file that no change is about.
func (r *Recipe) keeps(entries []entry, changes []change) bool {
	for _, e := range entries {
		if !slices.ContainsFunc(changes, func(c change) bool { return c.key == e.key }) && (!r.has(e.key) || r.valueOf(e.key) != e.value) {
			return false
		}
	}
	return true
}

// samePlan compares plans; a format that is not written is the device's.
func samePlan(a, b spec.Plan) bool {
	a, b = a.Normal(), b.Normal()
	if a.Precision == "" {
		a.Precision = b.Precision
	}
	return a == b
}

// changes returns the keys that differ between two plans.
func (r *Recipe) changes(from, to *spec.Config) []change {
	if r.format.emitted != "" {
		return r.emittedChanges(from, to)
	}
	old, p := from.Plan.Normal(), to.Plan.Normal()
	var out []change
	for _, f := range []struct {
		of       Field
		was, now any
	}{
		{MicroBatch, old.MicroBatch, p.MicroBatch}, {GradAccum, old.AccumSteps, p.AccumSteps}, {TP, old.TP, p.TP}, {PP, old.PP, p.PP}, {CP, old.CP, p.CP}, {EP, old.EP, p.EP},
		{VPP, old.VirtualStages, p.VirtualStages}, {ZeRO, old.ZeRO, p.ZeRO}, {Recompute, old.Recompute, p.Recompute}, {SP, old.SequenceParallel, p.SequenceParallel},
	} {
		if f.was == f.now {
			continue
		}
		key, ok := r.format.edits[f.of]
		if !ok && f.of == GradAccum && r.explicit[GlobalBatch] {
			continue // it follows from the global batch
		}
		value, written := r.written(f.of, fmt.Sprint(f.now))
		if !ok || !written {
			return nil
		}
		out = append(out, change{key: key, value: value})
	}
	if old.Offload != p.Offload || old.Shard != p.Shard || old.Precision != p.Precision || old.Schedule != p.Schedule {
		return nil
	}
	return out
}

// written is the value of a field in the words of the format.
func (r *Recipe) written(of Field, value string) (string, bool) {
	switch {
	case of == ZeRO:
		return map[string]string{"2": "false", "3": "true"}[value], value == "2" || value == "3"
	case of != Recompute:
		return value, true
	case r.Format == "nemo":
		if value == "none" {
			return "null", true
		}
		return value, true
	case r.Format == "maxtext":
		if value == "selective" {
			return "minimal", true
		}
		return value, true
	case value == "selective":
		return "", false
	}
	return strconv.FormatBool(value == "full"), true
}

// emittedChanges compares what package launch writes for both plans.
func (r *Recipe) emittedChanges(from, to *spec.Config) []change {
	was, ok := r.settings(from)
	now, ok2 := r.settings(to)
	if !ok || !ok2 {
		return nil
	}
	var out []change
	for _, e := range now {
		if i := slices.IndexFunc(was, func(o entry) bool { return o.key == e.key }); i < 0 || was[i].value != e.value {
			out = append(out, change{key: e.key, value: e.value})
		}
	}
	for _, e := range was {
		if !slices.ContainsFunc(now, func(o entry) bool { return o.key == e.key }) {
			out = append(out, change{key: e.key, value: e.value, remove: true})
		}
	}
	return out
}

// settings are the keys that package launch writes for c in r's format.
func (r *Recipe) settings(c *spec.Config) ([]entry, bool) {
	f, err := launch.Lookup(r.format.emitted)
	if err != nil {
		return nil, false
	}
	s, err := f.Emit(*c)
	if err != nil {
		return nil, false
	}
	written, err := Read(f.File, []byte(s.Text), Options{Format: f.Name})
	if err != nil {
		return nil, false
	}
	for i := range written.entries {
		e := &written.entries[i]
		e.written = s.Text[e.start:e.end]
	}
	return written.entries, true
}

// edited applies changes to the text of the file.
func (r *Recipe) edited(changes []change) (string, bool) {
	text := r.text
	if edit := r.format.oneByOne(); edit != nil {
		for _, c := range changes {
			var ok bool
			if text, ok = edit(text, c); !ok {
				return "", false
			}
		}
		return text, true
	}
	type place struct {
		start, end int
		text       string
	}
	var places []place
	for _, c := range changes {
		key := c.key
		if r.format == &megatronYAML {
			key = "MODEL_ARGS." + key
		}
		i := slices.IndexFunc(r.entries, func(e entry) bool { return e.key == c.key && e.end > 0 })
		switch {
		case i >= 0 && c.remove:
			start, end := lineOf(text, r.entries[i].start)
			if r.format.syntax == isJSON {
				return "", false
			}
			places = append(places, place{start, end, ""})
		case i >= 0:
			places = append(places, place{r.entries[i].start, r.entries[i].end, r.value(c.value)})
		case c.remove:
		default:
			at, line, ok := r.insertion(key, r.value(c.value))
			if !ok {
				return "", false
			}
			places = append(places, place{at, at, line})
		}
	}
	slices.SortStableFunc(places, func(a, b place) int { return b.start - a.start })
	for _, p := range places {
		text = text[:p.start] + p.text + text[p.end:]
	}
	return text, true
}

// oneByOne returns how a syntax is edited by one change after the other, nil for the others.
func (f *format) oneByOne() func(text string, c change) (string, bool) {
	switch f.syntax {
	case isShell:
		return func(text string, c change) (string, bool) { return editArguments(text, c, f.assignments) }
	case isTOML:
		return editTOML
	}
	return nil
}

// value writes a value as the syntax has it.
func (r *Recipe) value(v string) string {
	if _, err := strconv.ParseFloat(v, 64); err == nil || v == "true" || v == "false" || v == "null" || r.format.syntax == isYAML {
		return v
	}
	return strconv.Quote(v)
}

// lineOf returns the bytes of the line at a place.
func lineOf(text string, at int) (start, end int) {
	start = strings.LastIndex(text[:at], "\n") + 1
	if n := strings.Index(text[at:], "\n"); n >= 0 {
		return start, at + n + 1
	}
	return start, len(text)
}

// insertion returns where a new key goes, and its line: before the first key of the same mapping.
func (r *Recipe) insertion(key, value string) (at int, line string, ok bool) {
	parent, name := "", key
	if i := strings.LastIndex(key, "."); i >= 0 {
		parent, name = key[:i+1], key[i+1:]
	}
	for i := range r.entries {
		e := &r.entries[i]
		full := e.key
		if r.format == &megatronYAML && strings.HasPrefix(e.key, "--") {
			full = "MODEL_ARGS." + e.key
		}
		rest, inside := strings.CutPrefix(full, parent)
		if !inside || strings.ContainsAny(rest, ".[") || e.end == 0 {
			continue
		}
		start, _ := lineOf(r.text, e.start)
		lead := r.text[start:e.start]
		indent := lead[:len(lead)-len(strings.TrimLeft(lead, " \t"))]
		switch r.format.syntax {
		case isYAML:
			return start, indent + name + ": " + value + "\n", true
		case isJSON:
			quoted := strconv.Quote(name) + ": " + value + ","
			if strings.Count(lead, `"`) == 2 { // the key stands alone on its line
				return start, indent + quoted + "\n", true
			}
		}
	}
	return 0, "", false
}

// editArguments changes an option of a shell script.
func editArguments(text string, c change, assignments bool) (string, bool) {
	name := strings.ReplaceAll(regexp.QuoteMeta(strings.TrimPrefix(c.key, "--")), "-", "[-_]")
	before := `(^|[\s"'(])--`
	between := `(?:[ \t]+|=)`
	if assignments {
		before, between = `(^|[\s"'(])`, "="
	}
	flag := c.value == present
	value := between + `("[^"\n]*"|'[^'\n]*'|[^\s"'\\)]+)`
	pattern := before + name
	if !flag {
		pattern += value
	}
	re, err := regexp.Compile(pattern + `([\s"'\\)]|$)`)
	if err != nil {
		return "", false
	}
	m := re.FindStringSubmatchIndex(text)
	switch {
	case m == nil && c.remove:
		return text, true
	case m == nil:
		return insertArgument(text, c, assignments)
	case c.remove:
		start, end := m[3], m[len(m)-2]
		if line, after := lineOf(text, start); strings.TrimSpace(text[line:start])+strings.Trim(text[end:after], " \t\\\n") == "" {
			return text[:line] + text[after:], true
		}
		return text[:start] + text[end:], true
	case flag:
		return text, true
	}
	return text[:m[4]] + c.value + text[m[5]:], true
}

var anchorOption = regexp.MustCompile(`--(?:micro-batch-size|num-layers|hidden-size|global-batch-size)\b`)

// insertArgument puts an option before one that every script has.
func insertArgument(text string, c change, assignments bool) (string, bool) {
	option := c.key + " " + c.value + " "
	if c.value == present {
		option = c.key + " "
	}
	re := anchorOption
	if assignments {
		option, re = c.key+"="+c.value+" ", regexp.MustCompile(`\b(?:model_name|per_device_batch_size|steps)=`)
	}
	m := re.FindStringIndex(text)
	if m == nil {
		return "", false
	}
	if m[0] > 0 && text[m[0]-1] == '"' { // an option quoted with its value
		return "", false
	}
	return text[:m[0]] + option + text[m[0]:], true
}
