package gavel

import (
	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/scheduler"
)

// leases assigns devices until the end of the round. It first assigns a candidate to each
// job by device counts per group, then places the jobs.
type leases struct {
	*rounds
	cluster  spec.Cluster
	index    map[spec.JobID]int // of each job in present
	free     *scheduler.Inventory
	left     []int   // devices of each group not assigned
	assigned []lease // by arrival of the job
}

// lease is the candidate assigned to a job and the index of its partner, the job on the
// same devices; -1 = none. holds and holdsWith are the candidate and partner it has now.
type lease struct {
	candidate, with  int
	holds, holdsWith int
}

func newLeases(p *rounds, s *scheduler.Snapshot) *leases {
	l := &leases{rounds: p, cluster: s.Cluster, free: s.Free(), left: make([]int, len(s.Cluster.Groups)), assigned: p.leases(len(p.jobs))}
	for g := range l.left {
		l.left[g] = l.free.FreeIn(g)
	}
	if p.pairs != nil || s.Reasons {
		l.index = make(map[spec.JobID]int, len(l.present))
		for i, j := range l.present {
			l.index[j.Job.ID] = i
		}
	}
	for i, j := range l.present {
		l.assigned[i] = lease{-1, -1, -1, -1}
		if j.Grant == nil {
			continue
		}
		partner := 0
		if j.Grant.With != "" && p.pairs != nil {
			partner, l.assigned[i].holdsWith = p.pairs.kinds[j.Grant.With], l.index[j.Grant.With]
		}
		var group int
		if w := l.jobs[i].candidateOf(s.Cluster, j.Grant, partner); w >= 0 {
			l.assigned[i].holds, group = w, l.jobs[i].candidates[w].Group
		} else {
			group = s.Cluster.GroupOf(j.Grant.Slots[0].Node)
		}
		if j.Grant.Counted() {
			l.left[group] += j.Grant.Devices()
		}
	}
	return l
}

// assign assigns candidate w to job i with partner n (-1 = none) if enough devices are
// left. If n already has the devices alone, i joins it and needs no more devices.
func (l *leases) assign(i, w, n int) {
	c := &l.jobs[i].candidates[w]
	if n < 0 || l.assigned[n].candidate < 0 {
		if l.left[c.Group] < c.Devices {
			return
		}
		l.left[c.Group] -= c.Devices
	}
	l.assigned[i].candidate, l.assigned[i].with = w, n
	if n >= 0 {
		l.assigned[n].candidate, l.assigned[n].with = l.mutual(i, w, n), i
	}
}

// mutual returns the candidate of job n that corresponds to candidate w of job i when the
// two share devices, -1 if they cannot.
func (l *leases) mutual(i, w, n int) int {
	c := l.jobs[i].candidates[w]
	if i == n || c.Partner == 0 || l.pairs.kinds[l.jobs[n].job] != c.Partner {
		return -1
	}
	c.Partner = l.pairs.kinds[l.jobs[i].job]
	return indexLike(l.jobs[n].candidates, c)
}

// renew assigns to every job the candidate it holds.
func (l *leases) renew() {
	for i := range l.assigned {
		has := &l.assigned[i]
		switch {
		case has.holds < 0 || has.candidate >= 0:
		case has.holdsWith < 0 || l.mutual(i, has.holds, has.holdsWith) >= 0:
			l.assign(i, has.holds, has.holdsWith)
		}
	}
}

// assignByDeficit leases devices in descending ratio of time owed to time received
// (Gavel, section 5). The ratio of the candidate that a job holds is multiplied by keep.
// With join, a new job may become the partner of a job that keeps its devices.
func (l *leases) assignByDeficit(keep float64, join bool) {
	q := &l.queue
	q.claims = q.claims[:0]
	var ratios [][]float64 // by job and candidate; nil without sharing
	if l.pairs != nil {
		ratios = make([][]float64, len(l.assigned))
	}
	for i, k := range l.jobs {
		if ratios != nil {
			ratios[i] = make([]float64, len(k.candidates))
		} else if l.assigned[i].candidate >= 0 {
			continue
		}
		for w, x := range k.x {
			if x < leastFraction || ratios == nil && !l.fits(i, w) { // the number of devices left only falls
				continue
			}
			ratio := (k.owed[w] + x*initialCredit) / (k.received[w] + initialCredit)
			if w == l.assigned[i].holds {
				ratio *= keep
			}
			if ratios != nil {
				ratios[i][w] = ratio
			}
			if l.assigned[i].candidate < 0 {
				q.claims = append(q.claims, claim{ratio: ratio, job: int32(i), candidate: int32(w), rank: k.rank[w]})
			}
		}
	}
	for _, c := range q.sort(func(c claim, rank int32) { l.jobs[c.job].rank[c.candidate] = rank }) {
		i, w := int(c.job), int(c.candidate)
		switch {
		case l.assigned[i].candidate >= 0:
		case l.jobs[i].candidates[w].Partner == 0:
			l.assign(i, w, -1)
		default:
			if n := l.partner(i, w, ratios, join); n >= 0 {
				l.assign(i, w, n)
			}
		}
	}
}

