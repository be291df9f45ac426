// Package experiment turns names and files into simulations that can run: jobs, cluster,
// policies, truth and belief, failures, admission, placement and costs. The verbs simulate,
// sweep and learn and the programs below bench share it.
//
// The truth is the real speed of jobs, the belief the estimate that policies use. Both are
// named, such as rubick:measured or fitted:hybrid, and made as a Source.
//
// Start with options.go (all options of a simulation), simulation.go (Options become a
// Simulation, which makes a sim.Config per policy) and source.go (truth and belief). sweep.go
// has studies of many simulations, training.go the training of policies that learn.
package experiment
