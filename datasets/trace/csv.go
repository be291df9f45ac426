package trace

import (
	"encoding/csv"
	"fmt"
	"io"
	"iter"
	"strconv"

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
		Host:       spec.Host{MilliCPUs: r.parts("cpus_per_gpu", 1000), Bytes: r.parts("host_gib_per_gpu", gib)},
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

// WriteCSV writes jobs in the format "csv", with models by name. It omits sequence length,
// global batch and accelerator, for which there are no columns.
func WriteCSV(w io.Writer, jobs []spec.Job) error {
	cw := csv.NewWriter(w)
	_ = cw.Write([]string{"job_id", "submit_s", "gpus", "duration_s", "model", "plan", "tenant", "steps", "weight", "deadline_s", "guaranteed",
		"cpus_per_gpu", "host_gib_per_gpu"})
	for _, j := range jobs {
		plan := ""
		if j.Plan != (spec.Plan{}) {
			plan = j.Plan.String()
		}
		guaranteed := ""
		if j.Guaranteed {
			guaranteed = "1"
		}
		_ = cw.Write([]string{string(j.ID), decimal(j.Submit.Seconds(), true), strconv.Itoa(j.Devices), decimal(j.Duration.Seconds(), false),
			j.Model.Name, plan, j.Tenant, decimal(j.Steps, false), decimal(j.Weight, false), decimal(j.Deadline.Seconds(), false), guaranteed,
			decimal(float64(j.Host.MilliCPUs)/1000, false), decimal(float64(j.Host.Bytes)/gib, false)})
	}
	cw.Flush()
	return cw.Error()
}

// decimal formats v in the shortest form; 0 is an empty cell unless zero is set.
func decimal(v float64, zero bool) string {
	if v == 0 && !zero {
		return ""
	}
	return strconv.FormatFloat(v, 'f', -1, 64)
}
