package sim

import (
	"time"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/scheduler"
)

// Result is the outcome of a simulated run.
type Result struct {
	Policy   string
	Devices  int         // devices of the cluster
	Jobs     []JobRecord // every job of the workload, by submit time, then ID
	Usage    []Usage     // devices held over time, a step function
	Shared   bool        // whether two jobs ever shared devices
	Lookups  Lookups
	Learned  *scheduler.Learned // record of the Learner, nil without one
	Gaps     Gaps
	Warnings []string
	Elapsed  time.Duration // wall time of the run; the only field two equal runs differ in
	Failed   string        // why the run ended early, "" = it did not: then all else but Policy is empty
}

// JobRecord is the history of one job. Times count from the start of the trace.
type JobRecord struct {
	Job         spec.Job
	Start       time.Duration // first got devices
	End         time.Duration // completed, or was cancelled
	Finished    bool
	Rejected    string  // why it was never admitted, "" if it was
	Scored      bool    // see Config.Score
	Unfinished  string  // why an admitted job did not finish, "" otherwise
	Cancelled   bool    // by its user, see Config.Cancel
	Attained    float64 // device-seconds held, start costs included; half of those of shared devices; of a job on CPUs those of its replicas
	Restarts    int     // times it was stopped or moved while it held devices
	Preemptions int     // restarts that left it without devices
	Evictions   int     // preemptions because a node went down with notice, or the quota was reclaimed
	Reclaims    int     // of Evictions and Failures, those because spot capacity was taken back
	Failures    int     // times it lost its devices because a node went down; not in Restarts
	LostSteps   float64 // steps lost in failures
	LostSec     float64 // device-seconds of Attained that failures undid: since the last checkpoint, else since the start

	// Set by TimeAlone:
	Alone       time.Duration // run time at the requested devices and plan, 0 = unknown
	Usable      int           // devices of the groups it may use
	AsSubmitted time.Duration // completion as submitted, if it starts at its submission: one start and Alone; 0 = unknown

	// Set by SetBackfill:
	Backfill time.Duration // completion of a guaranteed job under fifo-backfill, 0 = unknown
}

// JCT is the job completion time, End - Submit.
func (r JobRecord) JCT() time.Duration { return r.End - r.Job.Submit }

// Delay is the queueing delay: from submission until the job first got devices.
func (r JobRecord) Delay() time.Duration { return r.Start - r.Job.Submit }

// Ran reports whether the job ever held devices.
func (r JobRecord) Ran() bool { return r.Finished || r.Attained > 0 }

// Usage is a step of the utilisation, from At on.
type Usage struct {
	At      time.Duration
	Held    int // devices held; shared ones count once; an average for fractions of time
	Waiting int // jobs without devices, held ones included
}

// Gaps are the proven gaps of the policy's schedules, see scheduler.Decision.Gap.
type Gaps struct {
	Decisions   int // decisions with a gap
	Mean, Worst float64
}

// add adds the gap of a decision.
func (g *Gaps) add(gap float64) {
	g.Decisions++
	g.Mean += (gap - g.Mean) / float64(g.Decisions)
	g.Worst = max(g.Worst, gap)
}

// Lookups counts the answers of the truth by kind.
type Lookups struct {
	Exact, Interpolated, Modelled int
}

// SetBackfill adds to the record of every job its completion in ends: GuaranteedEnds of a run
// of the same workload under fifo-backfill.
func (r *Result) SetBackfill(ends map[spec.JobID]time.Duration) {
	for i := range r.Jobs {
		r.Jobs[i].Backfill = ends[r.Jobs[i].Job.ID]
	}
}

// GuaranteedEnds returns the completions of the guaranteed jobs that finished.
func (r *Result) GuaranteedEnds() map[spec.JobID]time.Duration {
	out := map[spec.JobID]time.Duration{}
	for i := range r.Jobs {
		if j := &r.Jobs[i]; j.Job.Guaranteed && j.Finished {
			out[j.Job.ID] = j.End
		}
	}
	return out
}