// leastFraction is the error of the solver: lower fractions count as 0.
const leastFraction = 1e-4

// initialCredit is added to the time owed (times the fraction) and received, in seconds,
// so that new jobs start with ratio x: half a round, as in Gavel's simulator.
const initialCredit = 180

// partner returns the partner of job i on candidate w: its present partner, else the job
// with the highest ratio; -1 if there is none.
func (l *leases) partner(i, w int, ratios [][]float64, join bool) int {
	best, most := -1, 0.0
	for n := range l.assigned {
		at := l.mutual(i, w, n)
		if at < 0 || ratios[n][at] <= 0 || l.assigned[n].candidate >= 0 && !(join && l.canJoin(n, l.jobs[i].candidates[w])) {
			continue
		}
		if n == l.assigned[i].holdsWith {
			return n
		}
		if ratios[n][at] > most {
			best, most = n, ratios[n][at]
		}
	}
	return best
}

// canJoin reports whether job n keeps the devices of candidate c without a partner.
func (l *leases) canJoin(n int, c Candidate) bool {
	has := l.assigned[n]
	if has.with >= 0 || has.candidate != has.holds || has.holdsWith >= 0 {
		return false
	}
	own := l.jobs[n].candidates[has.candidate]
	return own.Group == c.Group && own.Devices == c.Devices
}

// assignIdle assigns devices that are left to jobs without any, by arrival, each its
// fastest candidate.
func (l *leases) assignIdle() {
	for i := range l.assigned {
		if l.assigned[i].candidate >= 0 {
			continue
		}
		if best := l.fastest(i); best >= 0 {
			l.assign(i, best, -1)
		}
	}
}

func (l *leases) fits(i, w int) bool {
	c := &l.jobs[i].candidates[w]
	return l.left[c.Group] >= c.Devices
}

// fastest returns the fastest candidate of job i without a partner for which enough
// devices are left, -1 if there is none.
func (l *leases) fastest(i int) int {
	best, candidates := -1, l.jobs[i].candidates
	for w := range candidates {
		if candidates[w].Partner == 0 && l.fits(i, w) && (best < 0 || candidates[w].Rate > candidates[best].Rate) {
			best = w
		}
	}
	return best
}

// leastSpeedup is how many times faster idle devices must be for a job to move there.
const leastSpeedup = 1.1

// upgrade moves jobs without a partner to faster devices that are left, in descending
// order of speedup. The devices they release are available to the next job.
func (l *leases) upgrade() {
	for {
		job, to, most := -1, -1, leastSpeedup
		for i, has := range l.assigned {
			if has.candidate < 0 || has.with >= 0 {
				continue
			}
			if w := l.fastest(i); w >= 0 {
				if speedup := l.jobs[i].candidates[w].Rate / l.candidateOf(i).Rate; speedup > most {
					job, to, most = i, w, speedup
				}
			}
		}
		if job < 0 {
			return
		}
		was := l.candidateOf(job)
		l.left[was.Group] += was.Devices
		l.assign(job, to, -1)
	}
}

// candidateOf returns the candidate assigned to job i, which must have one.
func (l *leases) candidateOf(i int) Candidate { return l.jobs[i].candidates[l.assigned[i].candidate] }

// mayImprove reports whether a decision at the end of the leases could change anything: a
// job has no devices, shares them, or is not on its fastest.
func (l *leases) mayImprove() bool {
	for i, has := range l.assigned {
		for w := range l.jobs[i].candidates {
			if has.candidate < 0 || has.with >= 0 || l.jobs[i].candidates[w].Rate > l.candidateOf(i).Rate {
				return true
			}
		}
	}
	return false
}
