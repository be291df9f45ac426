package compat

import "time"

func init() {
	register(Mode{
		Name:      "gavel",
		Doc:       "Gavel (Narayanan et al., OSDI 2020), its simulator as published: stanford-futuredata/gavel at commit c4fa400",
		Round:     360 * time.Second,
		Placement: "scattered",
		Policies:  []string{"gavel-fifo", "isolated", "gavel-las", "gavel-las-waterfill", "gavel-ftf", "gavel-makespan", "gavel-throughput", "gavel-cost", "gavel-slo", "gavel-hierarchical", "gandiva"},
		Quirks:    Quirks{Barrier: true, WholeSteps: true, TypeByType: true, Throttle: true, NewcomersWait: true, NumbersInOrder: true, ZerosCount: true, AnyOptimum: true, SummedGain: true},
	})
}

// GavelThrottle is how long Gavel keeps the fractions of time at the least.
const GavelThrottle = 1920 * time.Second

// GavelShuffleSeed seeds the Mersenne Twister that shuffles the types of devices
// in runs with seed 0.
const GavelShuffleSeed = 5
