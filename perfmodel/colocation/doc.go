// Package colocation predicts the throughput of jobs that share devices (space
// sharing, as by CUDA MPS).
//
// Start with table.go (measured pairs), then estimator.go (other pairs, from few
// measurements of each job and those of similar jobs).
package colocation
