package policy

import (
	"cmp"
	"slices"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/scheduler"
)

// sharedLeases is who is to have devices until the leases end, alone or beside
// whom. As with leases, it is first decided by counting who gets which type.
type sharedLeases struct {
	*sharedRounds
	cluster spec.Cluster
	now     []*scheduler.JobState // the jobs of the books, as they are
	index   map[spec.JobID]int
	free    *scheduler.Inventory
	left    []int // devices of each group not given away
	given   []sharedLease
}

// sharedLease is what a job is to have: a way of its book, none if way is -1; with
// is the job beside it, -1 = none. The others are what it has now.
type sharedLease struct {
	way, with        int
	holds, holdsWith int
}

func (p *sharedRounds) leases(s *scheduler.Snapshot) *sharedLeases {
	l := &sharedLeases{sharedRounds: p, cluster: s.Cluster, now: p.now, index: make(map[spec.JobID]int, len(p.jobs)),
		free: s.Free(), left: make([]int, len(s.Cluster.Groups)), given: make([]sharedLease, len(p.jobs))}
	for g := range l.left {
		l.left[g] = l.free.FreeIn(g)
	}
	for i, j := range l.now {
		l.index[j.Job.ID] = i
	}
	for i, j := range l.now {
		l.given[i] = sharedLease{-1, -1, -1, -1}
		if j.Grant == nil {
			continue
		}
		way := Way{Group: groupOf(s.Cluster, j.Grant.Slots[0].Node), Devices: j.Grant.Devices()}
		if j.Grant.Counted() {
			l.left[way.Group] += way.Devices
		}
		if j.Grant.With != "" {
			way.Beside, l.given[i].holdsWith = p.kinds[j.Grant.With], l.index[j.Grant.With]
		}
		l.given[i].holds = wayLike(p.jobs[i].ways, way)
	}
	return l
}

// way returns a way of job i.
func (l *sharedLeases) way(i, w int) Way { return l.jobs[i].ways[w] }

// alone lets job i have devices by way w for itself, if there are enough.
func (l *sharedLeases) alone(i, w int) bool {
	way := l.way(i, w)
	if l.left[way.Group] < way.Devices {
		return false
	}
	l.left[way.Group] -= way.Devices
	l.given[i].way = w
	return true
}

// pair lets jobs i and n share devices by way w of i, if there are enough; those
// of n, if it has some alone there already, need not be found.
func (l *sharedLeases) pair(i, w, n int) bool {
	way := l.way(i, w)
	if l.given[n].way < 0 {
		if l.left[way.Group] < way.Devices {
			return false
		}
		l.left[way.Group] -= way.Devices
	}
	l.given[i].way, l.given[i].with = w, n
	l.given[n].way, l.given[n].with = l.mutual(i, w, n), i
	return true
}

// mutual returns the way of n that way w of i is for n, -1 if they do not go
// together.
func (l *sharedLeases) mutual(i, w, n int) int {
	way := l.way(i, w)
	if i == n || way.Beside == 0 || l.kinds[l.jobs[n].job] != way.Beside {
		return -1
	}
	way.Beside = l.kinds[l.jobs[i].job]
	return wayLike(l.jobs[n].ways, way)
}

// extend lets everybody have what they hold.
func (l *sharedLeases) extend() {
	for i := range l.given {
		has := &l.given[i]
		switch {
		case has.holds < 0 || has.way >= 0:
		case has.holdsWith < 0:
			l.alone(i, has.holds)
		case l.mutual(i, has.holds, has.holdsWith) >= 0:
			l.pair(i, has.holds, has.holdsWith)
		}
	}
}

// rightful gives devices to those who had least of what they are to have, who
// holds them counting keep times. With join, who is alone may be joined.
func (l *sharedLeases) rightful(keep float64, join bool) {
	var claims []claim
	rights := make([][]float64, len(l.given))
	for i, k := range l.jobs {
		rights[i] = make([]float64, len(k.ways))
		for w, x := range k.x {
			if x < leastFraction {
				continue
			}
			right := (k.owed[w] + x*grace) / (k.got[w] + grace)
			if w == l.given[i].holds {
				right *= keep
			}
			rights[i][w] = right
			if l.given[i].way < 0 {
				claims = append(claims, claim{right: right, job: int32(i), way: int32(w)})
			}
		}
	}
	slices.SortFunc(claims, compareClaims)
	for _, c := range claims {
		i, w := int(c.job), int(c.way)
		switch {
		case l.given[i].way >= 0:
		case l.way(i, w).Beside == 0:
			l.alone(i, w)
		default:
			if n := l.partner(i, w, rights, join); n >= 0 {
				l.pair(i, w, n)
			}
		}
	}
}

