// Package accuracy measures how far each family of performance models is off
// on rows it has not seen: one protocol per question, every family under every
// protocol, one table.
//
// Start with protocol.go (what is asked, and the bars), then oneout.go (the
// published sources, each left out in turn) and score.go (what is made of the
// answers). The data is not part of the repository: Open takes its directory.
//
// RunPlanner (planner.go) asks what such predictions are worth to the planner.
//
// Nothing that is called accuracy here was computed from rows that the family
// had fitted. Where a family's constants were chosen or fitted with the scored
// rows in view, its standing says so.
package accuracy
