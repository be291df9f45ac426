package sim

import (
	"math"
	"time"
)

// progress is the progress of a job on a grant: from some time on it trains at the rate
// of its present stage, times the speed of its slowest node, and pauses to write
// checkpoints. The steps done at a time follow from the start of a segment of constant
// speed, which follows from the segment before. They are never accumulated over calls.
type progress struct {
	stages  []Stage                   // at speed 1; the last one never ends
	round   func(sec float64) float64 // Rules.RoundSec
	every   time.Duration             // training between two checkpoints, 0 = no checkpoints
	write   time.Duration             // duration of a checkpoint
	speed   gangSpeed                 // nil = 1
	now     segment                   // segment of the last call
	limited bool                      // limit applies
	limit   float64                   // most steps
	through time.Duration             // exact time at which limit is reached
}

// gangSpeed returns the speed of a gang at t, and until when it is constant.
type gangSpeed func(t time.Duration) (speed float64, until time.Duration)

// segment is a time of constant speed.
type segment struct {
	from, until time.Duration
	stage       int           // index of stages
	ends        bool          // the stage ends at until
	rate        float64       // steps/s of training
	done        float64       // steps done at from
	cycle       time.Duration // position of from in the cycle of training and checkpoint, in [0, every+write)
	saved       float64       // steps in the last checkpoint completed by from
	savedAt     time.Duration // time of that checkpoint; before the first one, time of the grant
}

// start returns c with its first segment at begin, with done steps that were saved when
// the devices were granted.
func (c progress) start(granted, begin time.Duration, done float64) progress {
	s := segment{from: begin, done: done, saved: done, savedAt: granted}
	for s.stage < len(c.stages)-1 && c.stages[s.stage].Until <= done {
		s.stage++
	}
	c.now = c.enter(s)
	return c
}

// pace replaces the stages of c from t on, no earlier than the last call. It neither
// writes nor delays a checkpoint.
func (c *progress) pace(t time.Duration, stages []Stage) {
	c.look(t)
	s := c.now
	if t > s.from {
		s = segment{from: t, done: c.doneAt(c.now, t)}
		s.saved, s.savedAt = c.savedAt(c.now, t)
		if c.every > 0 {
			s.cycle = (c.now.cycle + t - c.now.from) % (c.every + c.write)
		}
	}
	c.stages, s.stage, s.ends = stages, 0, false
	for s.stage < len(stages)-1 && stages[s.stage].Until <= s.done {
		s.stage++
	}
	c.now = c.enter(s)
}

// enter completes a segment with its speed and its end.
func (c *progress) enter(s segment) segment {
	s.rate, s.until = c.stages[s.stage].Rate, never
	if c.speed != nil {
		speed, until := c.speed(s.from)
		s.rate, s.until = s.rate*speed, max(until, s.from+1)
	}
	if s.stage < len(c.stages)-1 {
		if at := c.reaches(&s, c.stages[s.stage].Until); at <= s.until && at < never {
			s.until, s.ends = at, true
		}
	}
	return s
}

// after returns the segment that follows s.
func (c *progress) after(s segment) segment {
	next := segment{from: s.until, stage: s.stage, done: c.doneAt(s, s.until)}
	if s.ends {
		next.from, next.done = c.counts(&s, s.until), c.stages[s.stage].Until
		next.stage++
	}
	next.saved, next.savedAt = c.savedAt(s, next.from)
	if c.every > 0 {
		next.cycle = (s.cycle + next.from - s.from) % (c.every + c.write)
	}
	return c.enter(next)
}

// reaches returns when s would reach a number of steps if it never ended.
func (c *progress) reaches(s *segment, steps float64) time.Duration {
	return s.from + min(c.lasts(s.cycle, seconds((steps-s.done)/s.rate)), math.MaxInt64-s.from)
}

// counts returns the recorded time of a stage end within s, by Rules.RoundSec.
func (c *progress) counts(s *segment, at time.Duration) time.Duration {
	if c.round == nil {
		return at
	}
	return s.from + wholeNs(c.round((at - s.from).Seconds()))
}

// look advances to the segment of t.
func (c *progress) look(t time.Duration) {
	for t >= c.now.until && c.now.until < never {
		c.now = c.after(c.now)
	}
}

// done returns the steps made by t, no earlier than the last call.
func (c *progress) done(t time.Duration) float64 {
	c.look(t)
	done := c.doneAt(c.now, t)
	if c.limited {
		if t >= c.through {
			return c.limit
		}
		done = min(done, c.limit)
	}
	return done
}

// saved returns the steps that a failure at t leaves, and when they were saved.
func (c *progress) saved(t time.Duration) (steps float64, since time.Duration) {
	c.look(t)
	return c.savedAt(c.now, t)
}

func (c *progress) doneAt(s segment, t time.Duration) float64 {
	if t <= s.from {
		return s.done
	}
	return s.done + s.rate*(c.trained(s.cycle+t-s.from)-c.trained(s.cycle)).Seconds()
}

func (c *progress) savedAt(s segment, t time.Duration) (float64, time.Duration) {
	if c.every == 0 || t <= s.from {
		return s.saved, s.savedAt
	}
	whole := (s.cycle + t - s.from) / (c.every + c.write)
	if whole == 0 {
		return s.saved, s.savedAt
	}
	at := s.from - s.cycle + whole*(c.every+c.write)
	return c.doneAt(s, at), at
}

// trained returns the training time within t since the start of a cycle.
func (c *progress) trained(t time.Duration) time.Duration {
	if c.every == 0 {
		return t
	}
	cycle := c.every + c.write
	return t/cycle*c.every + min(t%cycle, c.every)
}

// end returns when a number of steps is done, and when that is recorded. No checkpoint
// is written at the end.
func (c *progress) end(work float64) (exact, counts time.Duration) {
	s := c.now
	for {
		if at := c.reaches(&s, work); at <= s.until || s.until >= never {
			return at, c.counts(&s, at)
		}
		s = c.after(s)
	}
}

// lasts returns the time to train for d > 0 from a point of a cycle on, at most never.
func (c *progress) lasts(cycle, d time.Duration) time.Duration {
	if c.every == 0 {
		return d
	}
	d += c.trained(cycle) // from the beginning of the cycle on
	whole := (d - 1) / c.every
	if float64(d)+float64(whole)*float64(c.write) > float64(never) {
		return never
	}
	return d + whole*c.write - cycle
}
