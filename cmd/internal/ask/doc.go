// Package ask answers questions about training jobs as people put them, by
// name: which model on which accelerator, how many samples per step. It is what
// the command line and the query API share.
//
// Start with question.go (what may be asked), desk.go (where names and fitted
// models are looked up) and subject.go (what is known of a model on an
// accelerator). plan_row.go, curve_row.go, fit_check.go, explanation.go and listing.go are the
// answers, with the JSON fields of docs/cli-contract.md; fit.go renews the
// fitted models.
package ask
