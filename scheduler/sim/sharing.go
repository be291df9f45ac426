package sim

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/scheduler"
)

// Colocated is a Truth that also has the speeds of jobs that share devices. Without it
// no two jobs may share.
type Colocated interface {
	Truth
	// StepsPerSecBeside returns the speed of j on g, with devices in group, while other
	// runs on the same devices by its own grant, otherGrant.
	StepsPerSecBeside(ctx context.Context, j *spec.Job, g *scheduler.Grant, other *spec.Job, otherGrant *scheduler.Grant, group *spec.NodeGroup) (float64, error)
}

// granted returns the new grant of a job in the decision checked last, or in the state to resume.
func (e *engine) granted(id spec.JobID) *scheduler.Grant {
	i := slices.IndexFunc(e.starts, func(s step) bool { return s.state.Job.ID == id })
	return e.starts[i].to // it exists: both jobs of a pair change together
}

// sharedStages returns the true speed of j on g with its colocated job, and sets j.alone
// to its speed without.
func (e *engine) sharedStages(ctx context.Context, j *job, g *scheduler.Grant, group *spec.NodeGroup) ([]Stage, error) {
	truth, ok := e.Truth.(Colocated)
	if !ok {
		return nil, fmt.Errorf("shares devices with job %s: the truth has no speeds of jobs that do", g.With)
	}
	stages, err := e.stages(ctx, j, g.Beside(""), group)
	if err != nil {
		return nil, err
	}
	if len(stages) != 1 {
		return nil, fmt.Errorf("shares devices with job %s: the truth gives it %d speeds, want one", g.With, len(stages))
	}
	j.alone = stages[0].Rate
	rate, err := truth.StepsPerSecBeside(ctx, j.state.Job, g, e.byID[g.With].state.Job, e.granted(g.With), group)
	if err == nil && !finitePositive(rate) {
		err = fmt.Errorf("the truth has %g steps/s, want above 0", rate)
	}
	if err != nil {
		return nil, fmt.Errorf("beside job %s: %w", g.With, err)
	}
	j.one[0].Rate = rate
	e.result.Shared = true
	return j.one[:], nil
}

// pace changes the speeds of j, advanced to now, on its devices.
func (e *engine) pace(j *job, g *scheduler.Grant, stages []Stage, why string) {
	e.held += counted(g) - counted(j.state.Grant)
	e.push(j, j.pace(e.now, g, stages))
	e.observe(Shared, j.state.Job, g, why)
}

// unpair lets the job that shared the devices of a job that left continue alone, unless
// it is done as well.
func (e *engine) unpair(old *scheduler.Grant) {
	if old == nil || old.With == "" {
		return
	}
	j := e.byID[old.With]
	if j == nil || j.state.Grant == nil || j.ends <= e.now && e.Lockstep == nil {
		return
	}
	j.advance(e.now)
	g := j.state.Grant.Beside("")
	// It cannot fail: the job that left gave the devices back.
	_ = e.ledger.Apply([]scheduler.Change{{Job: &j.state, To: g}})
	j.one[0].Rate = j.alone
	e.pace(j, g, j.one[:], "")
}

// counted returns the devices that count as held by g.
func counted(g *scheduler.Grant) int {
	if g.Counted() {
		return g.Devices()
	}
	return 0
}

// received returns the device-seconds per second of a job with g: half of them if the
// devices are shared. Replicas on CPUs count like devices.
func received(g *scheduler.Grant) float64 {
	n := float64(g.Devices() + g.Workers())
	if g.With != "" {
		return n / 2
	}
	return n
}

// pace changes the grant of j, advanced to now, to g on the same devices, with other
// speeds, and returns its completion time.
func (j *job) pace(now time.Duration, g *scheduler.Grant, stages []Stage) time.Duration {
	_, since := j.progress.saved(now)
	j.saved = j.state.Attained - j.receivedSince(since, now)
	j.attained, j.from = j.state.Attained, now
	j.received = received(g)
	j.state.Grant, j.last = g, g
	j.version++
	j.progress.pace(now, stages)
	j.begin, j.begun = j.progress.now.from, j.progress.now.done
	exact, counts := j.progress.end(j.work)
	j.ends = min(counts, now+never)
	return min(exact, now+never)
}

// receivedSince returns the device-seconds that j, advanced to now, received since a
// time not before its last checkpoint.
func (j *job) receivedSince(since, now time.Duration) float64 {
	if since < j.from {
		return j.state.Attained - j.saved
	}
	return j.received * (now - since).Seconds()
}
