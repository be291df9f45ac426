// Package remote is the Go client of pacer serve. Its Client is a scheduler.Oracle
// like a planner.Planner, with the same answers and the same errors to branch on.
//
// Start with client.go (requests), measurements.go and rows.go (the store of the server), predictions.go (many questions
// at once), wire.go (the JSON of both ends) and problem.go (errors). retry.go decides which requests to repeat. flight.go
// is how rows and questions go as Arrow record batches.
package remote
