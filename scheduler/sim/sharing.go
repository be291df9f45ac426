package sim

import (
	"context"
	"fmt"
	"time"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/scheduler"
)

// Colocated is a Truth that also knows how fast jobs run that share devices.
// Under others no two jobs may.
type Colocated interface {
	Truth
	// StepsPerSecBeside returns how fast j runs on g, whose devices are in group,
	// while other runs on the same devices by its own grant.
	StepsPerSecBeside(ctx context.Context, j *spec.Job, g *scheduler.Grant, other *spec.Job, its *scheduler.Grant, group *spec.NodeGroup) (float64, error)
}

// checkCompany checks of the jobs a decision changes that those that are to share
// devices share the same ones with each other, and that who shared some with one
// that changes is told what becomes of it.
func (e *engine) checkCompany() error {
	steps := [2][]step{e.stops, e.starts}
	any := false
	for _, list := range steps {
		for _, s := range list {
			any = any || s.from != nil && s.from.With != "" || s.to != nil && s.to.With != ""
		}
	}
	if !any {
		return nil
	}
	if e.company == nil {
		e.company = map[spec.JobID]*scheduler.Grant{}
	}
	clear(e.company)
	for _, list := range steps {
		for _, s := range list {
			e.company[s.state.Job.ID] = s.to
		}
	}
	for _, list := range steps {
		for _, s := range list {
			if s.from != nil && s.from.With != "" {
				if _, told := e.company[s.from.With]; !told {
					return fmt.Errorf("job %s changes, job %s that shares its devices does not: grant that one alone, or stop it", s.from.Job, s.from.With)
				}
			}
			if err := e.inCompany(s.to); err != nil {
				return err
			}
		}
	}
	return nil
}

// inCompany checks that the job that is to share the devices of g, if any, is to
// share the same ones with it.
func (e *engine) inCompany(g *scheduler.Grant) error {
	if g == nil || g.With == "" || g.Shares(e.company[g.With]) {
		return nil
	}
	return fmt.Errorf("job %s is to share its devices with job %s, which is not to share the same with it", g.Job, g.With)
}

// sharedStages asks the truth how fast j runs on g in its company, and how fast it
// will without.
func (e *engine) sharedStages(ctx context.Context, j *job, g *scheduler.Grant, group *spec.NodeGroup) ([]Stage, error) {
	truth, ok := e.Truth.(Colocated)
	if !ok {
		return nil, fmt.Errorf("shares devices with job %s: the truth knows nothing of jobs that do", g.With)
	}
	stages, err := e.stages(ctx, j, g.Beside(""), group)
	if err != nil {
		return nil, err
	}
	if len(stages) != 1 {
		return nil, fmt.Errorf("shares devices with job %s: the truth gives it %d speeds, want one", g.With, len(stages))
	}
	j.alone = stages[0].Rate
	rate, err := truth.StepsPerSecBeside(ctx, j.state.Job, g, e.byID[g.With].state.Job, e.company[g.With], group)
	if err == nil && !finitePositive(rate) {
		err = fmt.Errorf("the truth says %g steps/s", rate)
	}
	if err != nil {
		return nil, fmt.Errorf("beside job %s: %w", g.With, err)
	}
	j.one[0].Rate = rate
	e.result.Shared = true
	return j.one[:], nil
}

// pace lets j, which was advanced to now and goes on with the devices it holds, go
// on at other speeds.
func (e *engine) pace(j *job, g *scheduler.Grant, stages []Stage, why string) {
	e.held += counted(g) - counted(j.state.Grant)
	e.push(j, j.pace(e.now, g, stages))
	e.observe(Shared, j.state.Job, g, why)
}

// leftAlone lets who shared the devices of a job that is gone go on alone, unless
// it is done as well.
func (e *engine) leftAlone(gone *scheduler.Grant) {
	if gone == nil || gone.With == "" {
		return
	}
	j := e.byID[gone.With]
	if j == nil || j.state.Grant == nil || j.ends <= e.now && !e.Quirks.Barrier {
		return
	}
	j.advance(e.now)
	g := j.state.Grant.Beside("")
	// It cannot fail: what is asked for was given back by who is gone.
	_ = e.ledger.Apply([]scheduler.Change{{Job: &j.state, To: g}})
	j.one[0].Rate = j.alone
	e.pace(j, g, j.one[:], "")
}

// counted returns how many of the devices of g the engine counts as held by it.
func counted(g *scheduler.Grant) int {
	if g.Counted() {
		return g.Devices()
	}
	return 0
}

// received returns how many device-seconds a second who has g receives: two that
// share devices half of them each. Replicas on CPUs count like devices.
func received(g *scheduler.Grant) float64 {
	n := float64(g.Devices() + g.Workers())
	if g.With != "" {
		return n / 2
	}
	return n
}

// pace lets j, which was advanced to now, go on by g at other speeds, and returns
// when it will be done.
func (j *job) pace(now time.Duration, g *scheduler.Grant, stages []Stage) time.Duration {
	_, since := j.course.saved(now)
	j.saved = j.state.Attained - j.receivedSince(since, now)
	j.attained, j.from = j.state.Attained, now
	j.received = received(g)
	j.state.Grant, j.last = g, g
	j.version++
	j.course.pace(now, stages)
	j.begin, j.begun = j.course.now.from, j.course.now.done
	exact, counts := j.course.end(j.work)
	j.ends = min(counts, now+never)
	return min(exact, now+never)
}

// receivedSince returns the device-seconds that j, advanced to now, received since
// a time not before its last checkpoint.
func (j *job) receivedSince(since, now time.Duration) float64 {
	if since < j.from {
		return j.state.Attained - j.saved
	}
	return j.received * (now - since).Seconds()
}
