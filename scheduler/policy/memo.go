package policy

import (
	"slices"
	"time"

	"github.com/pacer-ml/pacer/scheduler"
)

// Memo is the last decision of a policy and the snapshot it was for, so that a policy that
// improves its schedule at every call is idempotent within an instant.
type Memo struct {
	held     []held
	now      time.Duration
	decision scheduler.Decision
}

// held is a job, by JobState.Order, with its grant.
type held struct {
	job   int
	grant *scheduler.Grant
}

// Of returns the last decision if it was for a snapshot equal to s. The caller owns it.
func (m *Memo) Of(s *scheduler.Snapshot) (scheduler.Decision, bool) {
	jobs := s.Jobs()
	if len(jobs) == 0 || m.now != s.Now || len(m.held) != len(jobs) {
		return scheduler.Decision{}, false
	}
	for i, j := range jobs {
		if m.held[i] != (held{j.Order, j.Grant}) {
			return scheduler.Decision{}, false
		}
	}
	d := m.decision
	d.Grants = slices.Clone(d.Grants)
	return d, true
}

// Keep stores a decision and returns a copy of it for the caller.
func (m *Memo) Keep(s *scheduler.Snapshot, d scheduler.Decision) scheduler.Decision {
	m.now, m.decision, m.held = s.Now, d, m.held[:0]
	for _, j := range s.Jobs() {
		m.held = append(m.held, held{j.Order, j.Grant})
	}
	d.Grants = slices.Clone(d.Grants)
	return d
}
