package trace

import (
	"errors"
	"iter"

	"github.com/pacer-ml/pacer/datasets"
	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// polluxTrace describes the published traces: branch osdi21-artifact.
var polluxTrace = Format{
	License: "Apache-2.0 (by file headers)",
	URL:     "https://github.com/petuum/adaptdl",
	Commit:  "c793c7089bd307462686339d29707925c461f9a9",
}

// polluxEpochs is how long the simulators of Pollux and Sia train each application, in statistical
// epochs (max_epochs of their traces).
var polluxEpochs = map[string]float64{
	"bert": 2, "cifar10": 100, "deepspeech2": 80, "imagenet": 90, "ncf": 10, "yolov3": 50,
}

// readPolluxWorkload reads workloads/workload-N.csv. Jobs have no run time: they train for their
// application's epochs, at any batch, on any number of devices. num_replicas and batch_size, the
// global one, are the choice of a user who knows both; schedulers that change neither use them.
func readPolluxWorkload(in *input) iter.Seq2[spec.Job, error] {
	return in.readPollux(func(app string) (spec.Model, float64, bool) {
		m, ok := datasets.SiaModel(app)
		return m, polluxEpochs[app], ok
	})
}

func (in *input) readPollux(model func(app string) (m spec.Model, epochs float64, ok bool)) iter.Seq2[spec.Job, error] {
	return in.readJobs("name",
		[]string{"name", "time", "application", "num_replicas", "batch_size"}, nil,
		func(r *record) spec.Job {
			m, epochs, ok := model(r.Need("application"))
			if !ok {
				r.Fail("application", errors.New("is not one of the artifact's"))
			}
			j := spec.Job{
				ID:          spec.JobID(r.Need("name")),
				Submit:      r.needSeconds("time"),
				Model:       m,
				Epochs:      epochs,
				Devices:     r.devices("num_replicas"),
				GlobalBatch: r.Count("batch_size"),
			}
			if j.GlobalBatch == 0 {
				r.Fail("batch_size", errors.New("is missing or 0"))
			}
			return j
		})
}
