package sia

import (
	"time"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/scheduler"
	"github.com/pacer-ml/pacer/scheduler/goodput"
	"github.com/pacer-ml/pacer/scheduler/sim"
)

// StartCosts are the start costs of jobs by model.
var StartCosts = map[string]time.Duration{
	"bert": 120 * time.Second, "cifar10": 50 * time.Second, "deepspeech2": 25 * time.Second,
	"imagenet": 250 * time.Second, "ncf": 15 * time.Second, "yolov3": 80 * time.Second,
}

// Slowdowns divide the goodput of a model; "" is for all others.
var Slowdowns = map[string]float64{"cifar10": 1.8, "ncf": 1.5, "": 1.2}

// Limits are the configurations that applications may not run with.
var Limits = []goodput.Limit{{Model: "deepspeech2", Accelerator: "RTX2080Ti", Local: 57}}

// OwnersBatch expects a job to train at most the batch it was submitted with.
func OwnersBatch(j *spec.Job, _ int) int { return j.Batch() }

// FreeMoves lets a job that keeps plan and shape move to other nodes of its group
// without a restart.
func FreeMoves(r *sim.Rules) {
	r.LiveMove = func(from, to *scheduler.Grant) bool {
		there := *to
		there.Slots = from.Slots
		return there.Same(from)
	}
}
