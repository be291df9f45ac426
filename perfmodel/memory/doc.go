// Package memory estimates the bytes that an execution plan needs on each device and in host memory, by use,
// with the spread of the estimate.
//
// A training stack is the software that runs a step, such as Megatron-LM or DeepSpeed. A calibration holds the
// constants that only measurements provide, per stack. A plan fits a device if its estimate is at most the
// device's Budget.
//
// Start with memory.go (Estimate and its result), then block.go (what layers consist of), state.go (parameters,
// gradients, optimizer states under ZeRO, tensor, pipeline and expert parallelism) and activation.go (what the forward
// pass keeps for the backward pass). fit.go decides whether a plan fits. stack.go lists the differences between
// training stacks, from their code and documents; calibration.go defines the constants and calibrate.go fits them.
//
// Everything is counted per tensor from the model's shape, so that grouped
// query attention, gated MLPs and mixtures of experts need no special cases.
// Sources: Korthikanti et al., "Reducing Activation Recomputation in Large
// Transformer Models", 2022 (activations); Rajbhandari et al., "ZeRO", SC 2020
// (states); Narayanan et al., SC 2021 (pipeline schedules).
package memory
