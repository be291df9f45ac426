package compat

import (
	"time"

	"github.com/pacer-ml/pacer/perfmodel/spec/named"
	"github.com/pacer-ml/pacer/scheduler/compat/sia"
)

// modes are the simulators with semantics that Pacer reproduces.
var modes = newModes(
	Mode{
		Name:      "blox",
		Doc:       "Blox (Agarwal et al., EuroSys 2024), its simulator as published: msr-fiddle/blox at commit c8851b2",
		Round:     300 * time.Second,
		Placement: "scattered",
		Policies:  []string{"fifo", "las", "srtf", "tiresias"},
		quirks: []string{"ticks", "late-ends", "job-service", "urgent", "evict-anyway", "stop-at-misfit", "anew",
			"no-quantum", "overshoot", "whole-demand", "tiresias-is-las", "numbers-in-order"},
	},
	Mode{
		Name:      "dl2",
		Doc:       "DL2 (Peng et al., TPDS 2021), the heuristics of its simulator as published: pengyanghua/DL2 at commit 2e54920",
		Round:     20 * time.Minute,
		Placement: "packed",
		Policies:  []string{"drf", "fifo", "srtf", "tetris", "optimus-oracle"},
		quirks:    []string{"ticks", "numbers-in-order", "every-round", "next-replica", "least-loaded", "to-the-most", "share-left", "tetris-sign", "raw-gain"},
	},
	Mode{
		Name:      "gavel",
		Doc:       "Gavel (Narayanan et al., OSDI 2020), its simulator as published: stanford-futuredata/gavel at commit c4fa400",
		Round:     360 * time.Second,
		Placement: "scattered",
		Policies:  []string{"gavel-fifo", "isolated", "gavel-las", "gavel-las-waterfill", "gavel-ftf", "gavel-makespan", "gavel-throughput", "gavel-cost", "gavel-slo", "gavel-hierarchical", "gandiva"},
		quirks:    []string{"barrier", "whole-steps", "type-by-type", "throttle", "newcomers-wait", "numbers-in-order", "zeros-count", "any-optimum", "summed-gain"},
	},
	Mode{
		Name:      "pollux",
		Doc:       "Pollux (Qiao et al., OSDI 2021), its simulator as published: petuum/adaptdl at commit c793c70",
		Round:     60 * time.Second,
		StartCost: 30 * time.Second,
		Placement: "emptiest",
		Policies:  []string{"optimus", "optimus-oracle", "tiresias", "pollux", "pacer"},
		quirks: []string{"ticks", "whole-seconds", "numbers-in-order", "epochs-left", "artifact-limits",
			"every-round", "queue-by-entry", "by-count", "next-replica", "start-is-restart"},
	},
	Mode{
		Name:       "sia",
		Doc:        "Sia (Jayaram Subramanya et al., SOSP 2023), its simulator as published: siasosp23/artifacts at commit aaf7a0d",
		Round:      60 * time.Second,
		StartCost:  30 * time.Second,
		StartCosts: sia.StartCosts,
		Placement:  "packed",
		Policies:   []string{"sia", "pacer"},
		quirks: []string{"ticks", "whole-seconds", "numbers-in-order", "slowdowns", "sia-limits", "own-models", "owners-batch",
			"free-moves", "rounded-costs", "assumed-starts", "young-move"},
	},
)

func newModes(list ...Mode) *named.Set[Mode] {
	s := named.NewSet[Mode]("compat", "mode")
	for _, m := range list {
		s.Add(m.Name, m)
	}
	return s
}
