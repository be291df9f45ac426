package dl2

import (
	"context"
	"math"

	"github.com/pacer-ml/pacer/scheduler"
	"github.com/pacer-ml/pacer/scheduler/internal/candidate"
	"github.com/pacer-ml/pacer/scheduler/policy/paramserver"
)

// decidePS is Decide for jobs with parameter servers: the increments are a replica,
// a server, or one of each, with which a job begins. Jobs of other models than the
// network knows get the fastest numbers there is room for, before all others.
func (p *dl2) decidePS(ctx context.Context, s *scheduler.Snapshot, anew bool, d *scheduler.Decision) error {
	f := paramserver.NewPacking(s, p.served)
	var seats []Seat
	var unknown []*paramserver.PackedJob
	for _, t := range f.Jobs {
		kind, known := p.types[t.Job.Model.Name]
		switch {
		case !anew && f.Keep(t):
		case !known:
			unknown = append(unknown, t)
		default:
			seats = append(seats, Seat{Job: t.JobState, kind: kind, column: &psColumn{ctx: ctx, belief: p.served, filling: f, PackedJob: t}})
		}
	}
	for _, t := range unknown {
		t.Why = "no model the network knows"
		if _, err := p.served.Fastest(ctx, f, t); err != nil {
			return err
		}
	}
	for i := range seats {
		if err := seats[i].column.(*psColumn).open(&seats[i]); err != nil {
			return err
		}
	}
	if err := p.dealBatches(s, seats, f.Free); err != nil {
		return err
	}
	for i := range seats {
		if c := seats[i].column.(*psColumn); c.err != nil {
			return c.err
		} else if c.Group < 0 {
			f.Give(c.PackedJob, paramserver.OneOfEach)
		}
	}
	f.Settle()
	f.Grant(d, s)
	for _, t := range unknown {
		d.Warnings = append(d.Warnings, p.unknownModel(t.Job.Model.Name, "get the fastest numbers there is room for"))
	}
	return nil
}

// psColumn is a job that is given replicas and parameter servers.
type psColumn struct {
	*paramserver.PackedJob
	ctx     context.Context // of the decision, which it does not outlive
	belief  *paramserver.Speeds
	filling *paramserver.Packing
	err     error // that something believed could not be found out

	full  [3]bool // by kind: there was no room for it
	rate  float64 // believed steps/s with what it has
	rates [3]float64
	may   [3]bool // by kind: it may be granted so many
}

// psKinds are what the actions for a column give, in their order.
var psKinds = [3]paramserver.Counts{paramserver.OneReplica, paramserver.OneServer, paramserver.OneOfEach}

// open fills in what of a seat stays as it is.
func (c *psColumn) open(s *Seat) error {
	s.least = math.Inf(1)
	for gi := range c.filling.Cluster.Groups {
		g := &c.filling.Cluster.Groups[gi]
		if !candidate.Accepts(c.Job, g) {
			continue
		}
		rate, err := c.belief.Rate(c.ctx, c.Job, g, paramserver.OneOfEach)
		if err != nil {
			return err
		}
		if rate > 0 {
			s.least = min(s.least, 1/rate)
		}
		c.may[2] = c.may[2] || c.belief.Allows(c.Job, g, paramserver.OneOfEach)
	}
	if c.Grant != nil {
		held := paramserver.CountsOf(c.Grant)
		s.heldW, s.heldS = held.Replicas, held.Servers
	}
	c.show(s)
	return nil
}

func (c *psColumn) allows(kind int) bool {
	if !c.may[kind] || c.full[kind] {
		return false
	}
	before := len(c.Tasks)
	if !c.filling.Give(c.PackedJob, psKinds[kind]) {
		c.full[kind] = true // nothing is given back while a cluster is given away
		return false
	}
	c.filling.TakeBack(c.PackedJob, before)
	return true
}

func (c *psColumn) take(kind int) {
	c.filling.Give(c.PackedJob, psKinds[kind])
	c.Why = "by the network's preferences"
	c.look()
}

// look finds out what is believed of c as it is now, and with one more of each kind.
func (c *psColumn) look() {
	g := c.filling.GroupOf(c.PackedJob)
	believed := func(at paramserver.Counts) float64 {
		rate, err := c.belief.Rate(c.ctx, c.Job, g, at)
		if err != nil {
			c.err = err
		}
		return rate
	}
	c.rate = believed(c.Has)
	for k, more := range psKinds {
		to := c.Has.Plus(more)
		c.may[k], c.rates[k] = c.belief.Allows(c.Job, g, to), 0
		if c.may[k] {
			c.rates[k] = believed(to)
		}
	}
}

func (c *psColumn) show(s *Seat) {
	s.Workers, s.Servers, s.share, s.sec, s.gains = c.Has.Replicas, c.Has.Servers, c.filling.ShareOf(c.PackedJob, c.Has), 0, [3]float64{}
	if c.Group < 0 {
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
