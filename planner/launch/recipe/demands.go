package recipe

import (
	"fmt"
	"slices"
	"strings"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/planner/launch/recipe/shell"
)

// demand is a value that only some devices run.
type demand struct {
	keys   []string
	values []string // in lower case
	on     func(arch string) bool
	needs  string  // which devices those are
	then   string  // value on other devices, "" = the key goes
	also   *change // what goes with it
}

func archs(names ...string) func(string) bool {
	return func(arch string) bool { return slices.Contains(names, arch) }
}

// sinceAmpere reports whether a device is not an NVIDIA one before Ampere.
func sinceAmpere(arch string) bool {
	return !archs("Kepler", "Maxwell", "Pascal", "Volta", "Turing")(arch)
}

var demands = []demand{
	{keys: attentionKeys, values: []string{"flash_attention_3", "flash_attn_3", "kernels-community/flash-attn3", "fa3"}, on: archs("Hopper"), needs: "FlashAttention 3 is for Hopper", then: "flash_attention_2"},
	{keys: attentionKeys, values: []string{"flash_attention_2", "fa2"}, on: sinceAmpere, needs: "FlashAttention 2 needs Ampere or later", then: "sdpa"},
	{keys: []string{"flash_attention"}, values: yes, on: sinceAmpere, needs: "FlashAttention 2 needs Ampere or later", then: "false", also: &change{key: "sdp_attention", value: "true"}},
	{keys: []string{"--use-flash-attn"}, values: []string{shell.Present}, on: sinceAmpere, needs: "FlashAttention 2 needs Ampere or later"},
	{keys: []string{"--attention-backend"}, values: []string{"flash"}, on: sinceAmpere, needs: "FlashAttention 2 needs Ampere or later", then: "auto"},
	{keys: []string{"--fp8-recipe", "fp8_recipe", "model.fp8_recipe"}, values: []string{"mxfp8"}, on: archs("Blackwell", "Blackwell Ultra", "Rubin"), needs: "scales of blocks (MXFP8) need Blackwell", then: "delayed"},
	{keys: []string{"tf32"}, values: yes, on: sinceAmpere, needs: "TF32 needs Ampere or later", then: "false"},
}

var (
	attentionKeys = []string{"attn_implementation", "model.attn_implementation", "flash_attn"}
	yes           = []string{"true", "yes", "on", "1"}
)

// unmet returns the values that a does not run, and the changes after which the file does without them.
func (r *Recipe) unmet(a spec.Accelerator) (lacks []string, out []change) {
	for _, d := range demands {
		for _, key := range d.keys {
			if a.Arch == "" || d.on(a.Arch) || !slices.Contains(d.values, strings.ToLower(r.valueOf(key))) {
				continue
			}
			value := d.then
			if key == "flash_attn" { // words of LLaMA-Factory
				value = strings.Replace(value, "flash_attention_2", "fa2", 1)
			}
			was, instead := key+"="+r.valueOf(key), key+"="+value
			if value == "" {
				was, instead = key, "nothing"
			}
			lacks = append(lacks, fmt.Sprintf("%s: %s, and %s is %s: %s takes its place", was, d.needs, a.Name, a.Arch, instead))
			if out = append(out, change{key: key, value: value, remove: value == ""}); d.also != nil {
				out = append(out, *d.also)
			}
		}
	}
	return lacks, out
}

// Lacks says what the file asks for that a does not run, and what takes its place in the file of Diff.
func (r *Recipe) Lacks(a spec.Accelerator) []string {
	lacks, _ := r.unmet(a)
	return lacks
}
