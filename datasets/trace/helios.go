package trace

import (
	"iter"

	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// heliosTrace describes the published trace.
var heliosTrace = Format{
	License: "CC-BY-4.0",
	URL:     "https://github.com/S-Lab-System-Group/HeliosData",
	Commit:  "159f0ca",
}

// readHelios reads cluster_log.csv of one of the clusters Earth, Saturn, Uranus and Venus, jobs of
// any outcome. The tenant is the virtual cluster; times are local, of a single zone. More than half
// of the rows are jobs without GPUs, which are left out (ErrNoJob).
func readHelios(in *input) iter.Seq2[spec.Job, error] {
	return in.readJobs("job_id",
		[]string{"job_id", "vc", "gpu_num", "submit_time", "duration"},
		[]string{"user", "cpu_num", "node_num", "state", "start_time", "end_time", "queue"},
		func(r *record) spec.Job {
			return spec.Job{
				ID:       spec.JobID(r.Need("job_id")),
				Submit:   r.needDate("submit_time"),
				Devices:  r.requested("gpu_num"),
				Duration: r.runTime(),
				Tenant:   r.Str("vc"),
			}
		})
}
