package compat

import "time"

func init() {
	register(Mode{
		Name:      "dl2",
		Doc:       "DL2 (Peng et al., TPDS 2021), the heuristics of its simulator as published: pengyanghua/DL2 at commit 2e54920",
		Round:     20 * time.Minute,
		Placement: "packed",
		Policies:  []string{"drf", "fifo", "srtf", "tetris", "optimus-oracle"},
		Quirks: Quirks{
			Ticks: true, NumbersInOrder: true, EveryRound: true, NextReplica: true, LeastLoaded: true, ToTheMost: true, ShareLeft: true, TetrisSign: true, RawGain: true,
		},
	})
}

// DL2Most is how many replicas, and how many parameter servers, DL2's simulator gives
// a job.
const DL2Most = 16
