// Package launch writes the script or settings file that starts a planned job under
// a training framework with exactly this plan. A part of a plan without a setting is
// an error, never dropped.
//
// Start with launch.go (Emit and its errors), lacks.go (how frameworks declare
// missing settings), stack.go (how files follow the training stack of a prediction)
// and torchrun.go (the shortest framework). megatron.go, deepspeed.go and
// torchtitan.go are the others. docs/guides/launch-files.md lists the versions of
// frameworks.
package launch
