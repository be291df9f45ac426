// Package planner turns a performance model into answers: which plan is best
// for given devices, and how throughput grows with them.
//
//	pl := planner.New(predictor, planner.Options{})
//	best, err := pl.Best(ctx, planner.Request{Model: m, Accelerator: a, Devices: 64, GlobalBatch: 512})
//
// What is asked: [Planner.Best] for one plan, [Planner.Rank] for a list,
// [Planner.Pareto] for those worth a thought, [Planner.Curve] and
// [Planner.Surface] for how throughput follows resources, [Planner.FitCheck] for
// memory, [Planner.Probes] for what to measure before deciding, [Planner.Migrate]
// for whether to change a running job over. The examples show each. What does not
// depend on a performance model fitted again is kept by [Planner.With]. Package
// remote asks the same of another machine.
//
// To read it, start with oracle.go (what is asked and answered) and objective.go
// (what makes a plan the best), then planner.go and search.go (how candidates are
// judged, and which are passed over), then the spaces they come from: enumerate.go
// (every legal plan; legal.go names the rules) and measured.go (those that have
// been run). explain.go says what was missed when nothing fits. curve.go grows the
// devices, surface.go everything else too; pareto.go, probe.go with knowledge.go,
// migrate.go and fit_check.go stand alone.
package planner
