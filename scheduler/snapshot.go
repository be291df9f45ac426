package scheduler

import (
	"fmt"
	"iter"
	"time"

	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// Snapshot is what a policy sees: complete, read-only, jobs by arrival: by submit
// time, then ID. It is there for as long as the policy decides. What it carries
// costs nothing; what is asked for by a method costs as much as it says.
type Snapshot struct {
	Now     time.Duration
	Cluster spec.Cluster
	Down    []int       // nodes that are down, ascending; not to be modified
	Waiting []*JobState // inside and holding nothing; the slice is not to be modified
	// Ended are the jobs that finished since the policy was asked last, in that
	// order, for those that learn from them. Like Waiting, not to be kept.
	Ended []JobState

	// Reasons tells whether anybody reads Decision.Why; if not, nobody need think of
	// reasons, which then cost nothing.
	Reasons bool
	// Explain are the jobs inside of which it is asked at every decision why they
	// wait, or go on as they are: by arrival, mostly none. Not to be modified.
	Explain []*JobState

	ledger *Ledger // nil = nobody holds anything
	jobs   []*JobState
}

// NewSnapshot returns a snapshot of jobs given by arrival, whose Order is set to
// that. Grants for which there is no room are taken to hold nothing of it.
func NewSnapshot(now time.Duration, c spec.Cluster, jobs []*JobState) *Snapshot {
	l := NewLedger(c, nil)
	for i, j := range jobs {
		j.Order = i
		l.inside = append(l.inside, j)
		l.ask(j, 1)
		if j.Grant == nil {
			l.waiting = append(l.waiting, j)
		} else {
			l.free.Take(j.Grant.Counts())
		}
	}
	return l.Snapshot(now)
}

// Jobs returns every job inside, by arrival and as it is now. The slice may be
// reordered, the jobs not be modified. It costs as much as there are jobs, once.
func (s *Snapshot) Jobs() []*JobState {
	if s.ledger == nil {
		return s.Waiting
	}
	if s.jobs == nil {
		out := s.ledger.shown[:0]
		for _, j := range s.ledger.inside {
			if !hasLeft(j) {
				out = append(out, s.Current(j))
			}
		}
		s.jobs, s.ledger.shown = out, out
	}
	return s.jobs
}

// Current brings a job inside up to now and returns it.
func (s *Snapshot) Current(j *JobState) *JobState {
	if j.Grant != nil && s.ledger != nil && s.ledger.advance != nil {
		s.ledger.advance(j, s.Now)
	}
	return j
}

// Free returns the devices no job holds, of the nodes that are up. A policy may
// take from them and give back to them what jobs hold while it decides, which
// changes nothing outside; asking again undoes it.
func (s *Snapshot) Free() *Inventory {
	if s.ledger == nil {
		return NewInventory(s.Cluster)
	}
	s.ledger.free.mark()
	return s.ledger.free
}

// Idle returns a new inventory of the nodes that are up, as if nobody held
// anything: for those that give everything away anew. It costs as much as the
// cluster is large.
func (s *Snapshot) Idle() *Inventory {
	inv := NewInventory(s.Cluster)
	for _, node := range s.Down {
		inv.Take(inv.whole(node))
	}
	return inv
}

// Asked returns how many devices the jobs inside ask for together.
func (s *Snapshot) Asked() int {
	if s.ledger == nil {
		return asked(s.Waiting, func(*JobState) bool { return true })
	}
	return s.ledger.asked
}

// AskedBy returns how many of them the jobs of a tenant ask for.
func (s *Snapshot) AskedBy(tenant string) int {
	if s.ledger == nil {
		return asked(s.Waiting, func(j *JobState) bool { return j.Job.Tenant == tenant })
	}
	return s.ledger.byTenant[tenant]
}

func asked(jobs []*JobState, counts func(*JobState) bool) (n int) {
	for _, j := range jobs {
		if counts(j) {
			n += j.Job.Devices
		}
	}
	return n
}

// Cursor is up to where somebody knows what happened. The zero Cursor knows
// nothing.
type Cursor struct {
	ledger *Ledger
	next   uint64
}

// Changed returns the jobs that something happened to since c was last handed in:
// that came, left (their Phase is Finished), or were given other devices or none;
// one of them may be there several times. When that is not known any more, or
// costs more than to look at all jobs inside, it returns these, and all is true.
// Who holds devices is not brought up to now. The slice is there until the next
// decision.
func (s *Snapshot) Changed(c *Cursor) (jobs []*JobState, all bool) {
	l := s.ledger
	if l == nil {
		*c = Cursor{}
		return s.Waiting, true
	}
	from := *c
	*c = Cursor{l, l.first + uint64(len(l.changed))}
	if from.ledger == l && from.next >= l.first {
		return l.changed[from.next-l.first:], false
	}
	for _, j := range l.inside {
		if !hasLeft(j) {
			jobs = append(jobs, j)
		}
	}
	return jobs, true
}

// Decision is what there is to be afterwards: the whole target, in which a job
// without a grant holds nothing, or with Keep what is to change. The Grant a job
// already holds, or one that is the Same, leaves the job alone.
type Decision struct {
	Grants   []*Grant              // in any order, at most one per job
	Keep     bool                  // who has no grant here and is not among Stops keeps what it holds
	Stops    []spec.JobID          // who holds nothing afterwards; with Keep alone
	Why      map[spec.JobID]string // reasons, of what changes and of Snapshot.Explain, where Snapshot.Reasons is set; see Because
	Warnings []string              // what should be seen but stops nothing; the engine keeps each text once
	Wake     time.Duration         // ask again at this time at the latest, 0 = only at the next event
	Gap      *float64              // by what part the plan it begins may cost more than the best there is, proven; nil = nothing is proven
}

// Because gives the reason for what d makes of a job, in the manner of
// fmt.Sprintf, if s asks for reasons. What it takes to know a reason is best
// looked at only then, too. A later reason replaces an earlier one.
func (d *Decision) Because(s *Snapshot, id spec.JobID, format string, args ...any) {
	if !s.Reasons {
		return
	}
	if d.Why == nil {
		d.Why = map[spec.JobID]string{}
	}
	d.Why[id] = fmt.Sprintf(format, args...)
}

// Unexplained yields the jobs of Snapshot.Explain that d says nothing of yet.
func (d *Decision) Unexplained(s *Snapshot) iter.Seq[*JobState] {
	return func(yield func(*JobState) bool) {
		for _, j := range s.Explain {
			if _, said := d.Why[j.Job.ID]; !said && !yield(s.Current(j)) {
				return
			}
		}
	}
}
