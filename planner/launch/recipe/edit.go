package recipe

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/rogpeppe/go-internal/diff"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/planner/launch"
	"github.com/pacer-ml/pacer/planner/launch/recipe/keyfile"
	"github.com/pacer-ml/pacer/planner/launch/recipe/shell"
)

// change is a key with a new value. The key is added where it is missing. With remove the key goes, and all keys below it.
type change struct {
	key, value string
	remove     bool
}

// about reports whether a change is about a key.
func (c *change) about(key string) bool {
	return c.key == key || c.remove && strings.HasPrefix(key, c.key+".")
}

// Diff returns the change of the file, as a unified diff, after which it says the plan of to instead of that of from, and
// otherwise what it said. The edited file is read back before it is offered. Without a diff, why says what the format has
// no key for, or which key is not written as a plain value.
func (r *Recipe) Diff(from, to spec.Config, o Options) (text, why string) {
	edited, why := r.edit(&from, &to, o)
	if why != "" {
		return "", why
	}
	return string(diff.Diff(r.name, []byte(r.text), r.name, []byte(edited))), ""
}

// edit returns the file of Diff.
func (r *Recipe) edit(from, to *spec.Config, o Options) (edited, why string) {
	o.Format = r.Format
	alternatives, why := r.alternatives(from, to)
	_, device := r.unmet(to.Accelerator)
	for _, changes := range alternatives {
		changes = append(changes, device...)
		text, key := r.edited(changes, o)
		switch {
		case key != "":
			why = cmp.Or(why, key+" is written in a way that an edit does not follow")
		case text == r.text && r.gives(text, from, to, o):
			why = "the file says it already"
		case len(changes) == 0 || !r.gives(text, from, to, o):
			why = cmp.Or(why, r.unclear())
		default:
			return text, ""
		}
	}
	return "", cmp.Or(why, "the format has no key for it")
}

// unclear is the reason where an edited file says another plan.
func (r *Recipe) unclear() string {
	if r.isOldTitan() {
		return oldTitan
	}
	return "another key of the file decides too, or the value is computed"
}

const oldTitan = "the release of torchtitan that the file is for has no key for it, or does not accumulate gradients"

// alternatives returns the changes to try, in order; without any, why says why.
func (r *Recipe) alternatives(from, to *spec.Config) (out [][]change, why string) {
	var changes []change
	switch {
	case r.format.emitted == torchtitanTOML.emitted:
		if out = r.titanChanges(from, to); out == nil {
			why = cmp.Or(r.inexpressible(from, to), oldTitan)
		}
		return out, why
	case r.format.emitted != "":
		changes, why = r.emittedChanges(from, to)
	default:
		changes, why = r.changes(&from.Plan, &to.Plan)
	}
	if why != "" {
		return nil, why
	}
	return [][]change{changes}, ""
}

// gives reports whether a text says the plan of to. Accumulation steps that the file did not say before, because the batch
// is not the file's, are not looked for in it.
func (r *Recipe) gives(text string, from, to *spec.Config, o Options) bool {
	again, err := Read(r.name, []byte(text), o)
	if err != nil {
		return false
	}
	for _, name := range slices.Sorted(maps.Keys(r.replaced)) {
		if again.Set(name, r.replaced[name]) != nil {
			return false
		}
	}
	if n, known := r.numbers[Layers]; known {
		again.SetLayers(n)
	}
	got, _, err := again.Plan(to.Plan.Devices())
	if own, _, was := r.Plan(from.Plan.Devices()); was == nil && own.AccumSteps != from.Plan.AccumSteps && from.Plan.AccumSteps == to.Plan.AccumSteps {
		got.AccumSteps = to.Plan.AccumSteps
	}
	return err == nil && samePlan(got, to.Plan)
}

// says reports whether the file has what a change leads to. Values of TOML are compared by their plan only.
func (r *Recipe) says(c *change) bool {
	if c.remove {
		return !slices.ContainsFunc(r.entries, func(e keyfile.Entry) bool { return c.about(e.Key) && !e.IsNull })
	}
	value := strings.Trim(c.value, `'"`)
	return r.format.syntax == isTOML || r.has(c.key) && (r.valueOf(c.key) == value || value == "null" && r.valueOf(c.key) == "")
}

