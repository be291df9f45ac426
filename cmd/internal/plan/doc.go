// Package plan is the commands that answer about execution plans: pacer plan, predict, curve,
// fit-check, check and recommend. The answers are those of cmd/internal/query.
//
// Start with plan.go and request.go (the flags that the commands share), then print.go (tables of
// plans).
package plan
