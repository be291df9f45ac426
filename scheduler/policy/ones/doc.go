// Package ones holds ONES (Bian et al., SC 2021): a population of schedules evolves,
// and batches grow with devices.
//
// Start with ones.go, evolve.go and apply.go.
package ones
