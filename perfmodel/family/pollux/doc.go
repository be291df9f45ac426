// Package pollux fits the data parallel step time of Pollux (Qiao et al., OSDI 2021), which has seven
// parameters. Sia (SOSP 2023) uses the same formula for each type of accelerator.
//
// Start with pollux.go (formula) and fit.go (bounds and objective). sia.go has Sia's way to fit; replicas.go
// fits the steps of one running job. Package planner has the goodput.
package pollux
