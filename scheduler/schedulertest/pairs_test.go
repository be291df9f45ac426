package schedulertest_test

import (
	"context"
	"math/rand/v2"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/scheduler"
)

// randomPairs is a policy that starts jobs as another one does, which never preempts. In
// addition it makes jobs begin and end sharing devices at random. The random choices
// depend on the seed of the case and the time.
type randomPairs struct {
	scheduler.Policy
	of *soak
}

func (m randomPairs) Decide(ctx context.Context, s *scheduler.Snapshot) (scheduler.Decision, error) {
	d, err := m.Policy.Decide(ctx, s)
	if err != nil {
		return d, err
	}
	c := pairing{of: m.of, free: s.Free(), jobs: s.Jobs(), target: map[spec.JobID]*scheduler.Grant{}}
	for _, j := range c.jobs {
		if j.Grant != nil {
			c.target[j.Job.ID] = j.Grant
		}
	}
	for _, g := range d.Grants {
		c.target[g.Job] = g
		c.free.Take(g.Slots)
	}
	random := draws{rand.New(rand.NewPCG(m.of.seed, uint64(s.Now)))}
	for _, j := range c.jobs {
		g := c.target[j.Job.ID]
		switch {
		case g == nil:
		case g.With != "" && random.chance(0.2):
			c.separate(g)
			if random.chance(0.5) {
				c.pair(g.Job)
			}
		case g.With == "" && random.chance(0.5):
			c.pair(g.Job)
		}
	}
	out := scheduler.Decision{Wake: d.Wake, Warnings: d.Warnings}
	for _, j := range c.jobs {
		if g := c.target[j.Job.ID]; g != nil {
			out.Grants = append(out.Grants, g)
		}
	}
	return out, nil
}

// pairing is an unfinished decision.
type pairing struct {
	of     *soak
	free   *scheduler.Inventory
	jobs   []*scheduler.JobState
	target map[spec.JobID]*scheduler.Grant
}

// separate stops the job that shares the devices of g.
func (c *pairing) separate(g *scheduler.Grant) {
	other := c.target[g.With]
	c.free.Give(other.Beside(g.Job).Counts())
	c.free.Give(g.Counts())
	delete(c.target, other.Job)
	alone := g.Beside("")
	c.free.Take(alone.Counts())
	c.target[g.Job] = alone
}

// pair makes the first waiting job that can share devices with a job do so.
func (c *pairing) pair(with spec.JobID) {
	g := c.target[with]
	var job *spec.Job
	for _, j := range c.jobs {
		if j.Job.ID == with {
			job = j.Job
		}
	}
	for _, j := range c.jobs {
		o := j.Job
		if c.target[o.ID] != nil || o.Devices != g.Devices() || o.Plan != g.Plan || c.of.keeps[job.Model.Name+o.Model.Name] == 0 || c.of.rate(o, g) == 0 ||
			o.Accelerator != "" && o.Accelerator != c.of.accelerator(g) {
			continue
		}
		own, otherGrant := g.Beside(o.ID), g.Beside(with)
		otherGrant.Job, otherGrant.Slots = o.ID, nil
		for _, s := range g.Slots {
			otherGrant.Slots = append(otherGrant.Slots, scheduler.Slot{Node: s.Node, Devices: s.Devices, Host: o.Host.Times(s.Devices)})
		}
		c.free.Give(g.Counts())
		if c.free.Take(own.Counts()) {
			if c.free.Take(otherGrant.Counts()) {
				c.target[with], c.target[o.ID] = own, otherGrant
				return
			}
			c.free.Give(own.Counts())
		}
		c.free.Take(g.Counts())
	}
}