// keeps reports whether r has the entries of a file that a change is not about. Values that follow from others may change.
func (r *Recipe) keeps(entries []keyfile.Entry, c *change) bool {
	type pair struct{ key, value string }
	have := map[pair]int{}
	for _, e := range r.entries {
		have[pair{e.Key, e.Value}]++
	}
	for _, e := range entries {
		if c.about(e.Key) || e.IsNull || e.Follows {
			continue
		}
		if p := (pair{e.Key, e.Value}); have[p] == 0 {
			return false
		} else {
			have[p]--
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

// emittedChanges compares what package launch writes for both plans.
func (r *Recipe) emittedChanges(from, to *spec.Config) (out []change, why string) {
	var was, now []keyfile.Entry
	err := errors.New("not tried")
	for _, like := range []func(spec.Config) spec.Config{asIs, dense, sequenceParallel} {
		a, b := like(*from), like(*to)
		if a.Plan != from.Plan && from.Plan.EP != to.Plan.EP && a.Plan.EP == b.Plan.EP || from.Plan.SequenceParallel != to.Plan.SequenceParallel && a.Plan.SequenceParallel == b.Plan.SequenceParallel {
			continue // what differs would be the same
		}
		if was, err = r.settings(&a); err == nil {
			now, err = r.settings(&b)
		}
		if err == nil {
			break
		}
	}
	if err != nil {
		return nil, r.inexpressible(from, to)
	}
	for _, e := range now {
		if i := slices.IndexFunc(was, func(o keyfile.Entry) bool { return o.Key == e.Key }); i < 0 || was[i].Value != e.Value {
			out = append(out, change{key: e.Key, value: r.value(e.Value)})
		}
	}
	for _, e := range was {
		if !slices.ContainsFunc(now, func(o keyfile.Entry) bool { return o.Key == e.Key }) {
			out = append(out, change{key: e.Key, remove: true})
		}
	}
	if r.Format == megatronArguments.name {
		return r.megatronNames(out, to)
	}
	return r.deepspeedNames(out), ""
}

// settings are the keys that package launch writes for c in r's format.
func (r *Recipe) settings(c *spec.Config) ([]keyfile.Entry, error) {
	f, err := launch.Lookup(r.format.emitted)
	if err != nil {
		return nil, err
	}
	s, err := f.Emit(*c)
	if err != nil {
		return nil, err
	}
	written, err := Read(f.File, []byte(s.Text), Options{Format: f.Name})
	if err != nil {
		return nil, err
	}
	for i := range written.entries {
		e := &written.entries[i]
		e.Written = s.Text[e.Start:e.End]
	}
	return written.entries, nil
}

func asIs(c spec.Config) spec.Config { return c }

// dense replaces a network that package launch does not write under c's plan by a dense one with as many layers: the keys
// of a plan are the same.
func dense(c spec.Config) spec.Config {
	m := spec.Model{Name: c.Model.Name, Kind: spec.Decoder, Layers: c.Model.Layers, Hidden: c.Model.Hidden, Heads: c.Model.Heads, KVHeads: c.Model.KVHeads, FFN: 4 * c.Model.Hidden, Vocab: c.Model.Vocab, SeqLen: c.Seq()}
	c.Model, c.Plan.EP = m, 1
	return c
}

// llamaLike is dense with layers that torchtitan has, as many as c's.
func llamaLike(c spec.Config) spec.Config {
	c = dense(c)
	c.Model.Hidden, c.Model.Heads, c.Model.KVHeads, c.Model.FFN, c.Model.Vocab, c.Model.GatedMLP = 8192, 64, 8, 28672, 128256, true
	return c
}

// sequenceParallel is c with sequence parallelism, which package launch asks for beside experts.
func sequenceParallel(c spec.Config) spec.Config {
	c.Plan.SequenceParallel = c.Plan.TP > 1
	if c.Plan.Precision == spec.FP16 {
		c.Plan.Precision = spec.BF16
	}
	return c
}

// inexpressible returns what the framework has no key for: of to, or else of from.
func (r *Recipe) inexpressible(from, to *spec.Config) string {
	parts := func(c *spec.Config) []launch.Part {
		var bad *launch.Inexpressible
		if _, err := r.settings(c); errors.As(err, &bad) {
			return bad.Parts
		}
		return nil
	}
	before, after := parts(from), parts(to)
	for _, p := range after {
		if !slices.ContainsFunc(before, func(b launch.Part) bool { return b.Field == p.Field && b.Value == p.Value }) {
			return fmt.Sprintf("%s=%s: %s", p.Field, p.Value, p.Why)
		}
	}
	for _, p := range append(before, after...) {
		return fmt.Sprintf("%s has no key for %s=%s: %s", r.Format, p.Field, p.Value, p.Why)
	}
	return ""
}

// edited applies changes one after the other. key is that of the first one that is not possible.
func (r *Recipe) edited(changes []change, o Options) (text, key string) {
	at := r
	for i := range changes {
		c := &changes[i]
		if at.says(c) && r.format.syntax != isTOML {
			continue
		}
		next := (*Recipe)(nil)
		for _, text := range at.candidates(c) {
			again, err := Read(r.name, []byte(text), o)
			if err == nil && again.says(c) && again.keeps(at.entries, c) {
				next = again
				break
			}
		}
		if next == nil {
			return "", c.key
		}
		at = next
	}
	return at.text, ""
}

// candidates are texts that a change may lead to.
func (r *Recipe) candidates(c *change) []string {
	one := func(text string, ok bool) []string {
		if !ok {
			return nil
		}
		return []string{text}
	}
	switch r.format.syntax {
	case isShell:
		if r.format.underscores && strings.Contains(c.key, ".") {
			return nil // only a file has it
		}
		return shell.EditOption(r.text, shell.OptionEdit{
			Key: c.key, Value: c.value, Remove: c.remove,
			Assigned: r.format.assignments, Options: r.entries, Before: r.format.anchors(),
		})
	case isTOML:
		return one(keyfile.EditTOML(r.text, c.key, c.value, c.remove))
	case isJSON:
		return one(r.document().EditJSON(c.key, c.value, c.remove))
	}
	return one(r.document().EditYAML(r.full(c.key), c.value, c.remove))
}
