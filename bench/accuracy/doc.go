// Package accuracy measures how far each family of performance models is off
// on rows it has not seen: one protocol per question, every family under every
// protocol, one table.
//
// Start with protocol.go (protocols and their limits), then oneout.go (the
// published sources, each left out in turn) and score.go (errors of the
// answers). The data is not part of the repository: Open takes its directory.
//
// RunPlanner (planner.go) measures the effect of such predictions on the planner.
//
// Nothing that is called accuracy here was computed from rows that the family
// had fitted. Where a family's constants were chosen or fitted with the scored
// rows in view, its standing says so.
package accuracy
