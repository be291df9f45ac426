package recipe

import (
	"strings"

	"github.com/pacer-ml/pacer/planner/launch/recipe/keyfile"
)

// optimizers are names of optimizers, or parts of them, with other states than the two fp32 values per parameter of Adam.
var optimizers = []struct {
	part string
	effect
}{
	{"onebit", effect{"the optimizer compresses its traffic after a warm-up", 0.2, 0.02}},
	{"zerooneadam", effect{"the optimizer compresses its traffic after a warm-up", 0.2, 0.02}},
	{"8bit", effect{"optimizer states have 8 bits, and 32 are predicted", 0.02, 0.2}},
	{"4bit", effect{"optimizer states have 4 bits, and 32 are predicted", 0.02, 0.25}},
	{"adafactor", effect{"the optimizer keeps a row and a column of each matrix, and Adam's states are predicted", 0.05, 0.25}},
	{"came", effect{"the optimizer keeps a row and a column of each matrix, and Adam's states are predicted", 0.05, 0.25}},
	{"adam_mini", effect{"the optimizer keeps one value per parameter, and Adam's two are predicted", 0.02, 0.15}},
	{"lion", effect{"the optimizer keeps one value per parameter, and Adam's two are predicted", 0.02, 0.15}},
	{"muon", effect{"the optimizer keeps one value per parameter and orthogonalizes updates, and Adam is predicted", 0.1, 0.15}},
	{"galore", effect{"optimizer states of low rank", 0.1, 0.3}},
	{"sgd", effect{"the optimizer keeps at most one value per parameter, and Adam's two are predicted", 0.02, 0.2}},
	{"flashadamw", effect{"optimizer states are compressed, and 32 bits are predicted", 0.02, 0.2}},
}

// adapted is the share of the effect of an optimizer's states that remains with adapters: they are few parameters.
const adapted = 0.1

// optimizerStates adds the effect of an optimizer that is not Adam with fp32 states.
func (r *Recipe) optimizerStates() {
	name := r.texts[Optimizer]
	for _, o := range optimizers {
		if !strings.Contains(name, o.part) {
			continue
		}
		mem := o.memory
		if r.texts[Adapter] != "" {
			mem *= adapted
		}
		r.uncounted("optimizer", name, effect{o.why, o.time, mem})
		return
	}
}

// weightsIn16Bits is a rule of the format in which a framework keeps weights, gradients and optimizer states: fp32 is
// predicted.
func weightsIn16Bits(r *Recipe, e *keyfile.Entry) {
	if v := strings.ToLower(e.Value); strings.Contains(v, "16") {
		r.uncounted(e.Key, e.Value, effect{"weights or optimizer states have 16 bits, and 32 are predicted", 0.03, 0.35})
	}
}
