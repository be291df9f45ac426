package scheduler

import (
	"cmp"
	"fmt"
	"iter"
	"slices"
	"time"

	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// Snapshot is the input of a policy: complete and read-only, with jobs by arrival, that is
// by submit time, then ID. It holds until the policy returns. Fields are free; methods
// cost what they say.
type Snapshot struct {
	Now     time.Duration
	Cluster spec.Cluster
	Down    []int       // nodes, ascending; not to be modified
	Leaving []Leaving   // nodes that are up and known to go down, ascending by node; not to be modified
	Waiting []*JobState // jobs without a grant; not to be modified
	// Ended are the jobs that finished since the last decision, in that order, for policies
	// that learn from them. Not to be kept.
	Ended []JobState

	// Reasons says whether Decision.Why is read. If not, a policy need not find reasons.
	Reasons bool
	// Explain are the jobs that need a reason at every decision, why they wait or keep
	// their grant: by arrival, mostly none. Not to be modified.
	Explain []*JobState

	ledger *Ledger // nil = no job holds devices
	jobs   []*JobState
}

// Leaving is a node that is known to go down: for maintenance, or because spot capacity is taken
// back.
type Leaving struct {
	Node int
	At   time.Duration // when it goes down; jobs on it are stopped then
	Back time.Duration // when it is up again
}

// Leaves returns when a node is known to go down, nil if it is not.
func (s *Snapshot) Leaves(node int) *Leaving { return leaves(s.Leaving, node) }

func leaves(all []Leaving, node int) *Leaving {
	i, ok := slices.BinarySearchFunc(all, node, func(l Leaving, node int) int { return cmp.Compare(l.Node, node) })
	if !ok {
		return nil
	}
	return &all[i]
}

// NewSnapshot returns a snapshot of jobs given by arrival. It sets their Order. Grants
// without room take no devices.
func NewSnapshot(now time.Duration, c spec.Cluster, jobs []*JobState) *Snapshot {
	l := NewLedger(c, nil)
	for i, j := range jobs {
		j.Order = i
		l.inside = append(l.inside, j)
		l.addRequest(j, 1)
		if j.Grant == nil {
			l.waiting = append(l.waiting, j)
		} else {
			l.free.Take(j.Grant.Counts())
		}
	}
	return l.Snapshot(now)
}

// Jobs returns all jobs by arrival, up to date. The slice may be reordered, the jobs not
// modified. The first call takes time proportional to the jobs.
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

// Current brings a job up to date and returns it.
func (s *Snapshot) Current(j *JobState) *JobState {
	if j.Grant != nil && s.ledger != nil && s.ledger.advance != nil {
		s.ledger.advance(j, s.Now)
	}
	return j
}

// Free returns the free devices of the nodes that are up. A policy may take from it, and
// give back what jobs hold, until it returns. The next call undoes that.
func (s *Snapshot) Free() *Inventory {
	if s.ledger == nil {
		return NewInventory(s.Cluster)
	}
	s.ledger.free.mark()
	s.ledger.free.now, s.ledger.free.leaving = s.Now, s.Leaving
	return s.ledger.free
}

// Idle returns a new inventory of the nodes that are up, as if no job of the snapshot held
// devices, in time proportional to the cluster.
func (s *Snapshot) Idle() *Inventory {
	inv := NewInventory(s.Cluster)
	for _, node := range s.Down {
		inv.Take(inv.whole(node))
	}
	if s.ledger != nil {
		s.ledger.takeOutside(inv)
	}
	inv.now, inv.leaving = s.Now, s.Leaving
	return inv
}

// Requested returns the number of devices that all jobs request.
func (s *Snapshot) Requested() int {
	if s.ledger == nil {
		return requested(s.Waiting, func(*JobState) bool { return true })
	}
	return s.ledger.requested
}

// RequestedBy returns the number of devices that the jobs of a tenant request.
func (s *Snapshot) RequestedBy(tenant string) int {
	if s.ledger == nil {
		return requested(s.Waiting, func(j *JobState) bool { return j.Job.Tenant == tenant })
	}
	return s.ledger.byTenant[tenant]
}

func requested(jobs []*JobState, counts func(*JobState) bool) (n int) {
	for _, j := range jobs {
		if counts(j) {
			n += j.Job.Devices
		}
	}
	return n
}

// Cursor is a position in the events of a ledger. The zero Cursor is before all of them.
type Cursor struct {
	ledger *Ledger
	next   uint64
}

// Changed returns the jobs with events since the last call with c: those that entered, left
// (Phase Finished), or got other devices or none. A job may occur several times. If the
// events are dropped, or more than the jobs, it returns all jobs, and all is true. Jobs
// are not brought up to date. The slice holds until the next decision.
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

// Decision is the output of a policy. Without Keep it is the whole target: a job without a
// grant here holds no devices afterwards. With Keep it is the changes: other jobs keep their
// grants. A job that is granted what it holds, by Grant.Same, continues without a restart.
type Decision struct {
	Grants   []*Grant              // in any order, at most one per job
	Keep     bool                  // jobs without a grant here and not among Stops keep theirs
	Stops    []spec.JobID          // jobs that lose their grant; only with Keep
	Why      map[spec.JobID]string // if Snapshot.Reasons: the reasons of changes and for jobs of Snapshot.Explain; see Because
	Warnings []string              // for users; the engine keeps each text once
	Wake     time.Duration         // latest time of the next decision, 0 = at the next event
	Gap      *float64              // proven relative gap of the schedule to the optimum; nil = not proven
}

// Because sets the reason for the change of a job, formatted like fmt.Sprintf, if
// s.Reasons. Callers should also compute the arguments only then. A later reason replaces
// an earlier one.
func (d *Decision) Because(s *Snapshot, id spec.JobID, format string, args ...any) {
	if !s.Reasons {
		return
	}
	if d.Why == nil {
		d.Why = map[spec.JobID]string{}
	}
	d.Why[id] = fmt.Sprintf(format, args...)
}

// Unexplained yields the jobs of Snapshot.Explain without a reason in d.
func (d *Decision) Unexplained(s *Snapshot) iter.Seq[*JobState] {
	return func(yield func(*JobState) bool) {
		for _, j := range s.Explain {
			if _, said := d.Why[j.Job.ID]; !said && !yield(s.Current(j)) {
				return
			}
		}
	}
}
