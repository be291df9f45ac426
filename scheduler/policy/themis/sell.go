package themis

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/pacer-ml/pacer/scheduler"
	"github.com/pacer-ml/pacer/scheduler/policy"
)

// auction sells gangs to the contenders with the worst rho: each bids first where it
// would be done first; losers then bid where they would be done next.
func (r *leasing) auction() {
	r.ledger.auctions++
	order := make([]*contender, len(r.contenders))
	for i := range r.contenders {
		order[i] = &r.contenders[i]
	}
	slices.SortStableFunc(order, func(a, b *contender) int { return cmp.Compare(b.rho, a.rho) })
	bidders := order[:int(math.Ceil(r.bidding*float64(len(order))))]
	for choice := range r.s.Cluster.Groups {
		for group := range r.s.Cluster.Groups {
			r.sell(bidders, choice, group)
		}
	}
}

// mostCells bounds the tables of an auction. In one that is larger only the worst
// off bid, as many as there is room for.
const mostCells = 1 << 20

// sell auctions the free devices of a group among the bidders that have it as the given
// choice.
func (r *leasing) sell(bidders []*contender, choice, group int) {
	devices := r.free.FreeIn(group)
	var bids []*contender
	var lots []lot
	for _, c := range bidders {
		if c.gone || len(c.offers) <= choice || c.offers[choice].group != group || c.state.Job.Devices > devices {
			continue
		}
		if gain := r.gain(c, c.offers[choice].left); gain > 0 && (len(lots)+2)*(devices+1) <= mostCells {
			bids = append(bids, c)
			lots = append(lots, lot{c.state.Job.Devices, gain})
		}
	}
	awards := partialAllocation(devices, lots)
	for _, holds := range []bool{true, false} { // jobs that stay before jobs that need devices
		for i, a := range awards {
			if a.won && (bids[i].state.Grant != nil) == holds {
				r.give(bids[i], group, a.keeps)
			}
		}
	}
}

// gain returns the logarithm of how many times 1/rho is with a gang what it is
// after waiting for the next lease, at most 0 if it is not worth having.
func (r *leasing) gain(c *contender, left float64) float64 {
	waited := r.waited(c.state)
	later := c.offers[0].left + (r.ledger.end - r.s.Now).Seconds()
	if c.state.Grant != nil {
		later += c.state.StartCost.Seconds()
	}
	return math.Log((waited + later) / (waited + left))
}

// give leases c a gang in a group for a part of the time until the leases end. That
// there are enough devices does not mean that they are on the right nodes: then it
// gets nothing.
func (r *leasing) give(c *contender, group int, part float64) {
	if g := r.place(c, group); g != nil {
		r.lend(c, g, part)
	}
}

// lend writes down the lease of devices that were taken for c.
func (r *leasing) lend(c *contender, g *scheduler.Grant, part float64) {
	c.gone = true
	r.grants[c.at] = g
	a := r.ledger.accounts[g.Job]
	a.until = r.s.Now + max(time.Duration(part*float64(r.ledger.end-r.s.Now)), r.least())
	r.ledger.accounts[g.Job] = a
	if c.ways.Warning != "" && g != c.state.Grant {
		r.warnings = append(r.warnings, c.ways.Warning)
	}
}

// place takes devices of a group for c: those it holds, unless they are taken; else
// devices that no job holds; else also devices whose leases are over.
func (r *leasing) place(c *contender, group int) *scheduler.Grant {
	if old := c.state.Grant; old != nil && r.free.Group[old.Slots[0].Node] == group && r.free.Take(old.Slots) {
		return old
	}
	g := r.belief.PlaceIn(r.spare, group, c.state.Job, c.ways)
	if g == nil || !r.free.Take(g.Slots) { // spare counts devices, not what of the host is taken with them
		if g = r.belief.PlaceIn(r.free, group, c.state.Job, c.ways); g == nil {
			return nil
		}
		r.free.Take(g.Slots)
	}
	for _, s := range g.Slots {
		if n := min(s.Devices, r.spare.Free[s.Node]); n > 0 {
			r.spare.Take([]scheduler.Slot{{Node: s.Node, Devices: n}})
		}
	}
	return g
}

// deal leases what is left to the other contenders: again to those that hold it, then
// at random.
func (r *leasing) deal() {
	for i := range r.contenders {
		c := &r.contenders[i]
		if old := c.state.Grant; old != nil && !c.gone && r.free.Take(old.Slots) {
			r.lend(c, old, 1)
		}
	}
	rng := rand.New(rand.NewPCG(r.seed, r.ledger.auctions))
	for _, i := range rng.Perm(len(r.contenders)) {
		c := &r.contenders[i]
		for _, o := range c.offers {
			if !c.gone {
				r.give(c, o.group, 1)
			}
		}
	}
}

// decision returns the target, and when the first lease ends that a job waits for.
func (r *leasing) decision() scheduler.Decision {
	d := scheduler.Decision{Warnings: r.warnings}
	wake := policy.Never
	for i, g := range r.grants {
		if g == nil {
			continue
		}
		d.Grants = append(d.Grants, g)
		j := r.s.Jobs()[i]
		until := r.leasedUntil(j)
		if g != j.Grant {
			until = max(min(r.ledger.accounts[j.Job.ID].until, r.ledger.end), r.s.Now+j.StartCost+r.least())
		}
		wake = min(wake, until)
	}
	if len(d.Grants) < len(r.s.Jobs()) && wake < policy.Never {
		d.Wake = max(wake, r.s.Now+policy.MinWake)
	}
	return d
}

// explain says what decided about the jobs that had no lease.
func (r *leasing) explain(d *scheduler.Decision) {
	if !r.s.Reasons {
		return
	}
	for i := range r.contenders {
		c := &r.contenders[i]
		switch g := r.grants[c.at]; {
		case g == nil && c.state.Grant != nil:
			d.Because(r.s, c.state.Job.ID, "its lease is over, and its rho of %.3g is not among the worst", c.rho)
		case g == nil:
			d.Because(r.s, c.state.Job.ID, "no devices without a lease are left for its rho of %.3g", c.rho)
		case g != c.state.Grant:
			until := r.ledger.accounts[c.state.Job.ID].until
			d.Because(r.s, c.state.Job.ID, "leased until %.0f s, by its rho of %.3g", until.Seconds(), c.rho)
		}
	}
}
