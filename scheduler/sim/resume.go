package sim

import (
	"context"
	"fmt"
	"time"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/scheduler"
)

// Resume is the state that a run resumes from, instead of an idle cluster at time 0:
// that of another run, or of a real cluster.
type Resume struct {
	At time.Duration
	// Jobs are the jobs in the system, with progress and grants as in a snapshot. Each
	// is one of Config.Jobs, submitted by At, and has Done+Remaining steps in all,
	// whatever the truth says; its progress counts as saved. Other jobs of Config.Jobs
	// submitted by At wait for admission.
	Jobs []scheduler.JobState
}

// resume restores the state of Resume, processes the events of that instant and calls
// the policy.
func (e *engine) resume(ctx context.Context) error {
	records := make(map[spec.JobID]int, len(e.result.Jobs))
	for i := range e.result.Jobs {
		records[e.result.Jobs[i].Job.ID] = i
	}
	var grants []scheduler.Change
	byID := map[spec.JobID]*scheduler.Grant{}
	for i := range e.Resume.Jobs {
		s := &e.Resume.Jobs[i]
		record, ok := records[s.Job.ID]
		if !ok || e.byID[s.Job.ID] != nil || e.arrives(&e.result.Jobs[record].Job) > e.now {
			return fmt.Errorf("sim: resume: job %s at %v, want one of the jobs of the run, submitted by then, once", s.Job.ID, e.now)
		}
		if !finitePositive(s.Remaining) || !(s.Done >= 0) {
			return fmt.Errorf("sim: resume: job %s at %v has %g steps done and %g to go", s.Job.ID, e.now, s.Done, s.Remaining)
		}
		j := e.reenter(record, *s)
		if s.Grant != nil {
			if err := e.ledger.CheckGrant(s.Job, s.Grant); err != nil {
				return fmt.Errorf("sim: at %v: %w", e.now, err)
			}
			grants = append(grants, scheduler.Change{Job: &j.state, To: s.Grant})
			e.starts = append(e.starts, step{job: j, to: s.Grant})
			byID[s.Job.ID] = s.Grant
		}
	}
	for _, c := range grants {
		if err := c.To.CheckPair(byID); err != nil {
			return fmt.Errorf("sim: at %v: %w", e.now, err)
		}
	}
	if err := e.ledger.Apply(grants); err != nil {
		return fmt.Errorf("sim: at %v: %w", e.now, err)
	}
	for i := range e.Resume.Jobs {
		if s := &e.Resume.Jobs[i]; s.Grant != nil {
			if err := e.holdOn(ctx, e.byID[s.Job.ID], s); err != nil {
				return err
			}
		}
	}
	return e.instant(ctx)
}

// reenter restores a job in state s, without its grant.
func (e *engine) reenter(record int, s scheduler.JobState) *job {
	r := &e.result.Jobs[record]
	j := &job{scored: r.Scored, work: s.Done + s.Remaining, from: e.now, attained: s.Attained, last: s.Grant}
	s.Job, s.Order, s.Phase, s.Grant = &r.Job, record, scheduler.Waiting, nil
	j.state = s
	e.byID[r.Job.ID], e.byOrder[record] = j, j
	e.ledger.Enter(&j.state)
	return j
}

// holdOn restores the grant of s.
func (e *engine) holdOn(ctx context.Context, j *job, s *scheduler.JobState) error {
	group := e.groupOf(s.Grant)
	stages, err := e.stages(ctx, j, s.Grant, group)
	if err != nil {
		return fmt.Errorf("sim: at %v: job %s (%s), plan %s on %s: %w", e.now, s.Job.ID, s.Job.Model.Name, s.Grant.Plan, s.Grant.Shape.Devices, err)
	}
	exact := e.hold(j, s.Grant, e.progress(j, s.Grant, stages, max(s.Ready, e.now)))
	j.state.Since, j.state.Waited, j.state.FirstRun, j.state.Ready = s.Since, s.Waited, s.FirstRun, s.Ready
	e.push(j, exact)
	return nil
}
