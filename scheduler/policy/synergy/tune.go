package synergy

import (
	"cmp"
	"slices"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/scheduler"
)

// tuning is the placement of the jobs of one decision.
type tuning struct {
	*synergy
	s     *scheduler.Snapshot
	free  *scheduler.Inventory
	short bool // a running job has less than its best-case demand
}

// tune places jobs and sets their grants:
//
//   - running jobs keep their devices, CPUs and memory;
//   - the others are placed in descending order of devices, then CPUs, then memory, each with
//     its best-case demand if that fits (fit);
//   - spare CPUs and memory go to the jobs that lack them, in the order of jobs (raise); the
//     artifact leaves them idle where they are less than a demand.
//
// If a job does not fit because devices are fragmented, all jobs that are not pinned are
// placed anew, provided that more devices are then in use.
func (p *synergy) tune(s *scheduler.Snapshot, jobs []*entry) *tuning {
	t := &tuning{synergy: p, s: s}
	if t.place(jobs, func(e *entry) bool { return true }) {
		return t.finish(jobs)
	}
	kept, used := grantsOf(jobs)
	t.place(jobs, func(e *entry) bool { return e.pinned })
	if _, anew := grantsOf(jobs); anew <= used {
		t.restore(jobs, kept)
	}
	return t.finish(jobs)
}

// grantsOf returns the grants of jobs and the devices in them.
func grantsOf(jobs []*entry) (out []*scheduler.Grant, devices int) {
	for _, e := range jobs {
		out = append(out, e.granted)
		devices += e.granted.Devices()
	}
	return out, devices
}

// restore sets the grants of jobs to those of an earlier placement.
func (t *tuning) restore(jobs []*entry, grants []*scheduler.Grant) {
	t.free = t.s.Idle()
	for i, e := range jobs {
		if e.granted = grants[i]; e.granted != nil {
			t.free.Take(e.granted.Slots)
		}
	}
}

// place places jobs on an idle cluster. Those for which stays is true keep what they hold. It
// reports whether all fit.
func (t *tuning) place(jobs []*entry, stays func(*entry) bool) bool {
	t.free = t.s.Idle()
	var rest []*entry
	for _, e := range jobs {
		e.granted = nil
		if e.Grant != nil && stays(e) && t.free.Take(e.Grant.Slots) {
			e.granted = e.Grant
		} else {
			rest = append(rest, e)
		}
		e.best = t.bestDemand(e)
	}
	slices.SortStableFunc(rest, func(a, b *entry) int {
		n, m := int64(a.Job.Devices), int64(b.Job.Devices)
		return cmp.Or(cmp.Compare(m, n), cmp.Compare(m*b.best.MilliCPUs, n*a.best.MilliCPUs), cmp.Compare(m*b.best.Bytes, n*a.best.Bytes))
	})
	all := true
	for _, e := range rest {
		if e.granted = t.fit(e, jobs); e.granted == nil {
			all = false
		}
	}
	return all
}

// bestDemand returns the best-case demand of e in its group.
func (t *tuning) bestDemand(e *entry) spec.Host {
	g := &t.s.Cluster.Groups[e.group]
	return t.demand(e.Job, g, min(e.Job.Devices, g.Devices))
}

// fit returns devices for e, taken from the free ones: with its best-case demand, or else with
// no more than the proportional share, or else with that after jobs with more than theirs have
// been cut to it. nil = its devices do not fit.
func (t *tuning) fit(e *entry, jobs []*entry) *scheduler.Grant {
	if g := t.find(t.free, e, e.best); g != nil {
		t.free.Take(g.Slots)
		return g
	}
	modest := least(e.best, scheduler.ProportionalHost(&t.s.Cluster.Groups[e.group])).Max(e.Job.Host)
	if g := t.find(t.free, e, modest); g != nil {
		t.free.Take(g.Slots)
		return g
	}
	without := t.free.Clone()
	for _, peer := range jobs {
		if cut := t.cutOf(peer); cut != nil {
			without.Give(peer.granted.Slots)
			without.Take(cut.Slots)
		}
	}
	g := t.find(without, e, modest)
	if g == nil {
		return nil
	}
	t.cutFor(g, jobs)
	t.free.Take(g.Slots)
	return g
}

