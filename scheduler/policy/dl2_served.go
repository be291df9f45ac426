package policy

import (
	"context"
	"math"

	"github.com/pacer-ml/pacer/scheduler"
)

// decideServed is Decide for jobs with parameter servers: the increments are a replica,
// a server, or one of each, with which a job begins. Jobs of other models than the
// network knows get the fastest numbers there is room for, before all others.
func (p *dl2) decideServed(ctx context.Context, s *scheduler.Snapshot, anew bool, d *scheduler.Decision) error {
	f := newFilling(s, p.served)
	var seats []DL2Seat
	var unknown []*trainee
	for _, t := range f.jobs {
		kind, known := p.types[t.Job.Model.Name]
		switch {
		case !anew && f.keep(t):
		case !known:
			unknown = append(unknown, t)
		default:
			seats = append(seats, DL2Seat{Job: t.JobState, kind: kind, column: &servedColumn{ctx: ctx, belief: p.served, filling: f, trainee: t}})
		}
	}
	for _, t := range unknown {
		t.why = "no model the network knows"
		if _, err := p.served.fastest(ctx, f, t); err != nil {
			return err
		}
	}
	for i := range seats {
		if err := seats[i].column.(*servedColumn).open(&seats[i]); err != nil {
			return err
		}
	}
	if err := p.dealBatches(s, seats, f.free); err != nil {
		return err
	}
	for i := range seats {
		if c := seats[i].column.(*servedColumn); c.err != nil {
			return c.err
		} else if c.group < 0 {
			f.give(c.trainee, oneOfEach)
		}
	}
	f.settle()
	f.grant(d, s)
	for _, t := range unknown {
		d.Warnings = append(d.Warnings, p.unknownModel(t.Job.Model.Name, "get the fastest numbers there is room for"))
	}
	return nil
}

// free returns the share of the scarcer of devices and CPUs that is left.
func (f *filling) free() float64 {
	devices, cpus, allDevices, allCPUs := 0, 0.0, 0, 0.0
	for i := range f.nodes {
		n := &f.nodes[i]
		g := &f.cluster.Groups[n.group]
		allDevices += g.Devices
		allCPUs += 1000 * float64(g.CPUs)
		if !n.down {
			devices += n.devices
			cpus += float64(n.host.MilliCPUs)
		}
	}
	share := float64(devices) / float64(max(allDevices, 1))
	if allCPUs > 0 {
		share = min(share, cpus/allCPUs)
	}
	return share
}

// servedColumn is a job that is given replicas and parameter servers.
type servedColumn struct {
	*trainee
	ctx     context.Context // of the decision, which it does not outlive
	belief  *servedBelief
	filling *filling
	err     error // that something believed could not be found out

	full  [3]bool // by kind: there was no room for it
	rate  float64 // believed steps/s with what it has
	rates [3]float64
	may   [3]bool // by kind: it may be granted so many
}

// servedKinds are what the actions for a column give, in their order.
var servedKinds = [3]numbers{oneReplica, oneServer, oneOfEach}

// open fills in what of a seat stays as it is.
func (c *servedColumn) open(s *DL2Seat) error {
	s.least = math.Inf(1)
	for gi := range c.filling.cluster.Groups {
		g := &c.filling.cluster.Groups[gi]
		if !accepts(c.Job, g) {
			continue
		}
		rate, err := c.belief.rate(c.ctx, c.Job, g, oneOfEach)
		if err != nil {
			return err
		}
		if rate > 0 {
			s.least = min(s.least, 1/rate)
		}
		c.may[2] = c.may[2] || c.belief.allows(c.Job, g, oneOfEach)
	}
	if c.Grant != nil {
		held := numbersOf(c.Grant)
		s.heldW, s.heldS = held.replicas, held.servers
	}
	c.show(s)
	return nil
}

func (c *servedColumn) allows(kind int) bool {
	if !c.may[kind] || c.full[kind] {
		return false
	}
	before := len(c.tasks)
	if !c.filling.give(c.trainee, servedKinds[kind]) {
		c.full[kind] = true // nothing is given back while a cluster is given away
		return false
	}
	c.filling.takeBack(c.trainee, before)
	return true
}

func (c *servedColumn) take(kind int) {
	c.filling.give(c.trainee, servedKinds[kind])
	c.why = "by the network's preferences"
	c.look()
}

// look finds out what is believed of c as it is now, and with one more of each kind.
func (c *servedColumn) look() {
	g := c.filling.groupOf(c.trainee)
	believed := func(at numbers) float64 {
		rate, err := c.belief.rate(c.ctx, c.Job, g, at)
		if err != nil {
			c.err = err
		}
		return rate
	}
	c.rate = believed(c.has)
	for k, more := range servedKinds {
		to := c.has.plus(more)
		c.may[k], c.rates[k] = c.belief.allows(c.Job, g, to), 0
		if c.may[k] {
			c.rates[k] = believed(to)
		}
	}
}

func (c *servedColumn) show(s *DL2Seat) {
	s.Workers, s.Servers, s.share, s.sec, s.gains = c.has.replicas, c.has.servers, c.filling.shareOf(c.trainee, c.has), 0, [3]float64{}
	if c.group < 0 {
		s.gains[2] = 1
		return
	}
	if !(c.rate > 0) {
		return
	}
	s.sec = 1 / c.rate
	for k, rate := range c.rates {
		if rate > 0 {
			s.gains[k] = math.Log(rate / c.rate)
		}
	}
}
