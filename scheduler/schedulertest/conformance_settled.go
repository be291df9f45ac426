package schedulertest

import (
	"context"
	"fmt"
	"time"

	"pgregory.net/rapid"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/scheduler"
	"github.com/pacer-ml/pacer/scheduler/policy"
)

// conformSettled checks the promise of policy.Settled.
func conformSettled(t *rapid.T, make Maker, draw func(*rapid.T) Case) {
	c := draw(t)
	p := policyOf(t, make, c.World.Oracle(0.2, 7))
	runWith(t, c, settled(t, p, p), c.World.Truth(c.Cluster))
}

// settled returns p, if promises is policy.Settled as one that checks the promise.
func settled(t tb, promises, p scheduler.Policy) scheduler.Policy {
	if _, ok := promises.(policy.Settled); !ok {
		return p
	}
	return &settledPolicy{t: t, policy: p}
}

// settledPolicy is a policy that is called at extra times between events: policy.MinWake
// after each regular decision, then 11 times as long after it, and so on. It fails the test
// if an extra call changes a grant.
type settledPolicy struct {
	t      tb
	policy scheduler.Policy

	jobs    int           // in the system at the last decision
	decided time.Duration // time of the last regular decision
	wake    time.Duration // its Decision.Wake, policy.Never for 0
	extra   time.Duration // time of the next extra call
}

func (q *settledPolicy) Decide(ctx context.Context, s *scheduler.Snapshot) (scheduler.Decision, error) {
	isExtra := s.Now >= q.extra && s.Now > q.decided && s.Now < q.wake && len(s.Ended) == 0 && len(s.Jobs()) == q.jobs
	d, err := q.policy.Decide(ctx, s)
	if err != nil {
		return d, err
	}
	q.jobs = len(s.Jobs())
	if isExtra {
		if job := changed(s, &d); job != "" {
			q.t.Fatalf("policy.Settled: after the decision at %v a call at %v changes the grant of job %s, without an event and before the wake-up%s: Decision.Wake is missing or late, or the job should keep its grant",
				q.decided, s.Now, job, wakeText(q.wake))
		}
		q.extra = s.Now + 10*(s.Now-q.decided)
	} else {
		q.decided, q.wake, q.extra = s.Now, d.Wake, s.Now+policy.MinWake
		if q.wake == 0 {
			q.wake = policy.Never
		}
	}
	d.Wake = min(q.wake, q.extra)
	return d, nil
}

func wakeText(at time.Duration) string {
	if at == policy.Never {
		return ", as there is none"
	}
	return fmt.Sprintf(" at %v", at)
}

// changed returns a job that d starts, stops or moves, "" if there is none.
func changed(s *scheduler.Snapshot, d *scheduler.Decision) spec.JobID {
	target := map[spec.JobID]*scheduler.Grant{}
	for _, g := range d.Grants {
		target[g.Job] = g
	}
	for _, id := range d.Stops {
		target[id] = nil
	}
	for _, j := range s.Jobs() {
		g, named := target[j.Job.ID]
		if named || !d.Keep {
			if (g == nil) != (j.Grant == nil) || g != nil && !g.Same(j.Grant) {
				return j.Job.ID
			}
		}
	}
	return ""
}
