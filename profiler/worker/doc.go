// Package worker is the PyTorch program that trains a model with synthetic data
// under a plan and times it, and the files by which the profiler talks to it.
// The program is embedded and needs nothing but Python 3.9 and torch 1.13 or
// later; what an installed torch lacks it says itself.
//
// Start with request.go and result.go, what goes in and comes out; then
// pacer_worker/point.py (one point, from request to result), measure.py (how
// long it is measured) and engine.py (how it trains).
//
// Its step is a plain one, and differs from what production stacks do. There is
// no dropout, no clipping of gradients, no learning rate schedule and no reading
// of data. Tensor-parallel sums are not overlapped with computing; nor are the
// copies and the step of an optimizer on the host, nor the gradient sum of a
// pipeline's replicas, which comes after it has drained. ZeRO-1 sums gradients on
// all replicas and then broadcasts fp32 weights, where others reduce-scatter and
// gather them in 16 bits. Sequence parallelism gathers the hidden state again in
// the backward pass, except before experts, where it is kept. Selective
// recomputation runs the attention core again even where fused attention keeps no
// scores that this would save. What a point really used is in [Result.Notes].
package worker
