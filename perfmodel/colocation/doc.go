// Package colocation predicts the throughput of jobs that share devices (space sharing, as with CUDA MPS).
//
// A pair is two jobs on the same devices. A kind is what distinguishes jobs in a pair: model, sequence length,
// plan and accelerator.
//
// Start with table.go (measured pairs), then estimator.go (other pairs, estimated from few measurements of each
// kind).
package colocation
