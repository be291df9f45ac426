// Package recipe reads launch files of training jobs: what a file says about the network, the plan, the batch and
// the devices, which keys it has that are not understood, and what it leaves open. No program is run.
//
// Start with recipe.go (Read and Recipe), facts.go (what a file can say) and table.go (the table of keys of a
// format). Each format has a table in a file of its own: megatron.go, torchtitan.go, deepspeed.go, nemo.go,
// automodel.go, axolotl.go, trainer.go, accelerate.go, maxtext.go and torchrun.go. Package keyfile reads YAML, TOML and
// JSON, package shell follows shell scripts. plan.go makes the plan, edit.go writes a changed plan back into the file.
package recipe
