// Package profiler runs measurement campaigns. A Campaign describes the
// configurations that may be measured and a budget. Run chooses the next point,
// measures it through a Runner and stores it in a Sink, until the budget is
// spent, the predictions are precise enough or no point is left. A run that was
// killed continues where it was.
//
// Start with profiler.go (the interfaces), campaign.go (what is measured) and
// run.go (the loop); choose.go selects the next point, evidence.go
// says when by distance.
// docs/guides/campaigns.md describes the files that ReadCampaign reads.
//
// # Terms
//
//	point    one configuration: model, plan, devices, sequence length
//	run      a campaign under one label; it may take several sessions
//	session  one call of Run
//	key      a (model, accelerator) pair; each key has its own performance model
//	gain     expected fall of the mean interval of a key by measuring one point
//	misled   the intervals do not predict the errors: points are chosen by distance
//
// # Packages below
//
//	runner    measures one point: by torchrun, from a table, or from a formula
//	executor  runs a command and ends every process it started
//	worker    the PyTorch training program, embedded
//	device    the hardware of this machine, and interference with a measurement
//	store     measurements on disk, with Parquet and Arrow in and out
package profiler
