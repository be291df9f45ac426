package sim

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/scheduler"
)

// Tuner is a Truth of jobs that change how they train while they hold devices. It needs
// rounds.
type Tuner interface {
	Staged
	// Tune returns the stages of j, which holds devices of group, from the start of a
	// round until the next; nil = unchanged. The engine calls it once per round for each
	// running job, by arrival, after it has applied the decision. The last stage lasts,
	// as in Stages.
	Tune(ctx context.Context, now, until time.Duration, j *scheduler.JobState, group *spec.NodeGroup) ([]Stage, error)
}

// tune lets running jobs change how they train.
func (e *engine) tune(ctx context.Context) error {
	tuner, ok := e.Truth.(Tuner)
	if !ok || len(e.holding) == 0 {
		return nil
	}
	next := e.roundFrom(e.now + 1)
	jobs := slices.Clone(e.holding)
	slices.SortFunc(jobs, func(a, b *job) int { return cmp.Compare(a.state.Order, b.state.Order) })
	for _, j := range jobs {
		j.advance(e.now)
		g := j.state.Grant
		stages, err := tuner.Tune(ctx, e.now, next, &j.state, e.groupOf(g))
		for i := range stages {
			if rate := stages[i].Rate; err == nil && !finitePositive(rate) {
				err = fmt.Errorf("the truth has %g steps/s, want above 0", rate)
			}
		}
		if err != nil {
			return fmt.Errorf("sim: policy %s at %v: job %s (%s) on %s: %w", e.PolicyName, e.now, g.Job, j.state.Job.Model.Name, g.Shape.Devices, err)
		}
		if stages != nil {
			e.push(j, j.setStages(e.now, stages))
		}
	}
	if e.wakeAt == 0 || e.wakeAt > next {
		e.setWake(next)
	}
	return nil
}

// setStages changes the stages of j, advanced to now, and returns its completion time.
func (j *job) setStages(now time.Duration, stages []Stage) time.Duration {
	j.progress.setStages(now, stages)
	j.version++
	exact, counts := j.progress.end(j.work)
	j.ends = min(counts, now+never)
	return min(exact, now+never)
}

// setStages changes the stages of c from t on, no earlier than the last call.
func (c *progress) setStages(t time.Duration, stages []Stage) {
	c.look(t)
	s := c.now
	if t > s.from {
		next := segment{from: t, done: c.doneAt(s, t)}
		next.saved, next.savedAt = c.savedAt(s, t)
		if c.every > 0 {
			next.cycle = (s.cycle + t - s.from) % (c.every + c.write)
		}
		s = next
	}
	c.stages, s.stage, s.ends = stages, 0, false
	for s.stage < len(stages)-1 && stages[s.stage].Until <= s.done {
		s.stage++
	}
	c.now = c.enter(s)
}
