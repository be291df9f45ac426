package gavel

import (
	"cmp"
	"slices"

	"github.com/pacer-ml/pacer/scheduler"
	"github.com/pacer-ml/pacer/scheduler/internal/candidate"
)

// decision finds the devices. A job keeps its grant if it gets the same way with the
// same partner. Others are placed in descending number of devices. If one finds no room
// between those that stay, and anew is set, all jobs of its group are placed anew.
func (l *leases) decision(anew bool) scheduler.Decision {
	l.out = slices.Grow(l.out[:0], len(l.given))
	out := l.out[:len(l.given)]
	clear(out)
	var moving []int // of two jobs that share devices the first
	for i, has := range l.given {
		old := l.now[i].Grant
		if old != nil && has.way >= 0 && has.way == has.holds && has.with == has.holdsWith {
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
	if l.pairs != nil {
		moving = slices.DeleteFunc(moving, func(i int) bool { return l.stay(out, i) })
	}
	for _, i := range l.place(out, moving) {
		if anew && out[i] == nil {
			l.place(out, l.clear(out, l.way(i).Group))
		}
	}
	if l.pairs != nil {
		for i, g := range out {
			if g != nil {
				l.jobs[i].last = wayLike(l.jobs[i].ways, Way{Group: groupOf(l.cluster, g.Slots[0].Node), Devices: g.Devices(), Beside: l.pairs.kinds[g.With]})
			}
		}
	}
	return changes(l.now, out)
}

// changes returns the decision that gives each job its grant in out.
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

// clear takes back the grants found in a group, and returns the jobs assigned to it.
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

// place finds devices for jobs and their partners, most devices first. Two jobs that
// find no room together are placed apart. It returns the jobs without a partner that
// found no room.
func (l *leases) place(out []*scheduler.Grant, jobs []int) (failed []int) {
	slices.SortStableFunc(jobs, func(a, b int) int { return cmp.Compare(l.way(b).Devices, l.way(a).Devices) })
	for _, i := range jobs {
		n := l.given[i].with
		switch {
		case l.find(out, i, n):
		case n < 0:
			failed = append(failed, i)
		default:
			for _, one := range []int{i, n} {
				l.given[one].with = -1
				l.find(out, one, -1)
			}
		}
	}
	return failed
}

// find finds free devices for job i, and for job n the same unless n is -1.
func (l *leases) find(out []*scheduler.Grant, i, n int) bool {
	way, j := l.way(i), l.now[i].Job
	if n < 0 {
		own := slices.IndexFunc(l.jobs[i].candidateSet.ways, func(w Way) bool { return w.Group == way.Group && w.Devices == way.Devices })
		g := l.candidates.place(l.free, j, l.jobs[i].candidateSet, own)
		return g != nil && l.take(out, i, -1, g)
	}
	mine, its := l.pairs.pairTable.place(l.cluster, l.free, jobKind{j, l.jobs[i].candidateSet}, jobKind{l.now[n].Job, l.jobs[n].candidateSet}, way.Group, way.Devices)
	return mine != nil && l.takeBoth(out, i, n, mine, its)
}

// stay gives job i, and its partner, the devices that one of the two holds on the type
// assigned, if they are still free.
func (l *leases) stay(out []*scheduler.Grant, i int) bool {
	way := l.way(i)
	two := [2]int{i, l.given[i].with}
	for k, one := range two {
		if one < 0 || l.now[one].Grant == nil {
			continue
		}
		old := l.now[one].Grant
		there := groupOf(l.cluster, old.Slots[0].Node) == way.Group && old.Devices() == way.Devices
		if there && l.take(out, one, two[1-k], old.Beside("")) {
			return true
		}
	}
	return false
}

// take gives job i the grant g, and job n the same devices unless n is -1, if they are
// free.
func (l *leases) take(out []*scheduler.Grant, i, n int, g *scheduler.Grant) bool {
	if n < 0 {
		if !l.free.Take(g.Counts()) {
			return false
		}
		out[i] = g
		return true
	}
	a, b := l.now[i].Job, l.now[n].Job
	var plan *candidate.Config
	for _, c := range l.pairs.pairTable.jobPairs(l.cluster, jobKind{a, l.jobs[i].candidateSet}, jobKind{b, l.jobs[n].candidateSet}, groupOf(l.cluster, g.Slots[0].Node), g.Devices()) {
		if c.a.Shape == g.Shape {
			plan = &c.b
			break
		}
	}
	if plan == nil {
		return false
	}
	return l.takeBoth(out, i, n, g.Beside(b.ID), &scheduler.Grant{Job: b.ID, Plan: plan.Plan, Shape: g.Shape, Slots: slotsFor(b, g.Slots), With: a.ID})
}

// takeBoth gives jobs i and n their grants of the same devices, if they are free.
func (l *leases) takeBoth(out []*scheduler.Grant, i, n int, mine, its *scheduler.Grant) bool {
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
