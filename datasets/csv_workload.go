package datasets

import (
	"fmt"
	"io"

	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// readJobCSV reads Pacer's own format. Times are in seconds, submit_s and
// deadline_s since the trace began; plan is in the form of spec.ParsePlan and
// must be for the devices asked for; work is duration_s at the requested
// devices and plan, or steps, or both.
func readJobCSV(w *Workload, r io.Reader, name string) error {
	return w.readJobs(r, name, "job_id",
		[]string{"job_id", "submit_s", "gpus"},
		[]string{"duration_s", "model", "plan", "tenant", "steps", "weight", "deadline_s", "guaranteed"},
		csvJob)
}

func csvJob(r *record) spec.Job {
	r.need("submit_s")
	j := spec.Job{
		ID:         spec.JobID(r.need("job_id")),
		Submit:     r.seconds("submit_s"),
		Devices:    r.devices("gpus"),
		Duration:   r.seconds("duration_s"),
		Steps:      r.atLeast0("steps"),
		Tenant:     r.str("tenant"),
		Weight:     r.atLeast0("weight"),
		Deadline:   r.seconds("deadline_s"),
		Guaranteed: r.flag("guaranteed"),
	}
	if m := r.str("model"); m != "" {
		j.Model = jobModel(m)
	}
	s := r.str("plan")
	if s == "" {
		return j
	}
	p, err := spec.ParsePlan(s)
	switch {
	case err != nil:
		r.fail("plan", err)
	case p.Devices() != j.Devices:
		r.fail("plan", fmt.Errorf("is for %d devices, the job asks for %d", p.Devices(), j.Devices))
	}
	j.Plan = p
	return j
}
