// Package remote is the Go client of pacer serve. Its Client is a scheduler.Oracle
// like a planner.Planner, with the same answers and the same errors to branch on.
//
// Start with client.go (requests), measurements.go (the store of the server), wire.go
// (the JSON of both ends) and problem.go (errors over HTTP). retry.go decides which requests to repeat.
package remote
