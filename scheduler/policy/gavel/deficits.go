package gavel

import (
	"math"
	"slices"
	"time"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/scheduler"
)

// deficits tracks, per job and type of devices, the time owed by the fractions of an
// Objective and the time received, both exponentially decayed.
type deficits struct {
	objective  Objective
	candidates *candidateTable

	at       time.Duration // time is credited up to here
	jobs     []*account    // of the present fractions, by arrival
	values   []float64     // x of all accounts, then owed, then received
	down     []int         // nodes that were down when the fractions were computed
	warnings []string      // of the present fractions

	cursor  scheduler.Cursor
	present []*scheduler.JobState // the jobs in the system, by arrival
	found   []*account            // the account of each, nil for jobs that arrived since
	stale   bool                  // jobs arrived or ended since the fractions were computed

	// Reused memory:
	spare   []float64          // of the next values
	scratch []lease            // of  newLeases
	queue   claimQueue         // of  assignByDeficit
	out     []*scheduler.Grant // of  decision
}

// account is the time a job is owed and has received, by candidate.
type account struct {
	job          spec.JobID
	candidateSet *candidateSet
	candidates   []Candidate
	x            []float64 // fractions of time
	last         int       // index of the candidate it holds or held last, -1 = none
	owed         []float64 // seconds, decayed
	received     []float64 // seconds, decayed
	rank         []int32   // see claimQueue

	grant *scheduler.Grant // the last argument of candidateOf
	held  int              // the last result of candidateOf
}

// decayTime is the time in which time owed and received decays to 1/e.
const decayTime = 2 * time.Hour

// credit adds the time since the last call to the time that jobs are owed and have
// received. held returns the candidate that a job has held since, -1 = none. Accounts of
// jobs that have ended do not change.
func (b *deficits) credit(s *scheduler.Snapshot, held func(*account, *scheduler.Grant) int) {
	b.sync(s)
	dt := (s.Now - b.at).Seconds()
	if dt <= 0 {
		return
	}
	b.at = s.Now
	decay := math.Exp(-dt / decayTime.Seconds())
	n := len(b.values) / 3
	x, owed, received := b.values[:n], b.values[n:2*n], b.values[2*n:]
	for i := range x {
		owed[i] = owed[i]*decay + x[i]*dt
		received[i] *= decay
	}
	for i, k := range b.found {
		if k == nil || b.present[i].Grant == nil {
			continue
		}
		if w := held(k, b.present[i].Grant); w >= 0 {
			k.received[w] += dt
			k.last = w
		}
	}
}

// sync updates the jobs in the system. If none arrived or ended it takes time
// proportional to the number of changed jobs.
func (b *deficits) sync(s *scheduler.Snapshot) {
	changed, all := s.Changed(&b.cursor)
	if !all && !slices.ContainsFunc(changed, b.joinedOrLeft) {
		return
	}
	b.present = append(b.present[:0], s.Jobs()...)
	b.find()
	b.stale = !slices.Equal(b.found, b.jobs)
}

// joinedOrLeft reports whether j arrived or ended.
func (b *deficits) joinedOrLeft(j *scheduler.JobState) bool {
	_, known := slices.BinarySearchFunc(b.present, j.Order, func(j *scheduler.JobState, order int) int { return j.Order - order })
	return !known || j.Phase == scheduler.Finished
}

// find looks up the account of each job. Jobs and accounts are both in order of arrival,
// so the search continues after the last match.
func (b *deficits) find() {
	b.found = b.found[:0]
	next := 0
	for _, j := range b.present {
		i := next
		for i < len(b.jobs) && b.jobs[i].job != j.Job.ID {
			i++
		}
		if i == len(b.jobs) {
			b.found = append(b.found, nil)
			continue
		}
		b.found = append(b.found, b.jobs[i])
		next = i + 1
	}
}

// candidateOf returns the index of the candidate with the group, devices and kind of
// partner of a grant, -1 if there is none. partner 0 means no partner.
func (k *account) candidateOf(c spec.Cluster, g *scheduler.Grant, partner int) int {
	if k.grant != g {
		k.grant, k.held = g, indexLike(k.candidates, Candidate{Group: c.GroupOf(g.Slots[0].Node), Devices: g.Devices(), Partner: partner})
	}
	return k.held
}

// indexLike returns the index of the candidate with the group, devices and kind of partner
// of like, -1 if there is none.
func indexLike(candidates []Candidate, like Candidate) int {
	return slices.IndexFunc(candidates, func(w Candidate) bool {
		return w.Group == like.Group && w.Devices == like.Devices && w.Partner == like.Partner
	})
}

// newAccount returns an account for the present candidates of a job. It copies the times
// of candidates that the old account, which may be nil, has too.
func newAccount(j *Share, old *account) *account {
	n := len(j.Candidates)
	k := &account{job: j.State.Job.ID, candidateSet: j.candidateSet, candidates: j.Candidates, last: j.Last, owed: make([]float64, n), received: make([]float64, n), rank: make([]int32, n)}
	if old == nil {
		return k
	}
	for w, c := range old.candidates {
		if at := indexLike(k.candidates, c); at >= 0 {
			k.owed[at], k.received[at] = old.owed[w], old.received[w]
		}
	}
	return k
}

// leases returns reused memory for n leases.
func (b *deficits) leases(n int) []lease {
	b.scratch = slices.Grow(b.scratch[:0], n)
	return b.scratch[:n]
}

// install makes found the accounts of the fractions in shares.
func (b *deficits) install(s *scheduler.Snapshot, shares *Shares) {
	n := 0
	for _, k := range b.found {
		n += len(k.candidates)
	}
	values := slices.Grow(b.spare[:0], 3*n)[:3*n]
	clear(values)
	at := 0
	for i, k := range b.found {
		part := func(array int, was []float64) []float64 {
			from := array*n + at
			to := from + len(k.candidates)
			copy(values[from:to], was)
			return values[from:to:to]
		}
		k.x, k.owed, k.received = part(0, shares.Jobs[i].X), part(1, k.owed), part(2, k.received)
		at += len(k.candidates)
	}
	b.values, b.spare = values, b.values
	b.jobs, b.stale = append(b.jobs[:0], b.found...), false
	b.warnings, b.down = shares.Warnings, slices.Clone(s.Down)
}

// current reports whether the fractions were computed for the jobs and nodes of s. It
// needs credit or sync before.
func (b *deficits) current(s *scheduler.Snapshot) bool {
	return !b.stale && slices.Equal(b.down, s.Down)
}
