// Package design plans measurements. From a family's posterior of the step times of some configurations, it
// computes how much measuring each would narrow the intervals of all, and which few are best measured together.
//
// Terms: a candidate is a configuration that can be measured; a target is a candidate with an interval that
// counts.
//
// Start with design.go: Model is the interface that a family implements, Space.Gains the result.
package design
