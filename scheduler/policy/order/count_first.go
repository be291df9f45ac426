package order

import (
	"cmp"
	"context"
	"slices"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/scheduler"
	"github.com/pacer-ml/pacer/scheduler/internal/candidate"
	"github.com/pacer-ml/pacer/scheduler/policy"
)

// countFirst is a preemptive policy with Variant.ByCount. It admits jobs in order by device
// counts alone and preempts the running jobs for which no devices are left. Jobs that
// continue keep their devices. Then the admitted waiting jobs are placed.
type countFirst struct {
	base       *preemptive // not embedded: a countFirst is not policy.Settled
	everyRound bool        // decide in every round, whether or not anything changed
}

func (p countFirst) Decide(ctx context.Context, s *scheduler.Snapshot) (scheduler.Decision, error) {
	if err := cmp.Or(p.base.queue.update(ctx, s), p.base.queue.load(ctx, s)); err != nil {
		return scheduler.Decision{}, err
	}
	order := slices.SortedFunc(p.base.queue.all, (*Entry).compare)
	d := scheduler.Decision{}
	free := s.Idle()
	left := newCounts(free, s.Cluster)
	var starts []*Entry
	for _, r := range order {
		switch {
		case !left.take(r.Job):
			r.Grant = nil
			d.Because(s, r.Job.Job.ID, "not enough devices are left after jobs with priority, key %.6g", r.Key)
		case r.Grant == nil:
			starts = append(starts, r)
		default:
			free.Take(r.Grant.Slots)
			d.Grants = append(d.Grants, r.Grant)
		}
	}
	for _, r := range starts {
		if r.Grant = p.base.finder.PlaceBlind(free, s.Cluster, r.Job.Job); r.Grant != nil {
			free.Take(r.Grant.Slots)
			d.Grants = append(d.Grants, r.Grant)
			d.Because(s, r.Job.Job.ID, "enough devices are left after jobs with priority, key %.6g", r.Key)
			r.ready = s.Now + r.Job.StartCost
		}
	}
	var first *Entry
	if i := slices.IndexFunc(order, func(r *Entry) bool { return r.Grant == nil }); i >= 0 {
		first = order[i]
	}
	var err error
	if d.Wake, err = p.base.wake(ctx, s, first, starts); p.everyRound && len(order) > 0 {
		d.Wake = s.Now + policy.MinWake
	}
	return d, err
}

// counts is the number of devices left in each group, regardless of nodes.
type counts struct {
	groups []spec.NodeGroup
	nodes  []int // group of each node
	left   []int // devices left in each group
}

func newCounts(idle *scheduler.Inventory, c spec.Cluster) *counts {
	t := &counts{groups: c.Groups, nodes: idle.Group}
	for gi := range c.Groups {
		t.left = append(t.left, idle.FreeIn(gi))
	}
	return t
}

// take subtracts the devices of j from those left in its group. It reports whether there
// are enough.
func (t *counts) take(j *scheduler.JobState) bool {
	gi := candidate.GroupOfSubmitted(j, t.groups, t.nodes, t.left)
	if gi >= 0 {
		t.left[gi] -= j.Job.Devices
	}
	return gi >= 0
}
