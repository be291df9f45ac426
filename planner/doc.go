// Package planner ranks execution plans by a performance model: the best plan on
// given devices, and how throughput grows with devices.
//
//	pl := planner.New(predictor, planner.Options{})
//	best, err := pl.Best(ctx, planner.Request{Model: m, Accelerator: a, Devices: 64, GlobalBatch: 512})
//
// [Planner.Best] returns one plan, [Planner.Rank] a list and [Planner.Pareto] the
// front over speed, memory and devices. [Planner.BeatsBest] finds plans of a list
// that cannot be distinguished, and [Planner.Probes] what to measure to decide.
// [Planner.Curve] and [Planner.Surface] are throughput over resources,
// [Planner.FitCheck] is about memory, [Planner.Migrate] about moving a running job.
// [Planner.WithPredictor] keeps cached answers after a refit. The examples show
// each. Package remote asks a server the same questions.
//
// Terms: a Space holds the configurations that may be proposed: every legal plan
// (Enumerate), or those that were measured (Measured). A candidate is one of them.
// Its score is the value of its throughput under the request's objective.
//
// Start with oracle.go (requests and answers), planner.go (Best and Rank) and
// search.go (how candidates are judged and pruned). enumerate.go and legal.go make
// the legal plans, objective.go their scores, explain.go the message when nothing
// fits.
package planner
