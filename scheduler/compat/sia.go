package compat

import "time"

func init() {
	register(Mode{
		Name:       "sia",
		Doc:        "Sia (Jayaram Subramanya et al., SOSP 2023), its simulator as published: siasosp23/artifacts at commit aaf7a0d",
		Round:      60 * time.Second,
		StartCost:  30 * time.Second,
		StartCosts: siaStarts,
		Placement:  "packed",
		Policies:   []string{"sia", "pacer"},
		Quirks: Quirks{
			Ticks: true, WholeSeconds: true, NumbersInOrder: true, Slowdowns: true, SiaLimits: true, OwnModels: true, OwnersBatch: true,
			FreeMoves: true, RoundedCosts: true, AssumedStarts: true, YoungMove: true,
		},
	})
}

// siaStarts is how long jobs of a model take to start in Sia's simulator.
var siaStarts = map[string]time.Duration{
	"bert": 120 * time.Second, "cifar10": 50 * time.Second, "deepspeech2": 25 * time.Second,
	"imagenet": 250 * time.Second, "ncf": 15 * time.Second, "yolov3": 80 * time.Second,
}

// SiaAssumedStarts is how long Sia takes them to take, 30 s where nothing is said.
var SiaAssumedStarts = map[string]time.Duration{
	"bert": 120 * time.Second, "deepspeech2": 25 * time.Second, "imagenet": 250 * time.Second, "yolov3": 45 * time.Second,
}

// SiaSlowdowns is what Sia's simulator divides the goodput of a model by; "" is
// for all others.
var SiaSlowdowns = map[string]float64{"cifar10": 1.8, "ncf": 1.5, "": 1.2}
