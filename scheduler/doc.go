// Package scheduler says what scheduling is made of: a Policy turns a Snapshot
// of cluster and jobs into a Decision, asking an Oracle how fast plans run.
//
// Start with scheduler.go, then policy/ for the policies, place/ for how shapes
// find nodes, and sim/ for the engine that carries decisions out.
// schedulertest/ is what every policy must pass.
package scheduler
