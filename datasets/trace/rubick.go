package trace

import (
	"errors"
	"iter"

	"github.com/pacer-ml/pacer/datasets"
	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// rubickTrace describes the published traces.
var rubickTrace = Format{
	License: "Apache-2.0",
	URL:     "https://github.com/AlibabaPAI/reconfigurable-dl-scheduler",
	Commit:  "80e85248c65c1ae231e2cf8bbfe0918b7af45c98",
}

// readRubickWorkload reads a trace of simulator/workloads. The plan is decoded as in the
// measurements, for the application's global batch, so that the configuration of a job has a
// measured time. num_cpus and bandwidth are ignored, as in the artifact's simulator. duration,
// steps times the measured step time, is kept beside the steps.
func readRubickWorkload(in *input) iter.Seq2[spec.Job, error] {
	return in.readJobs("name",
		[]string{"name", "submission_time", "application", "num_gpus", "exec_plan", "steps"},
		[]string{"duration", "num_cpus", "bandwidth", "is_sla"},
		rubickJob)
}

func rubickJob(r *record) spec.Job {
	r.Need("submission_time")
	r.Need("steps")
	app := r.Need("application")
	m, batch, ok := datasets.RubickModel(app)
	if !ok {
		r.Fail("application", errors.New("is not a model of the data set"))
		return spec.Job{}
	}
	j := spec.Job{
		ID:          spec.JobID(r.Need("name")),
		Submit:      r.seconds("submission_time"),
		Model:       m,
		GlobalBatch: batch,
		Devices:     r.devices("num_gpus"),
		Steps:       r.AtLeast0("steps"),
		Duration:    r.seconds("duration"),
		Guaranteed:  r.flag("is_sla"),
	}
	if r.Err() != nil {
		return j
	}
	plan, err := datasets.ParseRubickPlan(r.Need("exec_plan"), j.Devices, batch)
	if err != nil {
		r.Fail("exec_plan", err)
	}
	j.Plan = plan
	return j
}
