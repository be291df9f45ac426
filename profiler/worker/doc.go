// Package worker is the PyTorch program that trains a model on synthetic data
// under a plan and times it, and the files it exchanges with the profiler. The
// program is embedded; it needs only Python 3.9 and torch 1.13 or later.
//
// Start with request.go and result.go (input and output), then
// pacer_worker/point.py (one point), measure.py (how long it is measured) and
// engine.py (how it trains).
//
// # Differences from production training
//
//   - There is no dropout, gradient clipping, learning rate schedule or data
//     loading.
//   - Not overlapped with computation: tensor-parallel sums, the copies and the
//     step of an optimizer on the host, and the gradient sum of a pipeline's
//     replicas, which follows after the pipeline has drained.
//   - ZeRO-1 all-reduces gradients and broadcasts fp32 weights. Others
//     reduce-scatter the former and gather the latter in 16 bits.
//   - Sequence parallelism gathers the hidden state again in the backward pass,
//     except before experts, where it is kept.
//   - Selective recomputation repeats the attention core even if fused attention
//     stores no scores that this would save.
//
// [Result.Notes] names what a point used.
package worker
