// Package worker contains the PyTorch program that trains a model on synthetic data with a plan and measures
// its step times, and the files that it exchanges with the profiler. The program is embedded; it needs only
// Python 3.9 and torch 1.13 or later.
//
// Start with request.go and result.go (input and output), then pacer_worker/point.py (one point), measure.py
// (how long it is measured) and engine.py (how it trains).
//
// # Differences from production training
//
//   - There is no dropout, gradient clipping, learning rate schedule or data
//     loading.
//   - These do not overlap with computation: tensor-parallel sums, the copies
//     and the step of an optimizer on the host, and the gradient sum of a
//     pipeline's replicas, which runs after the pipeline has drained.
//   - ZeRO-1 all-reduces gradients and broadcasts fp32 weights. Other programs
//     reduce-scatter gradients and gather weights in 16 bits.
//   - Sequence parallelism gathers the hidden state again in the backward pass,
//     except before experts, where it is kept.
//   - Selective recomputation repeats the attention core even with fused
//     attention, which stores no scores, so nothing is saved.
//
// # One rank alone
//
// With Config.AloneStage one process does the work of one rank of a plan without the others, see alone.py and
// serve.go: it computes and stores what that rank does, and sends nothing. Sums keep this rank's part, so the losses
// mean nothing. Context and expert parallelism are implemented for such ranks only: their exchanges are copies, see
// Attention in models_attention.py and Experts in models_experts.py.
//
// [Result.Notes] names the implementations that a point used.
package worker
