package live

import (
	"maps"
	"time"

	"github.com/pacer-ml/pacer/scheduler"
)

// job is a job that pacer schedules.
type job struct {
	state    scheduler.JobState
	observed Job
	managed  bool // it is neither paused nor on a draining node: the policy decides about it, unless the source of predictions is away and it runs as decided
	seen     bool // in the present observation
	numbered bool // its Order is set

	want    Record    // what is to be recorded
	written Record    // what we recorded last, zero = nothing
	stale   time.Time // since when the observation is older than written, zero = it is not
	pending bool      // the observation is older than written: no step now
	missing time.Time // since when it is not in observations, which are older than it: no step now; zero = it is

	unsure      Slots  // of a start that got no answer: it may run there; nil = none
	unsureSince string // the version that the start was of

	ran  bool // it ran with its target, and was not stopped by a decision since
	left bool // it stopped running with its target without a decision, and has not been seen held since
	void bool // its devices were lost, not taken by a decision, since it was last seen running with its target

	released time.Time // since when it was seen released, zero = it is not

	partly time.Time // since when it was seen to be partly done, zero = it is not
	told   bool      // a PartlyDone event was sent since

	counted int64     // generation of the target that its restart was counted for
	stopped time.Time // until when a stop that was made need not be seen yet, zero = none was made
	failure string    // of its last write, as reported; "" = the write was made

	work, rate float64 // steps in all; steps/s on the grant that rateOf is of, 0 = unknown
	rateOf     *scheduler.Grant
	paced      pace // by the steps that it reports
	delayed    bool // a Delayed event was sent for the present target
	waits      bool // a Waiting event was sent since it last had a target
}

// behind reports whether the observation is older than what is known of the job.
func (j *job) behind() bool { return j.pending || !j.missing.IsZero() }

// settled reports whether the job was last started with its target.
func (r *Record) settled() bool { return r.Plan == r.RunPlan && sameSlots(r.Slots, r.RunSlots) }

// dirty reports whether the target is to be recorded.
func (j *job) dirty() bool {
	o := &j.observed.Record
	return j.want.Generation != o.Generation || j.want.RunGeneration != o.RunGeneration
}

// fresh reports whether the target of a held job is to be recorded, and the record holds none.
func (j *job) fresh() bool {
	return j.observed.Phase == Held && j.dirty() && j.want.Plan != "" && j.observed.Record.Plan == ""
}

// leave makes what a job runs on its target, since it is left alone: the devices of the target that it had may be given to
// others, which would lose theirs once it is not left alone any more.
func (c *Controller) leave(j *job) {
	if j.observed.Phase == Running && !j.pending && j.stopped.IsZero() && j.want.RunPlan != "" && !j.want.settled() {
		c.generation++
		j.want.Generation, j.want.Plan, j.want.Slots = c.generation, j.want.RunPlan, j.want.RunSlots
	}
}

// onTarget reports whether the job is known to run as its target says, or to be held without one.
func (j *job) onTarget() bool {
	switch {
	case j.behind() || j.dirty() || j.unsure != nil:
		return false
	case j.want.Plan == "":
		return j.observed.Phase == Held
	}
	return j.observed.Phase == Running && j.want.settled()
}

// holds returns the devices that the job has now, or may take at any time.
func (j *job) holds() Slots {
	held := j.knownToHold()
	if j.unsure == nil {
		return held
	}
	all := maps.Clone(j.unsure)
	for name, n := range held {
		all[name] = max(all[name], n)
	}
	return all
}

// knownToHold is holds without an unsure start.
func (j *job) knownToHold() Slots {
	switch {
	case j.pending: // it was started since
		return j.want.RunSlots
	case j.observed.Phase == Held || j.observed.Phase == Ended:
		return nil
	case j.observed.Slots != nil:
		return j.observed.Slots
	}
	return j.want.RunSlots
}
