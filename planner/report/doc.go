// Package report writes the answers of a planner as one self-contained page:
// the best plans, where the time and memory of the first go, the Pareto front
// and the sensitivity curve.
//
// Start with html.go: what goes in and what the page is made of. plans.go,
// parts.go, front.go and curve.go are its sections. Everything written is a
// function of the input, so equal inputs give equal bytes. Figures for people
// are rounded; those of the charts have six digits.
package report
