package sim

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/pacer-ml/pacer/scheduler"
)

// runFluid is run for a scheduler.Fluid: between arrivals and completions every job
// trains at the sum of its shares' speeds, each times its fraction. No job holds
// devices, so there are no starts and no start costs.
func (e *engine) runFluid(ctx context.Context, p scheduler.Fluid) error {
	for e.scored > 0 {
		if err := ctx.Err(); err != nil {
			return fmt.Errorf("sim: %s stopped at %v: %w", e.PolicyName, e.now, err)
		}
		at, ok := e.fluidTime()
		if !ok {
			return nil
		}
		if e.flow(min(at, e.Horizon)); at > e.Horizon {
			return nil
		}
		e.drain()
		if _, err := e.submit(ctx); err != nil {
			return err
		}
		if err := e.admitWaiting(ctx); err != nil {
			return err
		}
		if err := e.share(ctx, p); err != nil {
			return err
		}
	}
	return nil
}

// current is the progress of a job with shares of time.
type current struct {
	rate    float64       // steps/s, 0 = not at all
	devices float64       // held on average
	ends    time.Duration // when it is done at that rate
}

// fluidTime returns the time of the next arrival or completion.
func (e *engine) fluidTime() (at time.Duration, ok bool) {
	at = never
	if e.next < len(e.result.Jobs) {
		at, ok = max(e.arrives(&e.result.Jobs[e.next].Job), e.now), true
	}
	for _, j := range e.byID {
		if j.current.rate > 0 {
			at, ok = min(at, j.current.ends), true
		}
	}
	return at, ok
}

// flow advances all jobs to a time.
func (e *engine) flow(until time.Duration) {
	sec := (until - e.now).Seconds()
	e.now = until
	for _, j := range e.byID {
		if j.current.rate == 0 {
			continue
		}
		j.state.Phase = scheduler.Running
		j.state.Done = min(j.state.Done+j.current.rate*sec, j.work)
		j.state.Attained += j.current.devices * sec
		j.updateRemaining()
	}
}

// drain ends the jobs that are done now, by arrival.
func (e *engine) drain() {
	for _, j := range e.byOrder {
		if j != nil && j.current.rate > 0 && j.current.ends <= e.now {
			e.complete(j, e.now)
		}
	}
}

// share requests shares of time and applies them.
func (e *engine) share(ctx context.Context, p scheduler.Fluid) error {
	s := e.ledger.Snapshot(e.now)
	s.Ended = e.ended
	shares, warnings, err := p.Shares(ctx, s)
	e.ended = e.ended[:0]
	if err == nil {
		err = e.take(ctx, shares)
	}
	if err != nil {
		return fmt.Errorf("sim: policy %s at %v: %w", e.PolicyName, e.now, err)
	}
	e.warn(warnings)
	return nil
}

// take checks shares, takes their speeds from the truth and applies them.
func (e *engine) take(ctx context.Context, shares []scheduler.TimeShare) error {
	for _, j := range e.byID {
		j.current = current{}
	}
	used, busy := make([]float64, len(e.Cluster.Groups)), map[*job]float64{}
	for _, s := range shares {
		j := e.byID[s.Grant.Job]
		if j == nil {
			return fmt.Errorf("a share of job %s, which is not in the system", s.Grant.Job)
		}
		if !(s.Fraction >= 0) {
			return fmt.Errorf("job %s: the fraction %g", s.Grant.Job, s.Fraction)
		}
		if err := e.ledger.CheckGrant(j.state.Job, s.Grant); err != nil {
			return err
		}
		if e.startCost(j, s.Grant, false) > 0 {
			e.warn([]string{"fractions of time have no starts: start costs are left out"})
		}
		g := e.groups[s.Grant.Slots[0].Node]
		stages, err := e.stages(ctx, j, s.Grant, &e.Cluster.Groups[g])
		if err != nil {
			return fmt.Errorf("job %s: %w", s.Grant.Job, err)
		}
		devices := s.Fraction * float64(s.Grant.Devices())
		j.current.rate += s.Fraction * stages[0].Rate
		j.current.devices += devices
		used[g] += devices
		if busy[j] += s.Fraction; busy[j] > 1+fluidSlack {
			return fmt.Errorf("job %s: %g of its time", s.Grant.Job, busy[j])
		}
	}
	for g, n := range used {
		if most := float64(e.Cluster.Groups[g].Count * e.Cluster.Groups[g].Devices); n > most*(1+fluidSlack) {
			return fmt.Errorf("shares of %.6g devices of %g x %s", n, most, e.Cluster.Groups[g].Accelerator.Name)
		}
	}
	e.plan(used)
	return nil
}

// fluidSlack is the part by which shares may exceed the devices: the tolerance of
// solvers.
const fluidSlack = 1e-6

// plan computes the completion times and records the devices in use, to the nearest
// whole one.
func (e *engine) plan(used []float64) {
	running := 0
	for _, j := range e.byID {
		c := &j.current
		if c.rate == 0 {
			continue
		}
		running++
		c.ends = e.now + min(seconds(j.state.Remaining/c.rate), never-e.now)
		if j.state.Attained == 0 && j.state.Phase == scheduler.Waiting {
			j.state.FirstRun = e.now
			j.state.Waited = e.now - j.state.Since
		}
	}
	sum := 0.0
	for _, n := range used {
		sum += n
	}
	e.held = int(math.Round(sum))
	u := Usage{At: e.now, Held: e.held, Waiting: len(e.byID) - running + e.outside}
	if n := len(e.result.Usage); n == 0 || e.result.Usage[n-1].Held != u.Held || e.result.Usage[n-1].Waiting != u.Waiting {
		e.result.Usage = append(e.result.Usage, u)
	}
}

// validateFluid reports settings that contradict a Fluid policy.
func (c Config) validateFluid() error {
	_, staged := c.Truth.(Staged)
	switch {
	case c.Round > 0 || c.Lockstep != nil || c.Seen != nil:
		return errors.New("sim: a policy with option ideal has no rounds: leave out the round and --compat, or the option")
	case c.CheckpointEvery > 0 || c.Speeds != nil || c.disturbed() || c.Resume != nil || c.Observations != nil:
		return errors.New("sim: option ideal has no checkpoints, node speeds, failures, devices of others, cancelled jobs, resumed runs and learning: leave these out, or the option")
	case staged:
		return errors.New("sim: option ideal needs jobs of one speed, the truth has stages: leave the option out, or use another truth")
	}
	return nil
}