// partner returns who is to be beside job i by way w: who has the greatest right to,
// the one that is there already before others; -1 if nobody.
func (l *sharedLeases) partner(i, w int, rights [][]float64, join bool) int {
	best, most := -1, 0.0
	for n := range l.given {
		its := l.mutual(i, w, n)
		if its < 0 || rights[n][its] <= 0 || l.given[n].way >= 0 && !(join && l.joinable(n, l.way(i, w))) {
			continue
		}
		if n == l.given[i].holdsWith {
			return n
		}
		if rights[n][its] > most {
			best, most = n, rights[n][its]
		}
	}
	return best
}

// joinable reports whether job n stays alone where it is, on devices of a way.
func (l *sharedLeases) joinable(n int, way Way) bool {
	has := l.given[n]
	return has.with < 0 && has.way == has.holds && has.holdsWith < 0 &&
		l.way(n, has.way).Group == way.Group && l.way(n, has.way).Devices == way.Devices
}

// rest gives what is left to those who have nothing, by arrival, the fastest
// way there is.
func (l *sharedLeases) rest() {
	for i := range l.given {
		if l.given[i].way >= 0 {
			continue
		}
		if best := l.fastest(i, 0); best >= 0 {
			l.alone(i, best)
		}
	}
}

// fastest returns the fastest way of job i alone that there are devices for and
// that is faster than a rate, -1 if there is none.
func (l *sharedLeases) fastest(i int, than float64) int {
	best := -1
	for w, way := range l.jobs[i].ways {
		if way.Beside == 0 && l.left[way.Group] >= way.Devices && way.Rate > than {
			best, than = w, way.Rate
		}
	}
	return best
}

// upgrade moves jobs that are alone to faster devices that are left, those first
// that gain most, and on to those that they leave.
func (l *sharedLeases) upgrade() {
	for {
		job, to, most := -1, -1, worthMoving
		for i := range l.given {
			if has := l.given[i]; has.way >= 0 && has.with < 0 {
				rate := l.way(i, has.way).Rate
				if w := l.fastest(i, rate*most); w >= 0 {
					job, to, most = i, w, l.way(i, w).Rate/rate
				}
			}
		}
		if job < 0 {
			return
		}
		was := l.way(job, l.given[job].way)
		l.left[was.Group] += was.Devices
		l.alone(job, to)
	}
}

// unsettled reports whether leases that end could change anything: somebody has
// nothing, is not alone, or not on the fastest.
func (l *sharedLeases) unsettled() bool {
	for i, has := range l.given {
		for _, way := range l.jobs[i].ways {
			if has.way < 0 || has.with >= 0 || way.Rate > l.way(i, has.way).Rate {
				return true
			}
		}
	}
	return false
}

// decision finds the devices: who has the same as before, in the same company,
// keeps it; who stays on its devices in other company, or alone, stays there; the
// others are placed largest first. Two that find no room together are tried one by
// one.
func (l *sharedLeases) decision() scheduler.Decision {
	out := make([]*scheduler.Grant, len(l.given))
	var moving []int // the first of two
	for i, has := range l.given {
		old := l.now[i].Grant
		same := old != nil && has.way >= 0 && has.way == has.holds && has.with == has.holdsWith
		if same {
			out[i] = old
			continue
		}
		if old != nil {
			l.free.Give(old.Counts())
		}
		if has.way >= 0 && (has.with < 0 || i < has.with) {
			moving = append(moving, i)
		}
	}
	moving = slices.DeleteFunc(moving, func(i int) bool { return l.stay(out, i) })
	slices.SortStableFunc(moving, func(a, b int) int {
		return cmp.Compare(l.way(b, l.given[b].way).Devices, l.way(a, l.given[a].way).Devices)
	})
	for _, i := range moving {
		n := l.given[i].with
		if l.found(out, i, n) || n < 0 {
			continue
		}
		for _, one := range []int{i, n} {
			l.given[one].with = -1
			l.found(out, one, -1)
		}
	}
	for i := range out {
		l.jobs[i].last = l.last(i, out[i])
	}
	return changes(l.now, out)
}

