package sim

import (
	"math"
	"time"

	"github.com/pacer-ml/pacer/scheduler"
)

// job is one job on its way through the cluster. What policies see of it is
// state; the rest is how the engine keeps state exact: progress is computed
// from the last change, never accumulated from event to event.
type job struct {
	state  scheduler.JobState // its Order is the index into Result.Jobs
	scored bool               // the run waits for it
	work   float64            // steps in all
	// told says what the policy hears of the steps left with so many done; nil =
	// what there are.
	told func(done float64) float64

	// Since the last change:
	from     time.Duration // when it happened
	course   course        // how it gets on, meaningful with a grant
	devices  int           // held, shared or not
	received float64       // device-seconds a second: half of them if they are shared
	place    int           // index into the engine's holding
	attained float64       // device-seconds received by then
	begin    time.Duration // when it begins, or began, to train on them
	begun    float64       // steps done by then
	stop     time.Duration // with a barrier, when it is through with this round
	current  current       // with shares of time, how it gets on
	ends     time.Duration // when it counts as done if nothing changes
	one      [1]Stage      // those of a job of one speed, so that it needs no memory of its own
	alone    float64       // steps/s once its company has left, meaningful if it has some
	saved    float64       // device-seconds received by the last checkpoint, where that was before its company changed

	last   *scheduler.Grant // what it held last, nil if nothing yet
	failed bool             // that went down
	kept   float64          // most steps saved when that happened

	version uint32 // of the grant; events of an older one are stale
	stamp   uint64 // the last decision that granted it
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
	s.Done = min(j.course.done(now), j.work)
	j.tell()
}

// tell works out what is left of the job.
func (j *job) tell() {
	if j.state.Remaining = j.work - j.state.Done; j.told != nil {
		j.state.Remaining = j.told(j.state.Done)
	}
}

// release takes the job's devices away at now, having advanced it to now.
func (j *job) release(now time.Duration) {
	j.attained, j.from = j.state.Attained, now
	j.devices, j.received = 0, 0
	j.state.Grant, j.state.Since = nil, now
	j.state.Phase = scheduler.Waiting
	j.version++
}

// hold gives the job g at now, on which it gets on by c, and returns when it will
// be done.
func (j *job) hold(now time.Duration, g *scheduler.Grant, c course) time.Duration {
	s := &j.state
	if s.Attained == 0 {
		s.FirstRun = now
	}
	s.Waited, s.Since = max(s.Waited, now-s.Since), now
	s.Ready = c.now.from
	s.Grant, s.Phase = g, scheduler.Starting
	if s.Ready == now {
		s.Phase = scheduler.Running
	}
	j.from, j.course, j.devices, j.received = now, c, g.Devices(), received(g)
	j.begin, j.begun = c.now.from, c.now.done
	j.last, j.failed = g, false
	exact, counts := c.end(j.work)
	j.ends = min(counts, now+never)
	return min(exact, now+never)
}

// seconds turns s into a Duration, at least a nanosecond so that time passes,
// and at most never. To the nearest nanosecond: a job of 1000 steps that is to
// take 7 s does, though 1000/(1000/7) is a little more.
func seconds(s float64) time.Duration {
	ns := math.Round(s * 1e9)
	if !(ns < float64(never)) {
		return never
	}
	return max(time.Duration(ns), 1)
}
