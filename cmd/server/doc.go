// Package server is the query API of pacer serve: predictions, plans, curves,
// fit checks, listings and cards over HTTP, and measurements in, which refit
// the performance models that answer.
//
// Start with server.go (what a server is made of and how it ends), api.go (the
// operations, from whose Go types the OpenAPI document follows) and
// knowledge.go (what answers are made from, and when that changes). The
// operations are in questions.go, oracle.go, listings.go and measurements.go;
// around them are guard.go, limit.go, problem.go and metrics.go. fast.go
// answers well-formed predictions without the generic machinery.
package server
