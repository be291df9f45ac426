package trace

import (
	"iter"

	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// acmeTrace describes the published trace.
var acmeTrace = Format{
	License: "CC-BY-4.0",
	URL:     "https://github.com/InternLM/AcmeTrace",
	Commit:  "6d6ac9c",
}

// readAcme reads trace_seren.csv or trace_kalos.csv, jobs of any outcome. A run time is end minus
// start. Column duration is used only without one of the two: in Kalos it includes the time in the
// queue, as the example in the trace's README shows (18 s for a job submitted at 11:00:58, begun at
// 11:01:08 and ended at 11:01:16).
func readAcme(in *input) iter.Seq2[spec.Job, error] {
	return in.readJobs("job_id",
		[]string{"job_id", "user", "gpu_num", "submit_time"},
		[]string{"node_num", "cpu_num", "type", "state", "start_time", "end_time", "duration", "queue", "gpu_time",
			"mem_per_pod_GB", "shared_mem_per_pod", "fail_time", "stop_time"},
		acmeJob)
}

func acmeJob(r *record) spec.Job {
	j := spec.Job{
		ID:      spec.JobID(r.Need("job_id")),
		Submit:  r.needDate("submit_time"),
		Devices: r.requested("gpu_num"),
		Tenant:  r.Str("user"),
	}
	start, started := r.date("start_time")
	end, ended := r.date("end_time")
	if started && ended {
		j.Duration = r.between("start_time", start, "end_time", end)
	} else {
		j.Duration = r.runTime()
	}
	return j
}
