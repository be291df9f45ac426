package trace

import (
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/pacer-ml/pacer/datasets/internal/table"
	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// phillyTrace describes the published trace.
var phillyTrace = Format{
	License: "CC-BY-4.0",
	URL:     "https://github.com/msr-fiddle/philly-traces",
	Commit:  "29a1b87fa2d9ed80b83c9e3a37f3a88d382b031d",
}

// phillyJob is an entry of cluster_job_log. Times are local without a zone, "YYYY-MM-DD HH:MM:SS",
// null or "None".
type phillyJob struct {
	ID        string          `json:"jobid"`
	VC        string          `json:"vc"`
	Submitted *string         `json:"submitted_time"`
	Attempts  []phillyAttempt `json:"attempts"`
}

type phillyAttempt struct {
	Start  *string `json:"start_time"`
	End    *string `json:"end_time"`
	Detail []struct {
		GPUs []string `json:"gpus"`
	} `json:"detail"`
}

// readPhilly reads cluster_job_log, a JSON array with an entry per job, or its archive, jobs of any
// outcome. A failed job was retried: its run time is the sum over its attempts, its devices are the
// most of any attempt. Attempts without a start or an end count no time. Left out (ErrNoJob) are
// jobs that never ran, that had no GPU, and those still running at the end of the log. The tenant
// is the virtual cluster.
func readPhilly(in *input) iter.Seq2[spec.Job, error] {
	return func(yield func(spec.Job, error) bool) {
		ids := jobIDs{column: "jobid"}
		for entry, err := range jsonArray[phillyJob](in) {
			if err != nil {
				if !yield(spec.Job{}, err) {
					return
				}
				continue
			}
			rec := &record{Record: &table.Record{File: in.name, Line: entry.line, Cols: map[string]int{"jobid": 0}, Cells: []string{entry.value.ID}}}
			if !ids.yield(rec, entry.value.job(rec), yield) {
				return
			}
		}
	}
}

// job sums up the attempts.
func (p phillyJob) job(r *record) spec.Job {
	j := spec.Job{ID: spec.JobID(r.Need("jobid")), Tenant: p.VC}
	if submit, ok := phillyTime(r, "submitted_time", p.Submitted); ok {
		j.Submit = submit
	} else {
		r.FailValue("submitted_time", "", errors.New("is missing"))
	}
	for _, a := range p.Attempts {
		j.Duration += a.runTime(r)
		j.Devices = max(j.Devices, a.gpus())
	}
	switch n := len(p.Attempts); {
	case n == 0:
		r.leaveOut("was never started")
	case noTime(p.Attempts[n-1].End):
		r.leaveOut("still ran when the log ended")
	case j.Devices == 0:
		r.leaveOut(whyNoDevices)
	case j.Devices > table.MaxDevices || j.Duration > maxSeconds*time.Second:
		r.FailValue("attempts", fmt.Sprintf("%d GPUs for %v", j.Devices, j.Duration), errors.New("is out of range"))
	case j.Duration == 0:
		r.leaveOut(whyNoTime)
	}
	return j
}

func (a phillyAttempt) gpus() int {
	n := 0
	for _, d := range a.Detail {
		n += len(d.GPUs)
	}
	return n
}

// runTime returns the duration of an attempt, 0 if unknown.
func (a phillyAttempt) runTime(r *record) time.Duration {
	start, started := phillyTime(r, "start_time", a.Start)
	end, ended := phillyTime(r, "end_time", a.End)
	if !started || !ended {
		return 0
	}
	if end < start {
		r.FailValue("end_time", *a.End, fmt.Errorf("is before start_time %s", *a.Start))
	}
	return end - start
}

func noTime(s *string) bool { return s == nil || noDate(*s) }

// phillyTime returns the time since 1970 of a key, false without one.
func phillyTime(r *record, key string, s *string) (time.Duration, bool) {
	if noTime(s) {
		return 0, false
	}
	d, err := parseDate(*s)
	if err != nil {
		r.FailValue(key, *s, err)
	}
	return d, true
}

// readPhillyCSV reads simulator/traces/philly.csv of Pollux's artifact, a reduction of the log to
// one row per job: timestamp,duration,num_gpus,gpu_time,cluster. It has no job ids, so jobs are
// named by line.
func readPhillyCSV(in *input) iter.Seq2[spec.Job, error] {
	return in.readJobs("timestamp",
		[]string{"timestamp", "duration", "num_gpus", "cluster"}, []string{"gpu_time"},
		func(r *record) spec.Job {
			return spec.Job{
				ID:       spec.JobID(fmt.Sprintf("line-%d", r.Line)),
				Submit:   r.needDate("timestamp"),
				Devices:  r.requested("num_gpus"),
				Duration: r.runTime(),
				Tenant:   r.Str("cluster"),
			}
		})
}
