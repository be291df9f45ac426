package trace

import (
	"fmt"
	"iter"

	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// readCSV reads Pacer's own format. Times are in seconds; submit_s and deadline_s are since the
// trace began. plan has the form of spec.ParsePlan and the requested number of devices. The work is
// duration_s with the requested devices and plan, or steps, or both. Host resources are per device:
// CPU threads, to the thousandth, and GiB of memory.
func readCSV(in *input) iter.Seq2[spec.Job, error] {
	return in.readJobs("job_id",
		[]string{"job_id", "submit_s", "gpus"},
		[]string{"duration_s", "model", "plan", "tenant", "steps", "weight", "deadline_s", "guaranteed", "cpus_per_gpu", "host_gib_per_gpu"},
		csvJob)
}

func csvJob(r *record) spec.Job {
	r.Need("submit_s")
	j := spec.Job{
		ID:         spec.JobID(r.Need("job_id")),
		Submit:     r.seconds("submit_s"),
		Devices:    r.devices("gpus"),
		Duration:   r.seconds("duration_s"),
		Steps:      r.AtLeast0("steps"),
		Tenant:     r.Str("tenant"),
		Weight:     r.AtLeast0("weight"),
		Deadline:   r.seconds("deadline_s"),
		Guaranteed: r.flag("guaranteed"),
		Host:       spec.Host{MilliCPUs: r.scaled("cpus_per_gpu", 1000), Bytes: r.scaled("host_gib_per_gpu", gib)},
	}
	if m := r.Str("model"); m != "" {
		j.Model = jobModel(m)
	}
	s := r.Str("plan")
	if s == "" {
		return j
	}
	p, err := spec.ParsePlan(s)
	switch {
	case err != nil:
		r.Fail("plan", err)
	case p.Devices() != j.Devices:
		r.Fail("plan", fmt.Errorf("is for %d devices, the job asks for %d", p.Devices(), j.Devices))
	}
	j.Plan = p
	return j
}
