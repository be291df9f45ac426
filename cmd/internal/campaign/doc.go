// Package campaign turns a campaign file and options into a profile that can run: the machine,
// the runner, the points that can be measured and the stored rows. It also sums up what runs
// have measured.
//
// Start with session.go (everything that a run needs), setup.go (the machine and the runner,
// real or assumed), tally.go (sums of stored rows) and display.go (the progress of a run).
package campaign
