// Package pollux fits the data parallel step time of Pollux (Qiao et al., OSDI 2021), which has seven
// parameters, and computes its goodput. Sia (SOSP 2023) uses the same formula for each type of accelerator and
// projects it to types with measurements of one device only.
//
// Start with pollux.go (formula), fit.go (bounds and objective) and sia.go (projection). goodput.go has
// statistical efficiency; replicas.go fits the steps of one running job.
package pollux
