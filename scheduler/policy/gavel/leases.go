package gavel

import (
	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/scheduler"
)

// leases assigns devices until the leases end. It first decides by counting which job
// gets which type of devices, then finds the devices.
type leases struct {
	*rounds
	cluster spec.Cluster
	index   map[spec.JobID]int // the place of each job in now
	free    *scheduler.Inventory
	left    []int   // devices of each group not assigned
	given   []lease // by arrival of the job
}

// lease is what a job gets: a way of its account, and the job on the same devices; -1
// is none. holds and holdsWith are what it has now.
type lease struct {
	way, with        int
	holds, holdsWith int
}

func newLeases(p *rounds, s *scheduler.Snapshot) *leases {
	l := &leases{rounds: p, cluster: s.Cluster, free: s.Free(), left: make([]int, len(s.Cluster.Groups)), given: p.leases(len(p.jobs))}
	for g := range l.left {
		l.left[g] = l.free.FreeIn(g)
	}
	if p.pairs != nil || s.Reasons {
		l.index = make(map[spec.JobID]int, len(l.now))
		for i, j := range l.now {
			l.index[j.Job.ID] = i
		}
	}
	for i, j := range l.now {
		l.given[i] = lease{-1, -1, -1, -1}
		if j.Grant == nil {
			continue
		}
		beside := 0
		if j.Grant.With != "" && p.pairs != nil {
			beside, l.given[i].holdsWith = p.pairs.kinds[j.Grant.With], l.index[j.Grant.With]
		}
		group := -1
		if w := l.jobs[i].way(s.Cluster, j.Grant, beside); w >= 0 {
			l.given[i].holds, group = w, l.jobs[i].ways[w].Group
		} else {
			group = groupOf(s.Cluster, j.Grant.Slots[0].Node)
		}
		if j.Grant.Counted() {
			l.left[group] += j.Grant.Devices()
		}
	}
	return l
}

// give assigns way w to job i, and to job n the same devices unless n is -1, if there
// are enough. If n has them alone already, none are needed.
func (l *leases) give(i, w, n int) bool {
	way := &l.jobs[i].ways[w]
	if n < 0 || l.given[n].way < 0 {
		if l.left[way.Group] < way.Devices {
			return false
		}
		l.left[way.Group] -= way.Devices
	}
	l.given[i].way, l.given[i].with = w, n
	if n >= 0 {
		l.given[n].way, l.given[n].with = l.mutual(i, w, n), i
	}
	return true
}

// mutual returns the way of job n that way w of job i is for n, -1 if the two do not
// share devices that way.
func (l *leases) mutual(i, w, n int) int {
	way := l.jobs[i].ways[w]
	if i == n || way.Beside == 0 || l.pairs.kinds[l.jobs[n].job] != way.Beside {
		return -1
	}
	way.Beside = l.pairs.kinds[l.jobs[i].job]
	return wayLike(l.jobs[n].ways, way)
}

// extend assigns to every job what it holds.
func (l *leases) extend() {
	for i := range l.given {
		has := &l.given[i]
		switch {
		case has.holds < 0 || has.way >= 0:
		case has.holdsWith < 0 || l.mutual(i, has.holds, has.holdsWith) >= 0:
			l.give(i, has.holds, has.holdsWith)
		}
	}
}

// assignByDeficit leases devices in descending ratio of time owed to time received. The
// ratio of a job on what it holds is multiplied by keep. With join, a job that stays
// alone may be joined by another.
func (l *leases) assignByDeficit(keep float64, join bool) {
	q := &l.queue
	q.claims = q.claims[:0]
	var ratios [][]float64 // by job and way, where jobs share devices
	if l.pairs != nil {
		ratios = make([][]float64, len(l.given))
	}
	for i, k := range l.jobs {
		if ratios != nil {
			ratios[i] = make([]float64, len(k.ways))
		} else if l.given[i].way >= 0 {
			continue
		}
		for w, x := range k.x {
			if x < leastFraction || ratios == nil && !l.fits(i, w) { // later there are no more devices than now
				continue
			}
			ratio := (k.owed[w] + x*initialCredit) / (k.received[w] + initialCredit)
			if w == l.given[i].holds {
				ratio *= keep
			}
			if ratios != nil {
				ratios[i][w] = ratio
			}
			if l.given[i].way < 0 {
				q.claims = append(q.claims, claim{ratio: ratio, job: int32(i), way: int32(w), rank: k.rank[w]})
			}
		}
	}
	for _, c := range q.sort(func(c claim, rank int32) { l.jobs[c.job].rank[c.way] = rank }) {
		i, w := int(c.job), int(c.way)
		switch {
		case l.given[i].way >= 0:
		case l.jobs[i].ways[w].Beside == 0:
			l.give(i, w, -1)
		default:
			if n := l.partner(i, w, ratios, join); n >= 0 {
				l.give(i, w, n)
			}
		}
	}
}

