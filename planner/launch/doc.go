// Package launch writes what starts a planned job under a training framework:
// the command line, or the file of settings, that makes the framework run
// exactly this plan.
//
// Start with launch.go (Emit, and how a framework says what it cannot express),
// then one of torchrun.go, megatron.go, deepspeed.go and torchtitan.go. Which
// version of each the names are of is in its Framework and in docs/launch.md.
package launch
