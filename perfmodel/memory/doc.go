// Package memory counts what an execution plan keeps on each device and in
// host memory, in bytes, and says of what and how sure it is.
//
// Start with memory.go (what is asked and answered), then state.go
// (parameters, gradients, optimizer states under ZeRO, tensor, pipeline and
// expert parallelism) and activation.go (what the forward pass leaves for the
// backward pass). stack.go holds what differs between training stacks, as
// documented of them; calibration.go the few constants that measurements must
// give, and calibrate.go how they do.
//
// Everything is counted per tensor from the model's shape, so that grouped
// query attention, gated MLPs and mixtures of experts need no special cases.
// Sources: Korthikanti et al., "Reducing Activation Recomputation in Large
// Transformer Models", 2022 (activations); Rajbhandari et al., "ZeRO", SC 2020
// (states); Narayanan et al., SC 2021 (pipeline schedules).
package memory