// leastFraction of time is below the error of the solver, and is taken for 0.
const leastFraction = 1e-4

// initialCredit is how many seconds of its fractions a new job has been owed and has
// received: half a round, as in Gavel's simulator.
const initialCredit = 180

// partner returns the job that shares devices with job i by way w: the one that does
// already, else the one with the highest ratio; -1 if none can.
func (l *leases) partner(i, w int, ratios [][]float64, join bool) int {
	best, most := -1, 0.0
	for n := range l.given {
		its := l.mutual(i, w, n)
		if its < 0 || ratios[n][its] <= 0 || l.given[n].way >= 0 && !(join && l.joinable(n, l.jobs[i].ways[w])) {
			continue
		}
		if n == l.given[i].holdsWith {
			return n
		}
		if ratios[n][its] > most {
			best, most = n, ratios[n][its]
		}
	}
	return best
}

// joinable reports whether job n stays alone on devices of a way.
func (l *leases) joinable(n int, way Way) bool {
	has := l.given[n]
	if has.with >= 0 || has.way != has.holds || has.holdsWith >= 0 {
		return false
	}
	own := l.jobs[n].ways[has.way]
	return own.Group == way.Group && own.Devices == way.Devices
}

// assignIdle assigns the devices that are left to jobs without any, by arrival, each
// its fastest way.
func (l *leases) assignIdle() {
	for i := range l.given {
		if l.given[i].way >= 0 {
			continue
		}
		if best := l.fastest(i); best >= 0 {
			l.give(i, best, -1)
		}
	}
}

func (l *leases) fits(i, w int) bool {
	way := &l.jobs[i].ways[w]
	return l.left[way.Group] >= way.Devices
}

// fastest returns the fastest way of job i alone that there are devices for, -1 if
// there is none.
func (l *leases) fastest(i int) int {
	best, ways := -1, l.jobs[i].ways
	for w := range ways {
		if ways[w].Beside == 0 && l.fits(i, w) && (best < 0 || ways[w].Rate > ways[best].Rate) {
			best = w
		}
	}
	return best
}

// leastSpeedup is how many times faster idle devices must be for a job to move there.
const leastSpeedup = 1.1

// upgrade moves jobs that are alone to faster devices that are left, in descending
// order of speedup; the devices they leave are left for the next.
func (l *leases) upgrade() {
	for {
		job, to, most := -1, -1, leastSpeedup
		for i, has := range l.given {
			if has.way < 0 || has.with >= 0 {
				continue
			}
			if w := l.fastest(i); w >= 0 {
				if speedup := l.jobs[i].ways[w].Rate / l.way(i).Rate; speedup > most {
					job, to, most = i, w, speedup
				}
			}
		}
		if job < 0 {
			return
		}
		was := l.way(job)
		l.left[was.Group] += was.Devices
		l.give(job, to, -1)
	}
}

// way returns the way that job i gets, which must have one.
func (l *leases) way(i int) Way { return l.jobs[i].ways[l.given[i].way] }

// unsettled reports whether anything could change when the leases end: a job has no
// devices, shares them, or is not on its fastest.
func (l *leases) unsettled() bool {
	for i, has := range l.given {
		for w := range l.jobs[i].ways {
			if has.way < 0 || has.with >= 0 || l.jobs[i].ways[w].Rate > l.way(i).Rate {
				return true
			}
		}
	}
	return false
}
