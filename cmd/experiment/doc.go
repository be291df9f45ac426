// Package experiment turns names and files into simulations that can run: jobs,
// cluster, policies, truth and belief, failures, admission, placement and costs.
// The verbs simulate, sweep and learn and the programs below bench share it.
//
// The truth is how fast jobs really run; the belief is what policies are told. Both
// are made by name, such as rubick:measured or fitted:hybrid, as a Source.
//
// Start with options.go (everything that can be said of a simulation), simulation.go
// (Options become a Simulation, and that becomes a sim.Config per policy) and
// source.go (truth and belief). sweep.go has studies of many simulations,
// training.go the training of policies that learn.
package experiment
