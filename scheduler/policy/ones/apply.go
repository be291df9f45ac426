package ones

import (
	"context"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/scheduler"
)

// apply deploys the best schedule. If a job that would be stopped, moved or resized has not
// trained long enough on its devices, it only starts jobs on free devices.
func (p *ones) apply(ctx context.Context, s *scheduler.Snapshot, e *evolution) (d scheduler.Decision, err error) {
	target, err := e.grants(ctx)
	if err != nil {
		return d, err
	}
	if p.mayDisturb(e.jobs, target) {
		for i, j := range e.jobs {
			if target[i] != nil {
				d.Grants = append(d.Grants, target[i])
			} else if j.preempted {
				j.limit, j.preempted = max(j.limit/2, j.sizes.least), false
			}
		}
	} else {
		d.Keep = true
		free := s.Free()
		for i, j := range e.jobs {
			if j.Grant == nil && target[i] != nil && free.Take(target[i].Slots) {
				d.Grants = append(d.Grants, target[i])
			}
		}
	}
	p.explain(&d, s, e)
	return d, nil
}

// mayDisturb reports whether every job that would be stopped, moved or resized has trained
// p.epochs epochs or p.minTrain since it got its devices.
func (p *ones) mayDisturb(jobs []*trackedJob, target []*scheduler.Grant) bool {
	for i, j := range jobs {
		if j.Grant != nil && !j.Grant.Same(target[i]) && j.epochs-j.epochsAtGrant < p.epochs && j.trained-j.trainedAtGrant < p.minTrain {
			return false
		}
	}
	return true
}

// grants turns the best schedule into grants, by job. If a job cannot run on its devices,
// because there is no prediction for the layout or the hosts are too small, it runs on
// other devices of the group, as many or fewer.
func (e *evolution) grants(ctx context.Context) ([]*scheduler.Grant, error) {
	slots := make([][]scheduler.Slot, len(e.jobs))
	for d, i := range e.best {
		if i < 0 {
			continue
		}
		if n := len(slots[i]); n > 0 && slots[i][n-1].Node == e.node[d] {
			slots[i][n-1].Devices++
		} else {
			slots[i] = append(slots[i], scheduler.Slot{Node: e.node[d], Devices: 1})
		}
	}
	free := e.s.Idle()
	out := make([]*scheduler.Grant, len(e.jobs))
	var unplaced []int
	for i := range e.jobs {
		if len(slots[i]) == 0 {
			continue
		}
		g, err := e.grant(ctx, i, slots[i])
		switch {
		case err != nil:
			return nil, err
		case g != nil && free.Take(g.Slots):
			out[i] = g
		default:
			unplaced = append(unplaced, i)
		}
	}
	for _, i := range unplaced {
		devices := 0
		for _, slot := range slots[i] {
			devices += slot.Devices
		}
		if g := e.fallback(free, i, free.Group[slots[i][0].Node], devices); g != nil && free.Take(g.Slots) {
			out[i] = g
		}
	}
	return out, nil
}

// grant returns a grant of slots to job i, its present one if it has those slots; nil if
// it cannot run on them.
func (e *evolution) grant(ctx context.Context, i int, slots []scheduler.Slot) (*scheduler.Grant, error) {
	j := e.jobs[i]
	counts := make([]int, len(slots))
	for k, slot := range slots {
		counts[k] = slot.Devices
	}
	shape, group := spec.NewShape(counts...), e.s.Free().Group[slots[0].Node]
	o, err := e.configFor(ctx, e.s.Cluster, j, group, shape)
	if o == nil || err != nil {
		return nil, err
	}
	if need := j.Job.Host.Max(o.Host); need != (spec.Host{}) {
		for k := range slots {
			slots[k].Host = need.Times(slots[k].Devices)
		}
	}
	g := &scheduler.Grant{Job: j.Job.ID, Plan: o.Plan, Shape: o.Shape, Slots: slots}
	if g.Same(j.Grant) {
		return j.Grant, nil
	}
	return g, nil
}

// fallback returns a grant of free devices of a group, at most a number of them. It prefers
// the present grant among those of equal size. nil = none fits.
func (e *evolution) fallback(free *scheduler.Inventory, i, group, devices int) *scheduler.Grant {
	j := e.jobs[i]
	for n := j.sizes.fit(group, devices); n > 0; n = j.sizes.fit(group, n-1) {
		if j.Grant.Devices() == n && free.Clone().Take(j.Grant.Slots) {
			return j.Grant
		}
		if j.sizes.unpredicted {
			return e.finder.PlaceBlindIn(free, group, j.Job)
		}
		configs := j.sizes.groups[group].configs[n]
		for k := range configs {
			if g := e.finder.PlaceOption(free, j.Job, &configs[k]); g != nil {
				return g
			}
		}
	}
	return nil
}

// explain adds warnings, and the reasons for the changes in d.
func (p *ones) explain(d *scheduler.Decision, s *scheduler.Snapshot, e *evolution) {
	for _, j := range e.jobs {
		if j.sizes.warning != "" {
			d.Warnings = append(d.Warnings, j.sizes.warning)
		}
	}
	if !s.Reasons {
		return
	}
	got := map[spec.JobID]*scheduler.Grant{}
	for _, g := range d.Grants {
		got[g.Job] = g
	}
	for _, j := range e.jobs {
		switch g := got[j.Job.ID]; {
		case g == nil && (d.Keep || j.Grant == nil):
		case g == nil:
			d.Because(s, j.Job.ID, "not in the schedule with the smallest remaining utilization")
		case g.Same(j.Grant):
		case j.Grant == nil && j.young():
			d.Because(s, j.Job.ID, "new: size %d until it has trained %d epochs", g.Devices(), youngEpochs)
		default:
			d.Because(s, j.Job.ID, "size %d, limit %d, in the schedule with the smallest remaining utilization: batch %d, learning rate %.3g times that on one device after a warm-up of an epoch",
				g.Devices(), j.limit, g.Plan.Normal().GlobalBatch(), p.learningRate(j.Job, g.Devices()))
		}
	}
	for j := range d.Unexplained(s) {
		switch {
		case j.Grant == nil:
			d.Because(s, j.Job.ID, "no devices in the schedule with the smallest remaining utilization")
		case d.Keep:
			d.Because(s, j.Job.ID, "the schedule with the smallest remaining utilization waits until all jobs it changes have trained long enough on their devices")
		default:
			d.Because(s, j.Job.ID, "the same devices in the schedule with the smallest remaining utilization")
		}
	}
}
