package rubick

import (
	"cmp"
	"math"
	"slices"

	"github.com/pacer-ml/pacer/scheduler"
	"github.com/pacer-ml/pacer/scheduler/internal/candidate"
	"github.com/pacer-ml/pacer/scheduler/policy"
)

// start gives t the best of what fits now, unless waiting is better.
func (r *round) start(t *task) bool {
	if t.best == nil {
		return false
	}
	wait, _ := r.earliest(t, t.best)
	limit := r.cost(t, t.best) + wait*r.rent(t.best)
	var fit []*candidate.Config
	for i := range t.options {
		if o := &t.options[i]; r.cost(t, o) <= limit && r.free.FreeIn(o.Group) >= o.Devices {
			fit = append(fit, o)
		}
	}
	slices.SortStableFunc(fit, func(a, b *candidate.Config) int { return cmp.Compare(r.cost(t, a), r.cost(t, b)) })
	for _, o := range fit {
		if g := r.belief.PlaceConfig(r.without(r.free, t.in(o)), t.Job, o, t.blind); g != nil {
			r.free.Take(g.Slots)
			r.give(t, g, o)
			r.started(t, o)
			return true
		}
	}
	if t.blind {
		if g := r.belief.PlaceBlind(r.without(r.free, t.in(t.best)), r.s.Cluster, t.Job); g != nil {
			r.free.Take(g.Slots)
			r.give(t, g, t.best)
			r.why(t, "as submitted")
			return true
		}
	}
	return false
}

// started says by what t starts, on which CPUs where that matters.
func (r *round) started(t *task, o *candidate.Config) {
	if o.Shape.CPUs == 0 {
		r.why(t, "slope %.3g completions/s per device", t.slope)
		return
	}
	r.why(t, "slope %.3g completions/s per device: on %s", t.slope, sizeText(o))
}

// give sets the target of t. Its devices are the caller's to take.
func (r *round) give(t *task, g *scheduler.Grant, o *candidate.Config) {
	t.grant, r.ends = g, nil
	if g != nil {
		t.left = t.in(o)
	}
}

// earliest returns in how many seconds t fits as o if running jobs end as believed,
// and on which devices; +Inf if it does not even then.
func (r *round) earliest(t *task, o *candidate.Config) (float64, []scheduler.Slot) {
	if slots, ok := r.belief.Find(r.free, t.Job, o); ok {
		return 0, slots
	}
	if r.ends == nil {
		for _, k := range r.tasks {
			if k.grant != nil {
				r.ends = append(r.ends, k)
			}
		}
		slices.SortStableFunc(r.ends, func(a, b *task) int { return cmp.Compare(a.left, b.left) })
	}
	inv := r.free.Clone()
	for _, end := range r.ends {
		inv.Give(end.grant.Slots)
		if inv.FreeIn(o.Group) < o.Devices {
			continue
		}
		if slots, ok := r.belief.Find(inv, t.Job, o); ok {
			return end.left, slots
		}
	}
	return math.Inf(1), nil
}

// reserve looks after the job that is starved longest: it starts, is fed, or
// gets the nodes kept on which it can start first.
func (r *round) reserve() {
	var t *task
	for _, q := range r.queue {
		if q.best != nil && r.waited(q) > r.starve && (t == nil || policy.ByArrival(q.JobState, t.JobState) < 0) {
			t = q
		}
	}
	if t == nil || r.start(t) || r.shrinks && r.feed(t) {
		return
	}
	at, slots := r.earliest(t, t.best)
	if slots == nil {
		return
	}
	r.until, r.reserved = at, make([]bool, len(r.free.Free))
	for _, s := range slots {
		r.reserved[s.Node] = true
	}
}

// without returns the devices of inv that a job may have which ends in so many
// seconds: all of them, or those off the reserved nodes. Not to be modified.
func (r *round) without(inv *scheduler.Inventory, ends float64) *scheduler.Inventory {
	if r.reserved == nil || ends <= r.until {
		return inv
	}
	inv = inv.Clone()
	for node, yes := range r.reserved {
		if n := inv.Free[node]; yes && n > 0 {
			inv.Take([]scheduler.Slot{{Node: node, Devices: n}})
		}
	}
	return inv
}

func (r *round) why(t *task, format string, args ...any) {
	r.d.Because(r.s, t.Job.ID, format, args...)
}

func (r *round) warn(text string) {
	if !slices.Contains(r.d.Warnings, text) {
		r.d.Warnings = append(r.d.Warnings, text)
	}
}
