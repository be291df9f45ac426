// Package answer answers the questions of the query API: predictions, plans, curves, recommendations and checks of
// memory. The server puts HTTP, limits and documents around it; the page's WebAssembly calls it without a server.
//
// Start with answerer.go; most other files have one question and its request. batch.go answers many predictions at once, of
// the bodies that questions.go reads.
package answer
