package trace

import (
	"iter"

	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// tiresiasTrace describes the published traces.
var tiresiasTrace = Format{
	License: "Apache-2.0",
	URL:     "https://github.com/SymbioticLab/Tiresias",
	Commit:  "959f9b08f44fa1b4f2b3aed79b01e4d439264a94",
}

// readTiresias reads a job list of the simulator: each job trains a network of tf_cnn_benchmarks
// for a number of iterations and seconds. Column interval is the time to the next job, as in
// submit_time.
func readTiresias(in *input) iter.Seq2[spec.Job, error] {
	return in.readJobs("job_id",
		[]string{"job_id", "num_gpu", "submit_time", "iterations", "model_name", "duration"},
		[]string{"interval"},
		func(r *record) spec.Job {
			r.Need("iterations")
			r.Need("duration")
			return spec.Job{
				ID:       spec.JobID(r.Need("job_id")),
				Submit:   r.needSeconds("submit_time"),
				Model:    jobModel(r.Need("model_name")),
				Devices:  r.devices("num_gpu"),
				Steps:    r.AtLeast0("iterations"),
				Duration: r.seconds("duration"),
			}
		})
}
