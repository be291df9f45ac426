// Package server is the HTTP API of pacer serve: predictions, plans, curves, fit
// checks and listings out, measurements in. Measurements refit the performance
// models that answer.
//
// Start with server.go (what a server has, and its shutdown), api.go (operations
// and limits; their Go types define the OpenAPI document). Package cmd/internal/answer
// answers the questions. The operations are in queries.go, oracle.go, listings.go,
// network.go, nearest.go, simulations.go and measurements.go. The web page is in page.
// replicas.go is what writers and replicas do, by package snapshot.
//
// Around them are auth.go (by package access), limit.go (limits), body.go (bodycheck
// and answercache), response.go, metrics.go and tracing.go. Package problem has the
// responses to errors, package simqueue runs simulations.
package server
