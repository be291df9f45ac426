// Package profiler takes measurements: which configurations to run, in what
// order, until when. A Campaign says what may be measured and at what cost;
// Run measures it point by point through a Runner, each in the Sink before the
// next begins, and goes on where it was after a crash.
//
// Start with profiler.go (what it is made of), campaign.go (what is asked for)
// and run.go (what happens); choose.go is how the next point is chosen.
// docs/campaigns.md describes the files ReadCampaign reads.
//
// Below it: runner measures one point, executor runs a command, worker is the
// training program, device the machine, and store keeps measurements: one row
// per observation, in badger, with Parquet and Arrow in and out.
package profiler
