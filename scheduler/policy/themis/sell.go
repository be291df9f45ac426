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

// auction auctions the free devices among the fraction 1-f of contenders with the worst rho
// (section 5.1). Each bids first on the group where it ends first; losers then bid on their
// next group.
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

// mostCells bounds the tables of an auction. Beyond it only the contenders with the worst
// rho bid.
const mostCells = 1 << 20

// sell auctions the free devices of a group among the bidders that have it as the given
// choice.
func (r *leasing) sell(bidders []*contender, choice, group int) {
	devices := r.free.FreeIn(group)
	var bids []*contender
	var lots []lot
	for _, c := range bidders {
		if c.served || len(c.offers) <= choice || c.offers[choice].group != group || c.state.Job.Devices > devices {
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

// gain returns the logarithm of 1/rho with a gang, divided by 1/rho after waiting for the
// next lease. It is at most 0 if the gang has no value.
func (r *leasing) gain(c *contender, left float64) float64 {
	waited := r.waited(c.state)
	later := c.offers[0].left + (r.ledger.end - r.s.Now).Seconds()
	if c.state.Grant != nil {
		later += c.state.StartCost.Seconds()
	}
	return math.Log((waited + later) / (waited + left))
}

// give leases c a gang in a group for a fraction of the time until the leases end. c gets
// nothing if the free devices are too fragmented.
func (r *leasing) give(c *contender, group int, part float64) {
	if g := r.place(c, group); g != nil {
		r.lend(c, g, part)
	}
}

// lend records the lease of devices that were taken for c.
func (r *leasing) lend(c *contender, g *scheduler.Grant, part float64) {
	c.served = true
	r.grants[c.index] = g
	a := r.ledger.accounts[g.Job]
	a.until = r.s.Now + max(time.Duration(part*float64(r.ledger.end-r.s.Now)), r.least())
	r.ledger.accounts[g.Job] = a
	if c.candidates.Warning != "" && g != c.state.Grant {
		r.warnings = append(r.warnings, c.candidates.Warning)
	}
}

// place takes devices of a group for c: its present ones if they are free, else devices
// that no job holds, else also devices of ended leases.
func (r *leasing) place(c *contender, group int) *scheduler.Grant {
	if old := c.state.Grant; old != nil && r.free.Group[old.Slots[0].Node] == group && r.free.Take(old.Slots) {
		return old
	}
	g := r.finder.PlaceIn(r.spare, group, c.state.Job, c.candidates)
	if g == nil || !r.free.Take(g.Slots) { // spare counts devices, but no CPUs or host memory
		if g = r.finder.PlaceIn(r.free, group, c.state.Job, c.candidates); g == nil {
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

// deal leases the leftover devices: to the contenders that hold them, then at random
// (section 5.1, leftover allocation).
func (r *leasing) deal() {
	for i := range r.contenders {
		c := &r.contenders[i]
		if old := c.state.Grant; old != nil && !c.served && r.free.Take(old.Slots) {
			r.lend(c, old, 1)
		}
	}
	rng := rand.New(rand.NewPCG(r.seed, r.ledger.auctions))
	for _, i := range rng.Perm(len(r.contenders)) {
		c := &r.contenders[i]
		for _, o := range c.offers {
			if !c.served {
				r.give(c, o.group, 1)
			}
		}
	}
}

// decision returns the grants, and wakes at the end of the first lease if a job waits.
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

// explain adds the reasons for the contenders.
func (r *leasing) explain(d *scheduler.Decision) {
	if !r.s.Reasons {
		return
	}
	for i := range r.contenders {
		c := &r.contenders[i]
		switch g := r.grants[c.index]; {
		case g == nil && c.state.Grant != nil:
			d.Because(r.s, c.state.Job.ID, "its lease ended, and its rho of %.3g is not among the worst", c.rho)
		case g == nil:
			d.Because(r.s, c.state.Job.ID, "no devices without a lease are left for its rho of %.3g", c.rho)
		case g != c.state.Grant:
			until := r.ledger.accounts[c.state.Job.ID].until
			d.Because(r.s, c.state.Job.ID, "leased until %.0f s, rho %.3g", until.Seconds(), c.rho)
		}
	}
}
