// Package query answers requests that name things: which model on which
// accelerator, how many samples per step. The command line and the query API
// share it.
//
// Start with request.go (what a request says), resolver.go (looks up names and
// fitted models) and target.go (what is known of a model on an accelerator).
// plan_row.go, curve_row.go, fit_check.go, explanation.go and listing.go are the
// answers, with the JSON fields of docs/reference/contract.md; fit.go renews the fitted
// models.
package query
