package trace

import (
	"iter"

	"github.com/pacer-ml/pacer/datasets"
	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// siaTrace describes the published traces.
var siaTrace = Format{
	License: "Apache-2.0 (by file headers)",
	URL:     "https://github.com/siasosp23/artifacts",
	Commit:  "aaf7a0de7b6cb5eab06ea020467ede5d2fd18e70",
}

// The pipeline-parallel GPT among Sia's applications, and its training length. No table has its step
// times.
const (
	siaPipelined       = "gpt_pmp"
	siaPipelinedEpochs = 2
)

// readSiaWorkload reads sia-simulator/workloads/*/workload-N.csv. They are like Pollux's and may
// have siaPipelined among the applications. Column category is ignored: every job
// may get any number of devices.
func readSiaWorkload(in *input) iter.Seq2[spec.Job, error] {
	return in.readPollux(func(app string) (spec.Model, float64, bool) {
		if app == siaPipelined {
			return spec.Model{Name: siaPipelined, Kind: spec.Opaque}, siaPipelinedEpochs, true
		}
		m, ok := datasets.SiaModel(app)
		return m, polluxEpochs[app], ok
	})
}
