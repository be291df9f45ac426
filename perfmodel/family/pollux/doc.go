// Package pollux fits the data parallel step time of Qiao et al., Pollux, OSDI
// 2021, in seven parameters, and has its goodput. Sia (SOSP 2023) uses the same
// formula for each type of accelerator and projects it across types.
//
// Start with pollux.go (formula), fit.go (bounds and objective) and sia.go
// (projection).
package pollux
