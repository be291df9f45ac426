package report

import (
	"io"
	"time"

	"github.com/pacer-ml/pacer/scheduler/sim"
)

// jobRow is a job of a run.
type jobRow struct {
	policy string
	*sim.JobRecord
	isolated, rho Number
}

// jobColumns are the columns of a file of jobs. New ones go to the end.
var jobColumns = []column[jobRow]{
	{"policy", "", "scheduling policy with its options", textKind, func(j *jobRow) cell { return textCell(j.policy) }},
	{"job_id", "", "id of the job in the workload", textKind, func(j *jobRow) cell { return textCell(string(j.Job.ID)) }},
	{"submit_s", "s", "submission", timeKind, func(j *jobRow) cell { return timeCell(j.Job.Submit, true) }},
	{"start_s", "s", "first got devices; null = never", timeKind, func(j *jobRow) cell { return timeCell(j.Start, j.Ran()) }},
	{"end_s", "s", "completion; null = did not finish", timeKind, func(j *jobRow) cell { return timeCell(j.End, j.Finished) }},
	{"jct_s", "s", "end_s - submit_s", timeKind, func(j *jobRow) cell { return timeCell(j.JCT(), j.Finished) }},
	{"restarts", "", "times it was stopped or moved while it held devices", wholeKind, func(j *jobRow) cell { return wholeCell(j.Restarts) }},
	{"device_s", "s", "device-seconds held, including start costs; shared devices count half", numberKind, func(j *jobRow) cell { return numberCell(Number(j.Attained)) }},
	{"preemptions", "", "restarts that left the job without devices", wholeKind, func(j *jobRow) cell { return wholeCell(j.Preemptions) }},
	{"delay_s", "s", "queueing delay, start_s - submit_s", timeKind, func(j *jobRow) cell { return timeCell(j.Delay(), j.Ran()) }},
	{"gpus", "", "devices requested", wholeKind, func(j *jobRow) cell { return wholeCell(j.Job.Devices) }},
	{"model", "", "model trained; null = not known", textKind, func(j *jobRow) cell { return textCell(j.Job.Model.Name) }},
	{"tenant", "", "owner of the job; null = none", textKind, func(j *jobRow) cell { return textCell(j.Job.Tenant) }},
	{"outcome", "", "finished, unfinished or rejected", textKind, func(j *jobRow) cell { return textCell(outcome(j.JobRecord)) }},
	{"why", "", "why it was rejected or did not finish", textKind, func(j *jobRow) cell { return textCell(j.Rejected + j.Unfinished) }},
	{"alone_s", "s", "run time at the requested devices and plan, without waits and start costs; null = not known", timeKind,
		func(j *jobRow) cell { return timeCell(j.Alone, j.Alone > 0) }},
	{"isolated_s", "s", "run time on an equal share of the cluster: the denominator of rho; null = not known", numberKind,
		func(j *jobRow) cell { return numberCell(j.isolated) }},
	{"rho", "", "finish-time fairness, jct_s / isolated_s; null = not finished or not known", numberKind,
		func(j *jobRow) cell { return numberCell(j.rho) }},
	{"failures", "", "times it lost its devices because a node went down; not counted as restarts", wholeKind, func(j *jobRow) cell { return wholeCell(j.Failures) }},
	{"lost_device_s", "s", "part of device_s that failures undid", numberKind, func(j *jobRow) cell { return numberCell(Number(j.LostSec)) }},
	{"guaranteed", "", "1 if the job is guaranteed its requested devices, else 0", wholeKind, func(j *jobRow) cell { return wholeCell(flag(j.Job.Guaranteed)) }},
	{"as_submitted_s", "s", "completion at the requested devices and plan if it starts at its submission; null = not known", timeKind,
		func(j *jobRow) cell { return timeCell(j.AsSubmitted, j.AsSubmitted > 0) }},
	{"late_submitted_s", "s", "end_s - as_submitted_s; null = not finished or not known", timeKind, func(j *jobRow) cell { return j.late(j.AsSubmitted) }},
	{"backfill_s", "s", "completion of a guaranteed job under fifo-backfill; null = not guaranteed or not known", timeKind,
		func(j *jobRow) cell { return timeCell(j.Backfill, j.Backfill > 0) }},
	{"late_backfill_s", "s", "end_s - backfill_s; null = not finished or not known", timeKind, func(j *jobRow) cell { return j.late(j.Backfill) }},
}

// late returns the time from a reference to the completion.
func (j *jobRow) late(reference time.Duration) cell {
	return timeCell(j.End-reference, j.Finished && reference > 0)
}

func flag(b bool) int {
	if b {
		return 1
	}
	return 0
}

func outcome(j *sim.JobRecord) string {
	switch {
	case j.Rejected != "":
		return "rejected"
	case j.Finished:
		return "finished"
	}
	return "unfinished"
}

// WriteJobs writes one row per job that counts, run after run, with the columns in
// FORMAT.md. It does not hold the rows in memory.
func WriteJobs(w io.Writer, f Format, results []*sim.Result, score Score) error {
	out, err := newRowWriter(w, f, "pacer.jobs", jobColumns)
	if err != nil {
		return err
	}
	for _, r := range results {
		isolated := isolatedTimes(r)
		for i := range r.Jobs {
			j := jobRow{policy: r.Policy, JobRecord: &r.Jobs[i], isolated: isolated[i], rho: Undefined()}
			if !score.Has(j.Job.ID) {
				continue
			}
			if j.Finished {
				j.rho = seconds(j.JCT()) / j.isolated
			}
			if err := out.write(&j); err != nil {
				return err
			}
		}
	}
	return out.close()
}
