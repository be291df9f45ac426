package sim

import (
	"math"
	"time"
)

// course is how a job gets on with a grant: from some time on it trains at the
// rate of the stage its work is in, times the speed of its slowest node, and
// pauses to write a checkpoint whenever it has trained for a while. Where it is at
// a time follows from the beginning of a stretch of constant speed, and that of
// the stretch before: it is never accumulated from look to look.
type course struct {
	stages  []Stage       // at speed 1; the last one never ends
	whole   bool          // they end at whole seconds, compat.Quirks.WholeSeconds
	every   time.Duration // training between two checkpoints, 0 = none is written
	write   time.Duration // how long that takes
	speed   gangSpeed     // nil = 1 for ever
	now     stretch       // that of the last look
	limited bool          // it goes no further for now than
	limit   float64       // so many steps
	through time.Duration // which it has done by then, exactly
}

// gangSpeed returns the speed of a gang at a time, and until when that is so.
type gangSpeed func(t time.Duration) (speed float64, until time.Duration)

// stretch is a time of constant speed.
type stretch struct {
	from, until time.Duration
	stage       int           // the course's
	ends        bool          // the stage does, at until
	rate        float64       // steps/s of training
	done        float64       // steps by from
	cycle       time.Duration // by from, since training began after the last checkpoint: in [0, every+write)
	saved       float64       // steps in the last checkpoint complete by from
	savedAt     time.Duration // when that was; before the first, when the grant was
}

// start returns c from when the job begins to train, having done so many steps,
// all of them saved when the devices were granted.
func (c course) start(granted, begin time.Duration, done float64) course {
	s := stretch{from: begin, done: done, saved: done, savedAt: granted}
	for s.stage < len(c.stages)-1 && c.stages[s.stage].Until <= done {
		s.stage++
	}
	c.now = c.enter(s)
	return c
}

// pace lets c go on through other stages from t on, no earlier than the last look.
// It neither saves anything nor keeps the next checkpoint waiting.
func (c *course) pace(t time.Duration, stages []Stage) {
	c.look(t)
	s := c.now
	if t > s.from {
		s = stretch{from: t, done: c.doneAt(c.now, t)}
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

// enter fills in the speed of a stretch, from its beginning, and its end.
func (c *course) enter(s stretch) stretch {
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

// after returns the stretch that follows s.
func (c *course) after(s stretch) stretch {
	next := stretch{from: s.until, stage: s.stage, done: c.doneAt(s, s.until)}
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

// reaches returns when s would have done so many steps if it never ended.
func (c *course) reaches(s *stretch, steps float64) time.Duration {
	return s.from + min(c.lasts(s.cycle, seconds((steps-s.done)/s.rate)), math.MaxInt64-s.from)
}

// counts returns when a stage that ends at a time of s counts as ended.
func (c *course) counts(s *stretch, at time.Duration) time.Duration {
	if !c.whole {
		return at
	}
	return s.from + time.Duration(math.RoundToEven((at-s.from).Seconds()))*time.Second
}

// look moves on to the stretch that t is in.
func (c *course) look(t time.Duration) {
	for t >= c.now.until && c.now.until < never {
		c.now = c.after(c.now)
	}
}

// done returns the steps made by t, no earlier than the last look.
func (c *course) done(t time.Duration) float64 {
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

// saved returns the steps a failure at t would leave, and since when.
func (c *course) saved(t time.Duration) (steps float64, since time.Duration) {
	c.look(t)
	return c.savedAt(c.now, t)
}

func (c *course) doneAt(s stretch, t time.Duration) float64 {
	if t <= s.from {
		return s.done
	}
	return s.done + s.rate*(c.trained(s.cycle+t-s.from)-c.trained(s.cycle)).Seconds()
}

func (c *course) savedAt(s stretch, t time.Duration) (float64, time.Duration) {
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

// trained returns how much of the time t since the beginning of a cycle is
// training.
func (c *course) trained(t time.Duration) time.Duration {
	if c.every == 0 {
		return t
	}
	cycle := c.every + c.write
	return t/cycle*c.every + min(t%cycle, c.every)
}

// end returns when so many steps are done, at most never after the beginning of
// the last stretch, and when that counts as done. No checkpoint is written at the
// end.
func (c *course) end(work float64) (exact, counts time.Duration) {
	s := c.now
	for {
		if at := c.reaches(&s, work); at <= s.until || s.until >= never {
			return at, c.counts(&s, at)
		}
		s = c.after(s)
	}
}

// lasts returns how long it takes to train for d > 0 from some point of a cycle
// on, at most never.
func (c *course) lasts(cycle, d time.Duration) time.Duration {
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
