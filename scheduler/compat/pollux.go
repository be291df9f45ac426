package compat

import "time"

func init() {
	register(Mode{
		Name:      "pollux",
		Doc:       "Pollux (Qiao et al., OSDI 2021), its simulator as published: petuum/adaptdl at commit c793c70",
		Round:     60 * time.Second,
		StartCost: 30 * time.Second,
		Placement: "emptiest",
		Policies:  []string{"optimus", "optimus-oracle", "tiresias", "pacer"},
		Quirks: Quirks{
			Ticks: true, WholeSeconds: true, NumbersInOrder: true, EpochsLeft: true, ArtifactLimits: true,
			EveryRound: true, QueueByEntry: true, ByCount: true, NextReplica: true,
		},
	})
}
