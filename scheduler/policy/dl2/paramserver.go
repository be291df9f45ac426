package dl2

import (
	"context"
	"math"

	"github.com/pacer-ml/pacer/scheduler"
	"github.com/pacer-ml/pacer/scheduler/policy/paramserver"
)

// decidePS is Decide for jobs with parameter servers. Increments are a replica, a server, or
// one of each, which is the first increment of a job. Jobs of models that the network was not
// trained for get the fastest Counts that fit, before all others.
func (p *dl2) decidePS(ctx context.Context, s *scheduler.Snapshot, newSlot bool, d *scheduler.Decision) error {
	f := paramserver.NewPacking(s, p.speeds)
	var seats []Seat
	var unknown []*paramserver.PackedJob
	for _, t := range f.Jobs {
		kind, known := p.types[t.Job.Model.Name]
		switch {
		case !newSlot && f.Keep(t):
		case !known:
			unknown = append(unknown, t)
		default:
			seats = append(seats, Seat{Job: t.JobState, kind: kind, column: &psColumn{ctx: ctx, speeds: p.speeds, packing: f, PackedJob: t}})
		}
	}
	for _, t := range unknown {
		t.Why = "fastest that fits: the network was not trained for its model"
		if _, err := p.speeds.Fastest(ctx, f, t); err != nil {
			return err
		}
	}
	for i := range seats {
		if err := seats[i].column.(*psColumn).open(&seats[i]); err != nil {
			return err
		}
	}
	if err := p.assignBatches(s, seats, f.Free); err != nil {
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
		d.Warnings = append(d.Warnings, p.unknownModel(t.Job.Model.Name, "get the fastest numbers of replicas and servers that fit"))
	}
	return nil
}

// psColumn is a job that gets replicas and parameter servers.
type psColumn struct {
	*paramserver.PackedJob
	ctx     context.Context // of the decision
	speeds  *paramserver.Speeds
	packing *paramserver.Packing
	err     error // first error of a prediction

	full    [3]bool // by kind: it did not fit
	rate    float64 // predicted steps/s with its present Counts
	rates   [3]float64
	allowed [3]bool // by kind: the larger Counts are allowed
}

// psKinds are the increments of the actions of a column.
var psKinds = [3]paramserver.Counts{paramserver.OneReplica, paramserver.OneServer, paramserver.OneOfEach}

// open sets the constant fields of a seat.
func (c *psColumn) open(s *Seat) error {
	s.least = math.Inf(1)
	for gi := range c.packing.Cluster.Groups {
		g := &c.packing.Cluster.Groups[gi]
		if !c.Job.Accepts(g) {
			continue
		}
		rate, err := c.speeds.Rate(c.ctx, c.Job, g, paramserver.OneOfEach)
		if err != nil {
			return err
		}
		if rate > 0 {
			s.least = min(s.least, 1/rate)
		}
		c.allowed[2] = c.allowed[2] || c.speeds.Allows(c.Job, g, paramserver.OneOfEach)
	}
	if c.Grant != nil {
		held := paramserver.CountsOf(c.Grant)
		s.heldW, s.heldS = held.Replicas, held.Servers
	}
	c.show(s)
	return nil
}

func (c *psColumn) allows(kind int) bool {
	if !c.allowed[kind] || c.full[kind] {
		return false
	}
	before := len(c.Tasks)
	if !c.packing.Give(c.PackedJob, psKinds[kind]) {
		c.full[kind] = true // free room only shrinks within a decision
		return false
	}
	c.packing.TakeBack(c.PackedJob, before)
	return true
}

func (c *psColumn) take(kind int) {
	c.packing.Give(c.PackedJob, psKinds[kind])
	c.Why = "by the network's preferences"
	c.update()
}

// update computes the predicted speed of c at present and after one more of each kind.
func (c *psColumn) update() {
	g := c.packing.GroupOf(c.PackedJob)
	predicted := func(at paramserver.Counts) float64 {
		rate, err := c.speeds.Rate(c.ctx, c.Job, g, at)
		if err != nil {
			c.err = err
		}
		return rate
	}
	c.rate = predicted(c.Has)
	for k, more := range psKinds {
		to := c.Has.Plus(more)
		c.allowed[k], c.rates[k] = c.speeds.Allows(c.Job, g, to), 0
		if c.allowed[k] {
			c.rates[k] = predicted(to)
		}
	}
}

func (c *psColumn) show(s *Seat) {
	s.Workers, s.Servers, s.share, s.sec, s.gains = c.Has.Replicas, c.Has.Servers, c.packing.ShareOf(c.PackedJob, c.Has), 0, [3]float64{}
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
