package recipe

import (
	"slices"
	"strings"

	"github.com/pacer-ml/pacer/planner/launch"
	"github.com/pacer-ml/pacer/planner/launch/recipe/keyfile"
)

// stacks are the training stacks of the formats, as package stack names them.
var stacks = map[string]string{
	"torchtitan": "torchtitan", "torchrun": "PyTorch", "deepspeed": "DeepSpeed", "maxtext": "MaxText", "nemo": "NeMo Megatron",
	"accelerate": "Accelerate", "axolotl": "Accelerate", "trainer": "Hugging Face",
}

// coreOptions are arguments that Megatron-LM has had since it is built on Megatron Core.
var coreOptions = []string{"--use-mcore-models", "--use-megatron-fsdp", "--context-parallel-size", "--cp-comm-type", "--overlap-param-gather", "--ckpt-format", "--attention-backend"}

// Stack names the training stack that the file is for, "" where more than one reads such files. A file that package
// launch wrote names the release too, in a comment.
func (r *Recipe) Stack() string {
	for _, f := range launch.Frameworks() {
		if strings.Contains(r.text, "\n# settings of "+f.Version+"\n") {
			return f.Stack
		}
	}
	switch {
	case r.Format == nemoYAML.name && r.isBridge():
		return "Megatron-Bridge"
	case r.Format == nemoYAML.name && !r.isNeMo1():
		return "NeMo"
	case r.Format != "megatron":
		return stacks[r.Format]
	case slices.ContainsFunc(r.entries, func(e keyfile.Entry) bool { return strings.HasPrefix(e.Key, "--deepspeed") }):
		return "Megatron-DeepSpeed"
	case slices.ContainsFunc(coreOptions, r.has):
		return "Megatron Core"
	}
	return ""
}
