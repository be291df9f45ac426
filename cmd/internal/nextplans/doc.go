// Package nextplans chooses the plans of a model that are most worth measuring next.
//
// Start with next.go (the request of the query API and its answer); likely.go proposes the plans to choose from.
package nextplans
