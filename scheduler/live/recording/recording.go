package recording

import (
	"time"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/scheduler"
	"github.com/pacer-ml/pacer/scheduler/sim"
)

// Recording is what a controller saw and did. Durations count from Epoch.
type Recording struct {
	Sessions int           // runs of a controller
	Torn     int           // lines that are left out
	Policies []string      // of the sessions, each once, in order
	Last     Session       // the last session, but even if any is
	Epoch    time.Time     // the first submission, or the first observation if that is earlier
	From, To time.Duration // the first and the last observation
	Away     time.Duration // between the sessions

	Cluster spec.Cluster // all nodes that ever were, as policies see them
	// Failures are the times at which nodes were down, or not in the cluster, without having been
	// drained; Drains are those after a drain, known from its beginning. All end by To.
	Failures, Drains sim.OutageTable
	Others           float64          // device-seconds held by jobs that pacer does not schedule
	Usage            []sim.Occupation // what these jobs held, ascending by time; nothing from To on
	Jobs             []Job            // by submission, then ID
	// LeftOut are jobs without a run in the recording that ended without being cancelled, or are paused, and those that
	// run without having been started by pacer.
	LeftOut []spec.JobID
}

// Job is a recorded job.
type Job struct {
	spec.Job       // as submitted; Submit is not below 0
	Runs     []Run // ascending and disjoint
	Ended    bool
	// Cancelled is when someone cancelled the job, and thereby ended it; negative = it was not cancelled.
	Cancelled time.Duration
	Early     bool // it had run before the recording began
	// Trained is the number of steps done within the recording by Seen, as the job reported;
	// negative = unknown.
	Trained     float64
	Seen        time.Duration
	Restarts    int // times a decision stopped or moved it
	Preemptions int // of those, times it was left without devices
	Failures    int // times it was stopped without a decision
}

// Run is a time at which a job held devices.
type Run struct {
	Start, End time.Duration // End is the end of the recording if the job still runs
	StartCost  time.Duration // expected time until training begins
	Grant      *scheduler.Grant
}

// Counts reports whether the whole life of the job is recorded, up to the end of its work.
func (j *Job) Counts() bool { return j.Ended && j.Cancelled < 0 && !j.Early }

// trained returns the time in which j trained up to a time.
func (r *Run) trained(by time.Duration) time.Duration {
	return max(min(r.End, by)-r.Start-r.StartCost, 0)
}

// trained returns the time in which j trained up to a time.
func (j *Job) trained(by time.Duration) (d time.Duration) {
	for k := range j.Runs {
		d += j.Runs[k].trained(by)
	}
	return d
}
