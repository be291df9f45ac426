// Package memory estimates the bytes that an execution plan keeps on each device
// and in host memory, by use, with the spread of the estimate.
//
// Start with memory.go (Estimate and its result), then state.go (parameters,
// gradients, optimizer states under ZeRO, tensor, pipeline and expert
// parallelism) and activation.go (what the forward pass keeps for the backward
// pass). stack.go has the differences between training stacks, from their
// documents; calibration.go the constants that only measurements give, and
// calibrate.go their fit.
//
// Everything is counted per tensor from the model's shape, so that grouped
// query attention, gated MLPs and mixtures of experts need no special cases.
// Sources: Korthikanti et al., "Reducing Activation Recomputation in Large
// Transformer Models", 2022 (activations); Rajbhandari et al., "ZeRO", SC 2020
// (states); Narayanan et al., SC 2021 (pipeline schedules).
package memory
