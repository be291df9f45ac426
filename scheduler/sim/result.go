package sim

import (
	"time"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/scheduler"
)

// Result is what one simulated run gave.
type Result struct {
	Policy   string
	Devices  int         // of the cluster
	Jobs     []JobRecord // every job of the workload, by submit time, then ID
	Usage    []Usage     // devices held over time, a step function
	Shared   bool        // two jobs shared devices at some time
	Lookups  Lookups
	Learned  *scheduler.Learned // by the belief, nil if it does not learn
	Gaps     Gaps
	Warnings []string
	Elapsed  time.Duration // wall time of the run; the only field two equal runs differ in
}

// JobRecord is what happened to one job. Times are since the trace began.
type JobRecord struct {
	Job         spec.Job
	Start       time.Duration // first got devices
	End         time.Duration // completed
	Finished    bool
	Rejected    string  // why it was never admitted, "" if it was
	Scored      bool    // the run was about it, see Config.Score
	Unfinished  string  // why it was admitted and yet did not finish, "" otherwise
	Attained    float64 // device-seconds held, start costs included; half of those of shared devices; of a job on CPUs those of its replicas
	Restarts    int     // stopped or moved while it held devices; the first start is none
	Preemptions int     // those restarts after which it held nothing
	Failures    int     // lost its devices because a node went down; no restart
	LostSteps   float64 // made and lost in failures
	LostSec     float64 // device-seconds of Attained that failures undid: since the last checkpoint, else since the start

	// Of TimeAlone:
	Alone  time.Duration // run time at the devices and plan asked for, 0 = not known
	Usable int           // devices of the groups it may use
}

// JCT is the job completion time, End - Submit.
func (r JobRecord) JCT() time.Duration { return r.End - r.Job.Submit }

// Delay is the queueing delay: from submission until the job first got devices.
func (r JobRecord) Delay() time.Duration { return r.Start - r.Job.Submit }

// Ran tells whether the job ever held devices.
func (r JobRecord) Ran() bool { return r.Finished || r.Attained > 0 }

// Usage says that from At on, Held devices are held and Waiting jobs wait.
type Usage struct {
	At      time.Duration
	Held    int // devices, those that jobs share once; on average where policies give fractions of time
	Waiting int
}

// Gaps says how far from the best the policy's plans may be, by its own proofs: see
// scheduler.Decision.Gap.
type Gaps struct {
	Decisions   int // that came with one
	Mean, Worst float64
}

// add counts the gap of one more decision.
func (g *Gaps) add(gap float64) {
	g.Decisions++
	g.Mean += (gap - g.Mean) / float64(g.Decisions)
	g.Worst = max(g.Worst, gap)
}

// Lookups counts how the truth answered.
type Lookups struct {
	Exact, Interpolated, Modelled int
}
