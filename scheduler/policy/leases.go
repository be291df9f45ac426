package policy

import (
	"cmp"
	"slices"

	"github.com/pacer-ml/pacer/scheduler"
)

// leases is who is to have devices until the leases end. First it is decided by
// counting who gets which type, then devices are found.
type leases struct {
	*books
	free  *scheduler.Inventory
	left  []int   // devices of each group not given away
	given []lease // by arrival of the job
}

// lease is what a job is to have: a way of its book, none if way is -1.
type lease struct {
	way   int
	holds int // the way it holds now, -1 = none
}

func newLeases(b *books, s *scheduler.Snapshot) *leases {
	b.given = slices.Grow(b.given[:0], len(b.jobs))
	l := &leases{books: b, free: s.Free(), left: make([]int, len(s.Cluster.Groups)), given: b.given[:len(b.jobs)]}
	for g := range l.left {
		l.left[g] = l.free.FreeIn(g)
	}
	for i, j := range l.now {
		l.given[i] = lease{way: -1, holds: -1}
		if j.Grant == nil {
			continue
		}
		if w := b.jobs[i].way(s.Cluster, j.Grant); w >= 0 {
			l.given[i].holds = w
			l.left[b.jobs[i].ways[w].Group] += b.jobs[i].ways[w].Devices
		} else {
			l.left[groupOf(s.Cluster, j.Grant.Slots[0].Node)] += j.Grant.Devices()
		}
	}
	return l
}

// give lets job i have devices by way w if there are enough.
func (l *leases) give(i, w int) bool {
	way := &l.jobs[i].ways[w]
	if l.left[way.Group] < way.Devices {
		return false
	}
	l.left[way.Group] -= way.Devices
	l.given[i].way = w
	return true
}

// extend lets everybody have what they hold.
func (l *leases) extend() {
	for i := range l.given {
		if w := l.given[i].holds; w >= 0 {
			l.give(i, w)
		}
	}
}

// rightful gives devices to those who had least of what they are to have, who
// holds them counting keep times.
func (l *leases) rightful(keep float64) {
	q := &l.queue
	q.claims = q.claims[:0]
	for i := range l.given {
		if l.given[i].way >= 0 {
			continue
		}
		k := l.jobs[i]
		for w, x := range k.x {
			if x < leastFraction || !l.fits(i, w) { // no more will be left than is now
				continue
			}
			c := claim{right: (k.owed[w] + x*grace) / (k.got[w] + grace), job: int32(i), way: int32(w), rank: k.rank[w]}
			if w == l.given[i].holds {
				c.right *= keep
			}
			q.claims = append(q.claims, c)
		}
	}
	for _, c := range q.sort(func(c claim, rank int32) { l.jobs[c.job].rank[c.way] = rank }) {
		if l.given[c.job].way < 0 {
			l.give(int(c.job), int(c.way))
		}
	}
}

// leastFraction of time is taken for a rounding error of the solver.
const leastFraction = 1e-4

// grace is how many seconds of its fractions a newcomer is taken to have been
// owed and got: half a round, as in Gavel's simulator.
const grace = 180

// rest gives what is left to those who have nothing, by arrival, the fastest
// way there is.
func (l *leases) rest() {
	for i := range l.given {
		if l.given[i].way >= 0 {
			continue
		}
		best := -1
		for w := range l.jobs[i].ways {
			if l.fits(i, w) && (best < 0 || l.jobs[i].ways[w].Rate > l.jobs[i].ways[best].Rate) {
				best = w
			}
		}
		if best >= 0 {
			l.give(i, best)
		}
	}
}

func (l *leases) fits(i, w int) bool {
	way := &l.jobs[i].ways[w]
	return l.left[way.Group] >= way.Devices
}

// worthMoving is how many times faster devices must be that nobody has a right
// to for a job to move there.
const worthMoving = 1.1

// upgrade moves jobs to faster devices that are left, those first that gain
// most, and on to those that they leave.
func (l *leases) upgrade() {
	for {
		job, way, gain := -1, -1, worthMoving
		for i := range l.given {
			has := l.given[i].way
			if has < 0 {
				continue
			}
			ways := l.jobs[i].ways
			for w := range ways {
				if !l.fits(i, w) {
					continue
				}
				if g := ways[w].Rate / ways[has].Rate; g > gain {
					job, way, gain = i, w, g
				}
			}
		}
		if job < 0 {
			return
		}
		was := l.jobs[job].ways[l.given[job].way]
		l.left[was.Group] += was.Devices
		l.give(job, way)
	}
}

// unsettled reports whether leases that end could change anything: somebody has
// nothing, or not the fastest.
func (l *leases) unsettled() bool {
	for i := range l.given {
		ways := l.jobs[i].ways
		has := l.given[i].way
		for w := range ways {
			if has < 0 || ways[w].Rate > ways[has].Rate {
				return true
			}
		}
	}
	return false
}

// decision finds the devices: who has the same as before keeps it, the others are
// placed largest first. If one of them finds no room between those that stay,
// all of its type are placed anew where anew is set.
func (l *leases) decision(anew bool) scheduler.Decision {
	l.out = slices.Grow(l.out[:0], len(l.given))
	out := l.out[:len(l.given)]
	clear(out)
	var homeless []int
	for i := range l.given {
		have, old := &l.given[i], l.now[i].Grant
		switch {
		case old != nil && have.way >= 0 && have.way == have.holds:
			out[i] = old
			continue
		case old != nil:
			l.free.Give(old.Slots)
		}
		if have.way >= 0 {
			homeless = append(homeless, i)
		}
	}
	for _, i := range l.place(out, homeless) {
		if anew && out[i] == nil {
			l.place(out, l.clear(out, l.way(i).Group))
		}
	}
	return changes(l.now, out)
}

// changes is the decision that gives each of the jobs what is in out.
func changes(jobs []*scheduler.JobState, out []*scheduler.Grant) scheduler.Decision {
	d := scheduler.Decision{Keep: true}
	for i, g := range out {
		switch old := jobs[i].Grant; {
		case g == nil && old != nil:
			d.Stops = append(d.Stops, jobs[i].Job.ID)
		case g != old && !g.Same(old):
			d.Grants = append(d.Grants, g)
		}
	}
	return d
}

// clear takes back what was found in a group and returns who is to have some.
func (l *leases) clear(out []*scheduler.Grant, group int) (all []int) {
	for i := range l.given {
		if l.given[i].way < 0 || l.way(i).Group != group {
			continue
		}
		all = append(all, i)
		if out[i] != nil {
			l.free.Give(out[i].Slots)
			out[i] = nil
		}
	}
	return all
}

func (l *leases) way(i int) Way { return l.jobs[i].ways[l.given[i].way] }

// place finds devices for jobs, largest first, and returns those it found none
// for.
func (l *leases) place(out []*scheduler.Grant, jobs []int) (failed []int) {
	slices.SortStableFunc(jobs, func(a, b int) int { return cmp.Compare(l.way(b).Devices, l.way(a).Devices) })
	for _, i := range jobs {
		if g := l.menus.place(l.free, l.now[i].Job, l.jobs[i].menu, l.given[i].way); g != nil {
			l.free.Take(g.Slots)
			out[i] = g
		} else {
			failed = append(failed, i)
		}
	}
	return failed
}
