// Package remote asks a planner over the wire: Client is the Go client of the
// query API that pacer serve offers, and a scheduler.Oracle like the planner
// itself. Its answers, and the errors that callers branch on, are those of a
// planner in the same process.
//
// Start with client.go; wire.go is the JSON both ends speak, problem.go how
// errors travel, and retry.go what is asked again.
package remote
