package gavel

import (
	"cmp"
	"slices"

	"github.com/pacer-ml/pacer/scheduler"
	"github.com/pacer-ml/pacer/scheduler/internal/candidate"
)

// decision places the jobs. A job keeps its grant if its candidate and partner are the
// same as before. The others are placed in descending number of devices. If one does not
// fit because devices are fragmented, and anew is set, all jobs of its group are placed
// again.
func (l *leases) decision(anew bool) scheduler.Decision {
	l.out = slices.Grow(l.out[:0], len(l.assigned))
	out := l.out[:len(l.assigned)]
	clear(out)
	var moving []int // of two partners only the first
	for i, has := range l.assigned {
		old := l.present[i].Grant
		if old != nil && has.candidate >= 0 && has.candidate == has.holds && has.with == has.holdsWith {
			out[i] = old
			continue
		}
		if old != nil {
			l.free.Give(old.Counts())
		}
		if has.candidate >= 0 && (has.with < 0 || i < has.with) {
			moving = append(moving, i)
		}
	}
	if l.pairs != nil {
		moving = slices.DeleteFunc(moving, func(i int) bool { return l.keepDevices(out, i) })
	}
	for _, i := range l.place(out, moving) {
		if anew && out[i] == nil {
			l.place(out, l.clear(out, l.candidateOf(i).Group))
		}
	}
	if l.pairs != nil {
		for i, g := range out {
			if g != nil {
				l.jobs[i].last = indexLike(l.jobs[i].candidates, Candidate{Group: l.cluster.GroupOf(g.Slots[0].Node), Devices: g.Devices(), Partner: l.pairs.kinds[g.With]})
			}
		}
	}
	return changes(l.present, out)
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

// clear withdraws the grants in a group and returns the jobs assigned to it.
func (l *leases) clear(out []*scheduler.Grant, group int) (all []int) {
	for i := range l.assigned {
		if l.assigned[i].candidate < 0 || l.candidateOf(i).Group != group {
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

// place places jobs and their partners, most devices first. Partners that do not fit
// together are placed separately. It returns the jobs without a partner that do not fit.
func (l *leases) place(out []*scheduler.Grant, jobs []int) (failed []int) {
	slices.SortStableFunc(jobs, func(a, b int) int { return cmp.Compare(l.candidateOf(b).Devices, l.candidateOf(a).Devices) })
	for _, i := range jobs {
		n := l.assigned[i].with
		switch {
		case l.find(out, i, n):
		case n < 0:
			failed = append(failed, i)
		default:
			for _, one := range []int{i, n} {
				l.assigned[one].with = -1
				l.find(out, one, -1)
			}
		}
	}
	return failed
}

// find places job i, together with job n unless n is -1, and reports whether they fit.
func (l *leases) find(out []*scheduler.Grant, i, n int) bool {
	c, j := l.candidateOf(i), l.present[i].Job
	if n < 0 {
		own := slices.IndexFunc(l.jobs[i].candidateSet.all, func(w Candidate) bool { return w.Group == c.Group && w.Devices == c.Devices })
		g := l.candidates.place(l.free, j, l.jobs[i].candidateSet, own)
		return g != nil && l.take(out, i, -1, g)
	}
	own, other := l.pairs.pairTable.place(l.cluster, l.free, jobKind{j, l.jobs[i].candidateSet}, jobKind{l.present[n].Job, l.jobs[n].candidateSet}, c.Group, c.Devices)
	return own != nil && l.takeBoth(out, i, n, own, other)
}

// keepDevices gives job i and its partner the devices that one of the two holds in the
// assigned group, if they are still free.
func (l *leases) keepDevices(out []*scheduler.Grant, i int) bool {
	c := l.candidateOf(i)
	two := [2]int{i, l.assigned[i].with}
	for k, one := range two {
		if one < 0 || l.present[one].Grant == nil {
			continue
		}
		old := l.present[one].Grant
		there := l.cluster.GroupOf(old.Slots[0].Node) == c.Group && old.Devices() == c.Devices
		if there && l.take(out, one, two[1-k], old.Beside("")) {
			return true
		}
	}
	return false
}

// take gives job i the grant g, and job n the same devices unless n is -1. It reports
// whether they are free.
func (l *leases) take(out []*scheduler.Grant, i, n int, g *scheduler.Grant) bool {
	if n < 0 {
		if !l.free.Take(g.Counts()) {
			return false
		}
		out[i] = g
		return true
	}
	a, b := l.present[i].Job, l.present[n].Job
	var plan *candidate.Config
	for _, c := range l.pairs.pairTable.jobPairs(l.cluster, jobKind{a, l.jobs[i].candidateSet}, jobKind{b, l.jobs[n].candidateSet}, l.cluster.GroupOf(g.Slots[0].Node), g.Devices()) {
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

// takeBoth gives jobs i and n their grants of the same devices. It reports whether they
// are free.
func (l *leases) takeBoth(out []*scheduler.Grant, i, n int, own, other *scheduler.Grant) bool {
	if !l.free.Take(own.Counts()) {
		return false
	}
	if !l.free.Take(other.Counts()) {
		l.free.Give(own.Counts())
		return false
	}
	out[i], out[n] = own, other
	return true
}
