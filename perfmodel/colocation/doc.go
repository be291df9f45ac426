// Package colocation says how fast jobs run that share devices (space sharing, as
// by CUDA MPS).
//
// Start with table.go, what was measured; estimator.go tells the rest of few
// measurements, by what is known of other jobs.
package colocation
