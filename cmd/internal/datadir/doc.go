// Package datadir is the directory of --data: the store of measurements, the fitted models,
// and the address of a server that has the store open.
//
// Start with datadir.go, then select.go (measurements by names) and served.go.
package datadir
