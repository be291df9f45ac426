package datasets

import (
	"iter"

	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// siaTrace describes the published traces.
var siaTrace = Trace{
	License: "Apache-2.0 (by file headers)",
	URL:     "https://github.com/siasosp23/artifacts",
	Commit:  "aaf7a0de7b6cb5eab06ea020467ede5d2fd18e70",
}

// siaStageEpochs is the training length of the pipeline-parallel job.
const siaStageEpochs = 2

// readSiaWorkload reads sia-simulator/workloads/*/workload-N.csv. They are like Pollux's and may
// have the pipelined GPT of siaStage among the applications. Column category is ignored: every job
// may get any number of devices.
func readSiaWorkload(in *input) iter.Seq2[spec.Job, error] {
	return in.readPollux(func(app string) (spec.Model, float64, bool) {
		if app == siaStage {
			return spec.Model{Name: siaStage, Kind: spec.Opaque}, siaStageEpochs, true
		}
		m, ok := SiaModel(app)
		return m, polluxEpochs[app], ok
	})
}
