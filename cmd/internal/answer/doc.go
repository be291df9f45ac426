// Package answer answers the questions of the query API: predictions, plans, curves, recommendations and checks of
// memory. The server puts HTTP, limits and documents around it; the page's WebAssembly calls it without a server.
//
// Start with answerer.go; every other file has one question and its request.
package answer
