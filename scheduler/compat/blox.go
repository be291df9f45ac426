package compat

import "time"

func init() {
	register(Mode{
		Name:      "blox",
		Doc:       "Blox (Agarwal et al., EuroSys 2024), its simulator as published: msr-fiddle/blox at commit c8851b2",
		Round:     300 * time.Second,
		Placement: "scattered",
		Policies:  []string{"fifo", "las", "srtf", "tiresias"},
		Quirks: Quirks{
			Ticks: true, LateEnds: true, JobService: true, Urgent: true, EvictAnyway: true, StopAtMisfit: true, Anew: true,
			NoQuantum: true, Overshoot: true, WholeDemand: true, TiresiasIsLAS: true, NumbersInOrder: true,
		},
	})
}

// UrgentAfter is how long a job waits in a row before Blox lets it go first.
const UrgentAfter = 3_600_000 * time.Second
