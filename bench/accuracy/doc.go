// Package accuracy measures the error of each family of performance models on rows
// that it was not fitted to. A protocol states which rows are fitted and which are
// scored. Every family runs under every protocol; the results are one table.
//
// Start with protocol.go (protocols and their limits), then oneout.go (the
// published sources, each left out in turn) and score.go (errors of predictions).
// The data is not part of the repository: Options.Shared names its directory.
//
// RunPlanner (planner.go) measures the effect of such predictions on the planner.
//
// No figure called accuracy was computed from rows that the family had fitted. A
// family with constants that were chosen or fitted with the scored rows in view
// has standing InView.
package accuracy
