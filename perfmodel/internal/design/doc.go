// Package design plans measurements: from a family's posterior of the step times
// of some configurations, it computes how far measuring each would narrow the
// intervals of all, and which few are best measured together.
//
// Start with design.go: Model is what a family provides, Space.Gains the result.
package design
