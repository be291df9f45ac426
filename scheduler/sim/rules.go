package sim

import (
	"cmp"
	"errors"
	"time"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/scheduler"
)

// Rules are the parts of the engine in which simulators differ. The zero value is
// Pacer's own semantics; scheduler/compat has the parts of other simulators. The
// functions must be deterministic and must not modify their arguments.
type Rules struct {
	// Seen returns when the engine notices an arrival or completion of time t: t or
	// later. A job holds its devices until its completion is noticed. Seen needs
	// Config.Round. nil = at once.
	Seen func(t, round time.Duration) time.Duration
	// End returns the recorded completion time of a job that completes at done and
	// is noticed at seen. nil = done.
	End func(done, seen time.Duration) time.Duration
	// WaitFrom returns when the wait of a job preempted at now begins. nil = now.
	WaitFrom func(now, round time.Duration) time.Duration
	// RoundSec rounds the duration of a stage of a job's work, and of the rest of it,
	// in seconds. nil = exact.
	RoundSec func(sec float64) float64
	// Ties orders jobs with arrivals noticed together. nil = by submit time, then ID.
	Ties func(a, b spec.JobID) int
	// Remaining returns the remaining steps that policies see of a job with done steps
	// completed and left steps to go. nil = left.
	Remaining func(t Truth, j *spec.Job, done, left float64) float64
	// LiveMove reports whether a job that goes from one grant to another within a node
	// group keeps its progress and its speed without a restart. nil = never.
	LiveMove func(from, to *scheduler.Grant) bool
	// Lockstep makes all running jobs share rounds. nil = jobs do not wait for each other.
	Lockstep *Lockstep
}

// Lockstep is a round that ends once every running job has trained for
// Config.Round or is done. Arrivals and completions are noticed then, and a job
// holds its devices until then. It needs Config.Round.
type Lockstep struct {
	// Steps returns the number of steps of a job in a round, above 0. fit is the number
	// that fits, devices that of its devices. nil = all that fit.
	Steps func(fit float64, devices int) float64
}

// validateRules reports rules that contradict the rest of c.
func (c *Config) validateRules() error {
	_, staged := c.Truth.(Staged)
	switch {
	case c.Seen != nil && c.Round == 0:
		return errors.New("sim: rule seen needs a round")
	case c.Lockstep == nil:
		return nil
	case c.Round == 0:
		return errors.New("sim: lockstep needs a round")
	case c.Resume != nil:
		return errors.New("sim: lockstep cannot resume a run")
	case c.CheckpointEvery > 0 || c.Speeds != nil || c.disturbed():
		return errors.New("sim: lockstep has no checkpoints, node speeds, failures, devices of others and cancelled jobs: leave them out, or turn quirk barrier off")
	case staged:
		return errors.New("sim: lockstep needs jobs of one speed, the truth has stages: turn quirk barrier off, or use another truth")
	case c.Observations != nil:
		return errors.New("sim: in lockstep jobs wait for each other, which distorts observed step times: turn quirk barrier off, or use a belief that does not learn")
	}
	return nil
}

// roundFrom returns the first start of a round at t or later; without rounds t.
func (c *Config) roundFrom(t time.Duration) time.Duration {
	if t >= never {
		return t
	}
	return NextRound(t, c.Round)
}

// NextRound returns the first multiple of round at t or later, t if round is 0.
func NextRound(t, round time.Duration) time.Duration {
	if round == 0 {
		return t
	}
	if over := t % round; over > 0 {
		return t - over + round
	}
	return t
}

// noticed returns the time at which an event at t is noticed. Without a rule that is
// counts, its recorded time.
func (c *Config) noticed(t, counts time.Duration) time.Duration {
	switch {
	case c.Seen == nil:
		return counts
	case t >= never:
		return t
	}
	return c.Seen(t, c.Round)
}

// arrives returns when the arrival of j is noticed.
func (c *Config) arrives(j *spec.Job) time.Duration { return c.noticed(j.Submit, j.Submit) }

// compare is the order in which jobs enter.
func (c *Config) compare(a, b *spec.Job) int {
	if c.Ties != nil {
		return cmp.Or(cmp.Compare(c.arrives(a), c.arrives(b)), c.Ties(a.ID, b.ID))
	}
	return cmp.Or(cmp.Compare(a.Submit, b.Submit), cmp.Compare(a.ID, b.ID))
}
