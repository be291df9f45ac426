package pattern

import (
	"regexp"
	"strings"
)

// adapterPart is a part of a layer that adapters train: words in the list of modules, and a module's name for lists that
// are a regular expression.
type adapterPart struct {
	name    string
	words   []string
	modules []string
}

var adapterParts = []adapterPart{
	{"qkv", []string{"q_proj", "k_proj", "v_proj", "qkv", "wqkv", "linear_qkv", "query", "c_attn", "q_a_proj", "q_b_proj", "kv_b_proj", "all", "*", "*_proj"}, []string{"q_proj", "k_proj", "v_proj"}},
	{"o", []string{"o_proj", "out_proj", "linear_proj", "dense", "all", "*", "*_proj"}, []string{"o_proj"}},
	{"mlp", []string{"gate_proj", "up_proj", "down_proj", "gate_up_proj", "fc1", "fc2", "linear_fc1", "linear_fc2", "w1", "w2", "w3", "c_fc", "dense_h_to_4h", "all", "*", "*_proj"}, []string{"gate_proj", "up_proj", "down_proj"}},
}

// named reports whether a list of modules, or a regular expression of their names, has the part.
func (p *adapterPart) named(list string) bool {
	words := strings.FieldsFunc(list, func(c rune) bool { return strings.ContainsRune(" ,[]'\"\n", c) })
	for _, w := range words {
		for _, known := range p.words {
			if w == known || strings.HasSuffix(w, "."+known) || known == "all" && strings.HasPrefix(w, "all") || strings.Contains(w, known) && len(known) > 3 {
				return true
			}
		}
	}
	re, err := regexp.Compile("^(?:" + list + ")$")
	if err != nil || len(words) != 1 {
		return false
	}
	for _, module := range p.modules {
		for _, block := range []string{"self_attn", "mlp"} {
			for _, above := range []string{"model.layers.0.", "model.language_model.layers.0."} {
				if re.MatchString(above + block + "." + module) {
					return true
				}
			}
		}
	}
	return false
}

// Adapted returns the parts of a layer that a list of modules has, or that a regular expression of their names matches: qkv,
// o and mlp.
func Adapted(list string) (parts []string) {
	for _, p := range adapterParts {
		if p.named(list) {
			parts = append(parts, p.name)
		}
	}
	return parts
}
