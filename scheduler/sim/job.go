package sim

import (
	"math"
	"time"

	"github.com/pacer-ml/pacer/scheduler"
)

// job is one job in the system. Policies see its state. The other fields keep state
// exact: progress is computed from the last change, never accumulated over events.
type job struct {
	state  scheduler.JobState // its Order is the index into Result.Jobs
	scored bool               // the run waits for it
	work   float64            // steps in all
	// reported returns the remaining steps that policies see; nil = the exact number.
	reported func(done float64) float64

	// Since the last change:
	from     time.Duration // time of the change
	progress progress      // meaningful with a grant
	devices  int           // held, shared or not
	received float64       // device-seconds per second, half of them if shared
	place    int           // index into the engine's holding
	attained float64       // device-seconds received before
	begin    time.Duration // begin of training on its devices
	begun    float64       // steps done at begin
	stop     time.Duration // in lockstep, the end of its round
	current  current       // for a job with shares of time
	ends     time.Duration // its completion time if nothing changes
	one      [1]Stage      // backing array for a job of one speed
	alone    float64       // steps/s without the colocated job, meaningful if it has one
	saved    float64       // device-seconds received by the last checkpoint, if the colocated job changed since

	last   *scheduler.Grant // present or last grant, nil = none yet
	failed bool             // a node of last failed
	kept   float64          // largest number of steps saved at a failure

	version uint32 // of the grant; events of an older one are stale
}

// advance brings state up to now.
func (j *job) advance(now time.Duration) {
	s := &j.state
	if s.Grant == nil {
		return
	}
	s.Attained = j.attained + j.received*(now-j.from).Seconds()
	if now < s.Ready {
		return
	}
	s.Phase = scheduler.Running
	s.Done = min(j.progress.done(now), j.work)
	s.Ran = scheduler.Ran{Steps: s.Done - j.begun, Time: now - j.begin}
	j.updateRemaining()
}

// updateRemaining updates the remaining steps.
func (j *job) updateRemaining() {
	if j.state.Remaining = j.work - j.state.Done; j.reported != nil {
		j.state.Remaining = j.reported(j.state.Done)
	}
}

// release takes away the devices of the job, advanced to now.
func (j *job) release(now time.Duration) {
	j.attained, j.from = j.state.Attained, now
	j.devices, j.received = 0, 0
	j.state.Grant, j.state.Since, j.state.Ran = nil, now, scheduler.Ran{}
	j.state.Phase = scheduler.Waiting
	j.version++
}

// hold gives the job grant g with progress c at now and returns its completion time.
func (j *job) hold(now time.Duration, g *scheduler.Grant, c progress) time.Duration {
	s := &j.state
	if s.Attained == 0 {
		s.FirstRun = now
	}
	s.Waited, s.Since = max(s.Waited, now-s.Since), now
	s.Ready = c.now.from
	s.Grant, s.Phase, s.Ran = g, scheduler.Starting, scheduler.Ran{}
	if s.Ready == now {
		s.Phase = scheduler.Running
	}
	j.from, j.progress, j.devices, j.received = now, c, g.Devices(), received(g)
	j.begin, j.begun = c.now.from, c.now.done
	j.last, j.failed = g, false
	exact, counts := c.end(j.work)
	j.ends = min(counts, now+never)
	return min(exact, now+never)
}

// seconds turns s into a Duration, at least a nanosecond so that time advances, and at
// most never. It rounds to the nearest nanosecond: a job of 1000 steps at 1000/7 steps/s
// takes 7 s, although 1000/(1000/7) is slightly more.
func seconds(s float64) time.Duration {
	ns := math.Round(s * 1e9)
	if !(ns < float64(never)) {
		return never
	}
	return max(time.Duration(ns), 1)
}
