// Package report writes the answers of a planner as one self-contained HTML page:
// the best plans, the parts of time and memory of the first, the Pareto front and
// the sensitivity curve.
//
// The page opens with its conclusion: the best plan, and the plans that cannot be
// distinguished from it. It is a function of the input, so that equal inputs give
// equal bytes. Figures in tables are rounded, those of charts have six digits.
//
// Start with html.go (the input and the page), plans.go (the conclusion and its
// table) and curve.go (a section with a chart). parts.go and front.go are the other
// sections.
package report