// last is the way of job i by which it holds a grant, or held one last.
func (l *sharedLeases) last(i int, g *scheduler.Grant) int {
	if g == nil {
		return l.jobs[i].last
	}
	way := Way{Group: groupOf(l.cluster, g.Slots[0].Node), Devices: g.Devices(), Beside: l.kinds[g.With]}
	return wayLike(l.jobs[i].ways, way)
}

// stay lets job i, and who is to be beside it, have the devices that one of the two
// holds on that type, unless somebody else has them now.
func (l *sharedLeases) stay(out []*scheduler.Grant, i int) bool {
	way := l.way(i, l.given[i].way)
	two := [2]int{i, l.given[i].with}
	for k, who := range two {
		if who < 0 || l.now[who].Grant == nil {
			continue
		}
		old := l.now[who].Grant
		there := groupOf(l.cluster, old.Slots[0].Node) == way.Group && old.Devices() == way.Devices
		if there && l.take(out, who, two[1-k], old.Beside("")) {
			return true
		}
	}
	return false
}

// take lets job i have the devices of g, and n beside it unless it is -1.
func (l *sharedLeases) take(out []*scheduler.Grant, i, n int, g *scheduler.Grant) bool {
	if n < 0 {
		if !l.free.Take(g.Counts()) {
			return false
		}
		out[i] = g
		return true
	}
	a, b := l.now[i].Job, l.now[n].Job
	var plan *option
	for _, c := range l.company.couples(l.cluster, companion{a, l.jobs[i].menu}, companion{b, l.jobs[n].menu}, groupOf(l.cluster, g.Slots[0].Node), g.Devices()) {
		if c.a.shape == g.Shape {
			plan = &c.b
			break
		}
	}
	if plan == nil {
		return false
	}
	mine := g.Beside(b.ID)
	its := &scheduler.Grant{Job: b.ID, Plan: plan.plan, Shape: g.Shape, Slots: slotsFor(b, g.Slots), With: a.ID}
	if !l.free.Take(mine.Counts()) {
		return false
	}
	if !l.free.Take(its.Counts()) {
		l.free.Give(mine.Counts())
		return false
	}
	out[i], out[n] = mine, its
	return true
}

// found finds free devices for job i, and n beside it unless it is -1.
func (l *sharedLeases) found(out []*scheduler.Grant, i, n int) bool {
	way, j := l.way(i, l.given[i].way), l.now[i].Job
	if n < 0 {
		own := slices.IndexFunc(l.jobs[i].menu.ways, func(w Way) bool { return w.Group == way.Group && w.Devices == way.Devices })
		g := l.menus.place(l.free, j, l.jobs[i].menu, own)
		return g != nil && l.take(out, i, -1, g)
	}
	mine, its := l.company.place(l.cluster, l.free, companion{j, l.jobs[i].menu}, companion{l.now[n].Job, l.jobs[n].menu}, way.Group, way.Devices)
	if mine == nil || !l.free.Take(mine.Counts()) {
		return false
	}
	if !l.free.Take(its.Counts()) {
		l.free.Give(mine.Counts())
		return false
	}
	out[i], out[n] = mine, its
	return true
}

// explain says of everybody whose devices d changes, and of who is asked for,
// beside whom it is and by what share of time.
func (l *sharedLeases) explain(s *scheduler.Snapshot, d *scheduler.Decision) {
	if !s.Reasons {
		return
	}
	for _, g := range d.Grants {
		k := l.jobs[l.index[g.Job]]
		on := s.Cluster.Groups[groupOf(s.Cluster, g.Slots[0].Node)].Accelerator.Name
		beside := "alone"
		if g.With != "" {
			beside = "beside job " + string(g.With)
		}
		d.Because(s, g.Job, "%s on %s: so it is to be for %.3g %% of its time", beside, on, 100*k.x[max(k.last, 0)])
	}
	for _, id := range d.Stops {
		d.Because(s, id, "has had more of its share of the time than others of theirs")
	}
	for j := range d.Unexplained(s) {
		if j.Grant == nil {
			d.Because(s, j.Job.ID, "has had more of its share of the time than others of theirs")
		}
	}
}
