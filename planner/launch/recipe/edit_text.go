package recipe

import (
	"slices"
	"strconv"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"github.com/pacer-ml/pacer/planner/launch/recipe/keyfile"
)

// value writes a value as the syntax has it.
func (r *Recipe) value(v string) string {
	if quoted, err := syntax.Quote(v, syntax.LangBash); err == nil && r.format.syntax == isShell {
		return quoted
	}
	if _, err := strconv.ParseFloat(v, 64); err == nil || v == "true" || v == "false" || v == "null" || r.format.syntax != isJSON {
		return v
	}
	return strconv.Quote(v)
}

// document returns the text with the places of its keys. Arguments of Megatron-LM, also those that are false, are below
// MODEL_ARGS.
func (r *Recipe) document() *keyfile.Document {
	entries := slices.Concat(r.entries, r.off)
	for i := range entries {
		entries[i].Key = r.full(entries[i].Key)
	}
	return &keyfile.Document{Text: r.text, Entries: entries}
}

// full returns a key with the section of the file that it is in.
func (r *Recipe) full(key string) string {
	if r.format == &megatronYAML && strings.HasPrefix(key, "--") {
		return "MODEL_ARGS." + key
	}
	return key
}
