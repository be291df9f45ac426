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
	candidates *candidates

	at       time.Duration // up to when time is credited
	jobs     []*account    // of the present fractions, by arrival
	values   []float64     // the x of all accounts, then the owed, then the received
	down     []int         // nodes that were down when the fractions were computed
	warnings []string      // of the present fractions

	cursor scheduler.Cursor
	now    []*scheduler.JobState // the jobs in the system, by arrival
	found  []*account            // the account of each, nil for those that came since
	stale  bool                  // jobs have come or gone since the fractions were computed

	spare []float64          // the memory of the next values
	given []lease            // scratch of newLeases
	queue claimQueue         // scratch of assignByDeficit
	out   []*scheduler.Grant // scratch of decision
}

// account is the time a job is owed and has received, by way.
type account struct {
	job          spec.JobID
	candidateSet *candidateSet
	ways         []Way
	x            []float64 // fractions of time
	last         int       // the way it holds or held last, -1 = none
	owed         []float64 // seconds, decayed
	received     []float64 // seconds, decayed
	rank         []int32   // see claimQueue

	grant *scheduler.Grant // the grant whose way was looked up last
	held  int              // that way
}

// memory is the time in which the time owed and received decays to 1/e.
const memory = 2 * time.Hour

// credit adds the time since the last call to what jobs are owed and have received. held
// returns the way by which a job has held its devices, -1 = none. Accounts of jobs that
// have gone are left as they are.
func (b *deficits) credit(s *scheduler.Snapshot, held func(*account, *scheduler.Grant) int) {
	b.meet(s)
	dt := (s.Now - b.at).Seconds()
	if dt <= 0 {
		return
	}
	b.at = s.Now
	fade := math.Exp(-dt / memory.Seconds())
	n := len(b.values) / 3
	x, owed, received := b.values[:n], b.values[n:2*n], b.values[2*n:]
	for i := range x {
		owed[i] = owed[i]*fade + x[i]*dt
		received[i] *= fade
	}
	for i, k := range b.found {
		if k == nil || b.now[i].Grant == nil {
			continue
		}
		if w := held(k, b.now[i].Grant); w >= 0 {
			k.received[w] += dt
			k.last = w
		}
	}
}

// meet updates the jobs in the system. If none came or went the cost is proportional to
// the jobs that changed.
func (b *deficits) meet(s *scheduler.Snapshot) {
	changed, all := s.Changed(&b.cursor)
	if !all && !slices.ContainsFunc(changed, b.news) {
		return
	}
	b.now = append(b.now[:0], s.Jobs()...)
	b.find()
	b.stale = !slices.Equal(b.found, b.jobs)
}

// news reports whether j came or ended.
func (b *deficits) news(j *scheduler.JobState) bool {
	_, known := slices.BinarySearchFunc(b.now, j.Order, func(j *scheduler.JobState, order int) int { return j.Order - order })
	return !known || j.Phase == scheduler.Finished
}

// find looks for the account of each job. Both are in order of arrival, so most are
// found next to the last one.
func (b *deficits) find() {
	b.found = b.found[:0]
	next := 0
	for _, j := range b.now {
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

// way returns the way of a grant with a job of kind beside on the same devices, -1 if
// there is none.
func (k *account) way(c spec.Cluster, g *scheduler.Grant, beside int) int {
	if k.grant != g {
		k.grant, k.held = g, wayLike(k.ways, Way{Group: groupOf(c, g.Slots[0].Node), Devices: g.Devices(), Beside: beside})
	}
	return k.held
}

// wayLike returns the index of the way with the group, devices and kind of partner of
// another, -1 if there is none.
func wayLike(ways []Way, like Way) int {
	return slices.IndexFunc(ways, func(w Way) bool {
		return w.Group == like.Group && w.Devices == like.Devices && w.Beside == like.Beside
	})
}

// groupOf returns the group of a node.
func groupOf(c spec.Cluster, node int) int {
	for g := range c.Groups {
		if node -= c.Groups[g].Count; node < 0 {
			return g
		}
	}
	return -1
}

// openAccount returns an account for the ways a job has now. What an old one says of
// ways that remain is carried over; old may be nil.
func openAccount(j *Share, old *account) *account {
	n := len(j.Ways)
	k := &account{job: j.State.Job.ID, candidateSet: j.candidateSet, ways: j.Ways, last: j.Last, owed: make([]float64, n), received: make([]float64, n), rank: make([]int32, n)}
	if old == nil {
		return k
	}
	for w, way := range old.ways {
		if at := wayLike(k.ways, way); at >= 0 {
			k.owed[at], k.received[at] = old.owed[w], old.received[w]
		}
	}
	return k
}

// leases returns scratch for n leases.
func (b *deficits) leases(n int) []lease {
	b.given = slices.Grow(b.given[:0], n)
	return b.given[:n]
}

// open makes the accounts found, one for each job in the system, those of shares.
func (b *deficits) open(s *scheduler.Snapshot, shares *Shares) {
	n := 0
	for _, k := range b.found {
		n += len(k.ways)
	}
	values := slices.Grow(b.spare[:0], 3*n)[:3*n]
	clear(values)
	at := 0
	for i, k := range b.found {
		line := func(part int, was []float64) []float64 {
			from := part*n + at
			to := from + len(k.ways)
			copy(values[from:to], was)
			return values[from:to:to]
		}
		k.x, k.owed, k.received = line(0, shares.Jobs[i].X), line(1, k.owed), line(2, k.received)
		at += len(k.ways)
	}
	b.values, b.spare = values, b.values
	b.jobs, b.stale = append(b.jobs[:0], b.found...), false
	b.warnings, b.down = shares.Warnings, slices.Clone(s.Down)
}

// current reports whether the fractions are those of the jobs and nodes of s, after
// credit.
func (b *deficits) current(s *scheduler.Snapshot) bool {
	return !b.stale && slices.Equal(b.down, s.Down)
}
