package pollux

import (
	"math"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/scheduler/goodput"
	"github.com/pacer-ml/pacer/scheduler/sim"
)

// Limits restrict the configurations of applications in the artifact.
var Limits = []goodput.Limit{{Model: "ncf", Devices: 1}, {Model: "yolov3", Local: 8}}

// WholeSeconds ends epochs and jobs at whole seconds, to the nearest even one.
func WholeSeconds(r *sim.Rules) { r.RoundSec = math.RoundToEven }

// epochCounter is a truth that counts the remaining steps of j in whole epochs; ok is
// false for jobs without a number of epochs.
type epochCounter interface {
	EpochsLeft(j *spec.Job, done float64) (steps float64, ok bool)
}

// EpochsLeft makes the remaining steps in snapshots those from the end of the running
// epoch to that of the last, and 1 step in the last.
func EpochsLeft(r *sim.Rules) {
	r.Remaining = func(t sim.Truth, j *spec.Job, done, left float64) float64 {
		if counter, ok := t.(epochCounter); ok {
			if steps, ok := counter.EpochsLeft(j, done); ok {
				return steps
			}
		}
		return left
	}
}
