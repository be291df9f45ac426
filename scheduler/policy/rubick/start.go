package rubick

import (
	"cmp"
	"math"
	"slices"

	"github.com/pacer-ml/pacer/scheduler"
	"github.com/pacer-ml/pacer/scheduler/internal/candidate"
	"github.com/pacer-ml/pacer/scheduler/policy"
)

// serve starts t, or makes room for it, if that is better than waiting. If not it returns in how many seconds the best
// configuration fits, and on which slots.
func (r *round) serve(t *task) (served bool, wait float64, slots []scheduler.Slot) {
	if t.best == nil {
		return false, math.Inf(1), nil
	}
	wait, slots = r.earliest(t, t.best)
	return r.start(t, wait) || r.shrinks && r.feed(t, wait), wait, slots
}

// start starts t in the best configuration that fits now, unless to wait some seconds for the best of all is better
// (rule 4).
func (r *round) start(t *task, wait float64) bool {
	limit := r.cost(t, t.best) + wait*r.rent(t.best)
	var fit []*candidate.Config
	for i := range t.options {
		if o := &t.options[i]; r.cost(t, o) <= limit && r.free.FreeIn(o.Group) >= o.Devices {
			fit = append(fit, o)
		}
	}
	slices.SortStableFunc(fit, func(a, b *candidate.Config) int { return cmp.Compare(r.cost(t, a), r.cost(t, b)) })
	for _, o := range fit {
		if g := r.finder.PlaceConfig(r.unreserved(r.free, t.runTime(o)), t.Job, o, t.unpredicted); g != nil {
			r.free.Take(g.Slots)
			r.give(t, g, o)
			r.explainStart(t, o)
			return true
		}
	}
	if t.unpredicted {
		if g := r.finder.PlaceBlind(r.unreserved(r.free, t.runTime(t.best)), r.s.Cluster, t.Job); g != nil {
			r.free.Take(g.Slots)
			r.give(t, g, t.best)
			r.why(t, "as submitted")
			return true
		}
	}
	return false
}

// explainStart adds the reason of a start, with the CPUs of plans that offload.
func (r *round) explainStart(t *task, o *candidate.Config) {
	if o.Shape.CPUs == 0 {
		r.why(t, "slope %.3g completions/s per device", t.slope)
		return
	}
	r.why(t, "slope %.3g completions/s per device: on %s", t.slope, sizeText(o))
}

// give sets the grant of t. The caller takes the devices.
func (r *round) give(t *task, g *scheduler.Grant, o *candidate.Config) {
	t.grant, r.ends = g, nil
	if g != nil {
		t.left = t.runTime(o)
	}
}

// earliest returns in how many seconds t fits with o if running jobs end as predicted, and
// on which slots; +Inf if it does not fit after all have ended.
func (r *round) earliest(t *task, o *candidate.Config) (float64, []scheduler.Slot) {
	if slots, ok := r.finder.Find(r.free, t.Job, o); ok {
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
	ended := 0
	defer func() {
		for _, end := range r.ends[:ended] {
			r.free.Take(end.grant.Slots)
		}
	}()
	for _, end := range r.ends {
		r.free.Give(end.grant.Slots)
		ended++
		if slots, ok := r.finder.Find(r.free, t.Job, o); ok {
			return end.left, slots
		}
	}
	return math.Inf(1), nil
}

// reserve starts or feeds the starved job that arrived first, or reserves the nodes on which
// it can start first (rule 8).
func (r *round) reserve() {
	var t *task
	for _, q := range r.queue {
		if q.best != nil && r.waited(q) > r.starve && (t == nil || policy.ByArrival(q.JobState, t.JobState) < 0) {
			t = q
		}
	}
	if t == nil {
		return
	}
	served, at, slots := r.serve(t)
	if served || slots == nil {
		return
	}
	r.until, r.reserved = at, make([]bool, len(r.free.Free))
	for _, s := range slots {
		r.reserved[s.Node] = true
	}
}

// unreserved returns the devices of inv for a job that ends in the given seconds: all devices,
// or all but the reserved ones. The result must not be modified.
func (r *round) unreserved(inv *scheduler.Inventory, ends float64) *scheduler.Inventory {
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
