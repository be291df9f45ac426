package sim

import (
	"context"
	"fmt"
	"time"
)

// runLockstep is run for rounds that all running jobs share: time jumps from round
// to round.
func (e *engine) runLockstep(ctx context.Context) error {
	for idle := 0; e.scored > 0 && idle <= maxIdle; {
		if err := ctx.Err(); err != nil {
			return fmt.Errorf("sim: %s stopped at %v: %w", e.PolicyName, e.now, err)
		}
		at, happens := e.lockstepTime()
		if idle++; happens {
			idle = 0
		}
		if at > e.Horizon {
			e.now = e.Horizon
			return nil
		}
		e.now = at
		e.completeRound()
		if _, err := e.submit(ctx); err != nil {
			return err
		}
		if err := e.admitWaiting(ctx); err != nil {
			return err
		}
		if err := e.decide(ctx); err != nil {
			return err
		}
		e.beginRound()
	}
	return nil
}

// lockstepTime returns when the next round begins: when the last running job is
// through this one, or the next arrival if no job runs. Without an arrival it is
// now, and happens is false.
func (e *engine) lockstepTime() (at time.Duration, happens bool) {
	for _, j := range e.holding {
		at, happens = max(at, j.stop), true
	}
	switch {
	case happens:
		return at, true
	case e.next < len(e.result.Jobs):
		return max(e.arrives(&e.result.Jobs[e.next].Job), e.now), true
	}
	return e.now, false
}

// beginRound gives every running job its steps of a round, at most its remaining
// ones.
func (e *engine) beginRound() {
	e.queue.Items = e.queue.Items[:0] // completions follow from the round instead
	for _, j := range e.holding {
		s := &j.state
		begin := max(e.now, s.Ready)
		c := progress{stages: j.progress.stages, speed: j.progress.speed}.start(e.now, begin, s.Done)
		steps := c.now.rate * max(e.Round-(begin-e.now), 0).Seconds()
		if e.Lockstep.Steps != nil {
			steps = e.Lockstep.Steps(steps, j.devices)
		}
		steps = min(steps, s.Remaining)
		j.stop = begin + seconds(steps/c.now.rate)
		c.limited, c.limit, c.through = true, s.Done+steps, j.stop
		j.progress = c
	}
}

// completeRound ends all jobs that have made their last step.
func (e *engine) completeRound() {
	for i := len(e.holding) - 1; i >= 0; i-- {
		j := e.holding[i]
		j.advance(e.now)
		if j.state.Remaining <= 1e-9*j.work {
			e.complete(j, j.stop)
		}
	}
}
