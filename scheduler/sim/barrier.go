package sim

import (
	"context"
	"fmt"
	"math"
	"time"
)

// runBarrier is run with the quirk barrier: time jumps from round to round. One
// lasts until everybody in it has trained for e.Round or is done; who is done
// earlier holds its devices until then.
func (e *engine) runBarrier(ctx context.Context) error {
	for idle := 0; e.scored > 0 && idle <= maxIdle; {
		if err := ctx.Err(); err != nil {
			return fmt.Errorf("sim: %s stopped at %v: %w", e.PolicyName, e.now, err)
		}
		at, happens := e.barrierTime()
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
		if err := e.letIn(ctx); err != nil {
			return err
		}
		if err := e.decide(ctx); err != nil {
			return err
		}
		e.beginRound()
	}
	return nil
}

// barrierTime returns when the next round begins: when the last of this one is
// through, or if nobody runs, with the next arrival. Without one it is now, and
// nothing will have happened.
func (e *engine) barrierTime() (at time.Duration, happens bool) {
	for _, j := range e.holding {
		at, happens = max(at, j.stop), true
	}
	switch {
	case happens:
		return at, true
	case e.next < len(e.result.Jobs):
		return max(e.seen(&e.result.Jobs[e.next].Job), e.now), true
	}
	return e.now, false
}

// beginRound gives everybody who holds devices the steps of a round, at most
// those it has to go.
func (e *engine) beginRound() {
	e.queue.heap = e.queue.heap[:0] // what would happen without a barrier
	for _, j := range e.holding {
		s := &j.state
		begin := max(e.now, s.Ready)
		c := course{stages: j.course.stages, speed: j.course.speed}.start(e.now, begin, s.Done)
		steps := c.now.rate * max(e.Round-(begin-e.now), 0).Seconds()
		if whole := wholeSteps(steps, j.devices); e.Quirks.WholeSteps && whole > 0 { // with none it would never end
			steps = whole
		}
		steps = min(steps, s.Remaining)
		j.stop = begin + seconds(steps/c.now.rate)
		c.limited, c.limit, c.through = true, s.Done+steps, j.stop
		j.course = c
	}
}

// wholeSteps rounds steps of a job down to whole ones of its devices, of which n
// make n in one step of the job, but for what arithmetic took off.
func wholeSteps(steps float64, n int) float64 {
	return math.Floor(steps*float64(n)*(1+1e-12)) / float64(n)
}

// completeRound ends every job that has made its last step.
func (e *engine) completeRound() {
	for i := len(e.holding) - 1; i >= 0; i-- {
		j := e.holding[i]
		j.advance(e.now)
		if j.state.Remaining <= 1e-9*j.work {
			e.complete(j, j.stop)
		}
	}
}