// find returns free devices of its group for e with hosts per device, nil if there are none.
func (t *tuning) find(free *scheduler.Inventory, e *entry, each spec.Host) *scheduler.Grant {
	job := *e.Job
	job.Host = each
	for i := range e.options {
		o := e.options[i]
		if o.Group != e.group {
			continue
		}
		if g := t.finder.PlaceConfig(free, &job, &o, e.blind); g != nil {
			return g
		}
	}
	return nil
}

// cutOf returns the grant of a job cut to the proportional share; nil if it has no more.
func (t *tuning) cutOf(e *entry) *scheduler.Grant {
	if e.granted == nil {
		return nil
	}
	has := hostOf(e.granted)
	to := least(has, scheduler.ProportionalHost(&t.s.Cluster.Groups[e.group])).Max(e.Job.Host).Max(configHost(e))
	if to.Covers(has) {
		return nil
	}
	return withHost(e.granted, to)
}

// configHost returns what the configuration of e takes of hosts per device.
func configHost(e *entry) spec.Host {
	for i := range e.options {
		if o := &e.options[i]; o.Plan == e.granted.Plan && o.Shape.Devices == e.granted.Shape.Devices {
			return o.Host
		}
	}
	return spec.Host{}
}

// cutFor cuts jobs on the nodes of g to their proportional shares until g fits: those on the
// fewest nodes first, then those with most CPUs per device.
func (t *tuning) cutFor(g *scheduler.Grant, jobs []*entry) {
	var peers []*entry
	for _, e := range jobs {
		if t.cutOf(e) != nil && slices.ContainsFunc(e.granted.Slots, func(s scheduler.Slot) bool {
			return slices.ContainsFunc(g.Slots, func(o scheduler.Slot) bool { return o.Node == s.Node })
		}) {
			peers = append(peers, e)
		}
	}
	slices.SortStableFunc(peers, func(a, b *entry) int {
		return cmp.Or(cmp.Compare(len(a.granted.Slots), len(b.granted.Slots)), cmp.Compare(hostOf(b.granted).MilliCPUs, hostOf(a.granted).MilliCPUs))
	})
	for _, e := range peers {
		if t.free.Take(g.Slots) {
			t.free.Give(g.Slots)
			return
		}
		cut := t.cutOf(e)
		t.free.Give(e.granted.Slots)
		t.free.Take(cut.Slots)
		e.granted = cut
	}
}

// finish gives spare CPUs and memory to jobs that lack them, in the order of jobs: to one that
// starts at once, to one that runs if the time saved exceeds its start cost.
func (t *tuning) finish(jobs []*entry) *tuning {
	for _, e := range jobs {
		if e.granted == nil || hostOf(e.granted).Covers(e.best) {
			continue
		}
		if !t.raise(e) {
			t.short = true
		}
	}
	return t
}

// raise gives e its best-case demand, or else as many of the CPUs and memory as are free on its
// nodes, if that is worth it. It reports whether e then has its demand.
func (t *tuning) raise(e *entry) bool {
	has := hostOf(e.granted)
	most := e.best.Max(has)
	for cpus := most.MilliCPUs; cpus >= has.MilliCPUs; cpus -= core {
		for _, bytes := range []int64{most.Bytes, has.Bytes} {
			more := spec.Host{MilliCPUs: cpus, Bytes: bytes}
			if more == has || !t.worth(e, has, more) {
				continue
			}
			t.free.Give(e.granted.Slots)
			if g := withHost(e.granted, more); t.free.Take(g.Slots) {
				e.granted = g
				return more == most
			}
			t.free.Take(e.granted.Slots)
		}
	}
	return false
}

// worth reports whether e should have more CPUs and memory per device: if it starts or changes
// at this decision, when it is faster; if it runs, when that saves it more than a start.
func (t *tuning) worth(e *entry, has, more spec.Host) bool {
	now, then := t.speed(e.Job, t.effective(e, has)), t.speed(e.Job, t.effective(e, more))
	if e.granted != e.Grant {
		return then > now || more == e.best.Max(has)
	}
	left := remaining(t.s, e) / now
	return !e.pinned && left*(1-now/then) > e.StartCost.Seconds()
}

// effective returns hosts per device with the proportional share where none were granted.
func (t *tuning) effective(e *entry, each spec.Host) spec.Host {
	part := scheduler.ProportionalHost(&t.s.Cluster.Groups[e.group])
	if each.MilliCPUs == 0 {
		each.MilliCPUs = part.MilliCPUs
	}
	if each.Bytes == 0 {
		each.Bytes = part.Bytes
	}
	return each
}
