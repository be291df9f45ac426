package policy

import (
	"maps"
	"slices"
	"time"

	"github.com/pacer-ml/pacer/scheduler"
)

// Memo is the last decision of a policy and the snapshot it was for, so that a policy that
// improves its schedule at every call is idempotent within an instant.
type Memo struct {
	now      time.Duration
	down     []int
	jobs     []held
	decision scheduler.Decision
}

// held is a job, by JobState.Order, with its grant.
type held struct {
	job   int
	grant *scheduler.Grant
}

// Of returns the last decision if it was for the same time, nodes, jobs and grants as in s. The
// caller owns it, but not its grants.
func (m *Memo) Of(s *scheduler.Snapshot) (scheduler.Decision, bool) {
	jobs := s.Jobs()
	if len(jobs) == 0 || m.now != s.Now || !slices.Equal(m.down, s.Down) ||
		!slices.EqualFunc(m.jobs, jobs, func(h held, j *scheduler.JobState) bool { return h == held{j.Order, j.Grant} }) {
		return scheduler.Decision{}, false
	}
	return clone(m.decision), true
}

// Keep stores a decision and returns a copy of it for the caller.
func (m *Memo) Keep(s *scheduler.Snapshot, d scheduler.Decision) scheduler.Decision {
	m.now, m.down, m.jobs, m.decision = s.Now, append(m.down[:0], s.Down...), m.jobs[:0], d
	for _, j := range s.Jobs() {
		m.jobs = append(m.jobs, held{j.Order, j.Grant})
	}
	return clone(d)
}

// clone returns a copy of d with the same grants.
func clone(d scheduler.Decision) scheduler.Decision {
	d.Grants, d.Stops, d.Warnings, d.Why = slices.Clone(d.Grants), slices.Clone(d.Stops), slices.Clone(d.Warnings), maps.Clone(d.Why)
	return d
}
