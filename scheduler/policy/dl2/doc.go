// Package dl2 holds DL2 (Peng et al., TPDS 2021): a trained network gives devices to jobs
// one increment after the other. dl2.bin is the network that comes with Pacer.
//
// Start with dl2.go, state.go and model.go.
package dl2
