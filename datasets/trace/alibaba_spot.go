package trace

import (
	"errors"
	"iter"

	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// alibabaSpotTrace describes the published trace.
var alibabaSpotTrace = Format{
	License: "none stated for this folder; that of 2020 is CC-BY-4.0",
	URL:     "https://github.com/alibaba/clusterdata/tree/master/cluster-trace-v2026-spot-gpu",
	Commit:  "7a6c496e4f4b6ce6150be8f881cb051bf2abff42",
}

// readAlibabaSpot reads job_info_df.csv. A job asks for gpu_request devices per worker, of the
// named model; high-priority jobs (HP) are guaranteed, Spot jobs are best effort.
func readAlibabaSpot(in *input) iter.Seq2[spec.Job, error] {
	return in.readJobs("job_name",
		[]string{"job_name", "gpu_request", "worker_num", "submit_time", "duration", "job_type"},
		[]string{"organization", "gpu_model", "cpu_request"},
		alibabaSpotJob)
}

func alibabaSpotJob(r *record) spec.Job {
	r.Need("gpu_request")
	r.Need("worker_num")
	j := spec.Job{
		ID:          spec.JobID(r.Need("job_name")),
		Submit:      r.needSeconds("submit_time"),
		Devices:     r.whole("gpu_request", r.AtLeast0("gpu_request")*float64(r.Count("worker_num"))),
		Accelerator: jobAccelerator(r.Str("gpu_model")),
		Duration:    r.runTime(),
		Tenant:      r.Str("organization"),
	}
	switch r.Str("job_type") {
	case "HP":
		j.Guaranteed = true
	case "Spot":
	default:
		r.Fail("job_type", errors.New("is neither HP nor Spot"))
	}
	return j
}
