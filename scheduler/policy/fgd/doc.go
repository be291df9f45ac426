// Package fgd holds fragmentation gradient descent (Weng et al., "Beware of Fragmentation",
// ATC 2023): jobs are placed where the devices that no typical job could use grow least.
//
// Start with fgd.go.
package fgd
