// Package sia has the parts in which the simulator of Sia (Jayaram Subramanya et al.,
// SOSP 2023; siasosp23/artifacts at commit aaf7a0d) differs from Pacer.
//
// Start with sia.go.
package sia
