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

// Slowdowns divide the goodput of a model; "" is the default.
var Slowdowns = map[string]float64{"cifar10": 1.8, "ncf": 1.5, "": 1.2}

// Limits restrict the configurations of applications.
var Limits = []goodput.Limit{{Model: "deepspeech2", Accelerator: "RTX2080Ti", Local: 57}}

// OwnersBatch bounds a job's batch by the submitted one, for goodput.AgentRules.MaxBatch.
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
