package pollux

import (
	"context"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/scheduler"
	"github.com/pacer-ml/pacer/scheduler/internal/candidate"
)

// apply returns the decision for a schedule. A job without devices in it starts if its least
// configuration fits on what is left.
func (pr *problem) apply(ctx context.Context, best *schedule) (d scheduler.Decision, err error) {
	free := pr.s.Idle()
	grants := make([]*scheduler.Grant, len(pr.jobs))
	for i, j := range pr.jobs {
		if j.warning != "" {
			d.Warnings = append(d.Warnings, j.warning)
		}
		if g := pr.grant(j, best.rows[i]); g != nil && free.Take(g.Slots) {
			grants[i] = g
		}
	}
	for i, j := range pr.jobs {
		if grants[i] == nil {
			grants[i] = pr.fill(free, j)
		}
		if grants[i] != nil {
			d.Grants = append(d.Grants, grants[i])
		}
	}
	if pr.s.Reasons {
		for i, j := range pr.jobs {
			pr.explain(&d, j, best.rows[i], grants[i])
		}
	}
	return d, ctx.Err()
}

// grant returns the grant for a row, the present one if j holds it; nil without devices.
func (pr *problem) grant(j *job, r *row) *scheduler.Grant {
	switch {
	case r.devices == 0:
		return nil
	case r == j.base:
		return j.Grant
	}
	g := &scheduler.Grant{Job: j.Job.ID, Elastic: j.elastic, Plan: r.value.plan, Shape: spec.NewShape(r.value.counts...)}
	need := j.Job.Host
	if c := r.value.config; c != nil {
		g.Plan, g.Shape, need = c.Plan, c.Shape, need.Max(c.Host)
	}
	for _, c := range r.cells {
		g.Slots = append(g.Slots, scheduler.Slot{Node: c.node, Devices: c.devices, Host: need.Times(c.devices)})
	}
	return g
}

// fill returns a grant of free devices for the smallest configuration of j that fits, and
// takes them; nil if none does.
func (pr *problem) fill(free *scheduler.Inventory, j *job) *scheduler.Grant {
	if j.Grant != nil && free.Take(j.Grant.Slots) {
		return j.Grant
	}
	if j.elastic {
		return pr.fillElastic(free, j)
	}
	for i := range j.layouts { // by group and devices
		if g := pr.finder.PlaceConfig(free, j.Job, j.layouts[i].config, j.blind); g != nil && free.Take(g.Slots) {
			return g
		}
	}
	return nil
}

// fillElastic is fill for a job that chooses its batch.
func (pr *problem) fillElastic(free *scheduler.Inventory, j *job) *scheduler.Grant {
	for gi := range pr.s.Cluster.Groups {
		g := &pr.s.Cluster.Groups[gi]
		room := g.Room(j.Job.Host)
		if !j.Job.Accepts(g) || room < 1 || free.FreeIn(gi) < j.least {
			continue
		}
		shape := spec.Packed(j.least, room)
		v := pr.valueOf(j, gi, shape.PerNode())
		if v == nil {
			continue
		}
		o := candidate.Config{Group: gi, Plan: v.plan, Shape: shape, Devices: v.devices}
		if grant := pr.finder.PlaceConfig(free, j.Job, &o, false); grant != nil && free.Take(grant.Slots) {
			grant.Elastic = true
			return grant
		}
	}
	return nil
}

// explain adds the reason for the devices of j.
func (pr *problem) explain(d *scheduler.Decision, j *job, r *row, g *scheduler.Grant) {
	switch {
	case g == nil:
		d.Because(pr.s, j.Job.ID, "no devices in the schedule of highest fitness")
	case r.devices == 0 && !g.Same(j.Grant):
		d.Because(pr.s, j.Job.ID, "%s are left by the schedule of highest fitness", spec.Count(g.Devices(), "device"))
	case !g.Same(j.Grant):
		d.Because(pr.s, j.Job.ID, "%s, %.3g times the goodput on a fair share of %g, in the schedule of highest fitness", spec.Count(g.Devices(), "device"), r.speedup, j.fair)
	default:
		d.Because(pr.s, j.Job.ID, "the same devices in the schedule of highest fitness")
	}
}
