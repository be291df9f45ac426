package policy

import (
	"context"
	"fmt"
	"slices"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/scheduler"
)

// Weigher is a policy that minimises something, and can say what it is for
// decisions of others.
type Weigher interface {
	scheduler.Policy
	// Weigh returns the least that the policy finds, what it is for what is given to
	// jobs instead, and grants of that. A job that is not named gets nothing.
	Weigh(ctx context.Context, s *scheduler.Snapshot, given map[spec.JobID]Given) (Weighed, error)
}

// Given is what somebody else gave to a job.
type Given struct {
	Group, Devices int
}

// Weighed compares a decision with one that was given.
type Weighed struct {
	Own, Given float64 // objectives: less is better
	Impossible string  // why what was given is nothing that the policy could choose, "" if it is
	Decision   scheduler.Decision
}

// Weigh implements Weigher.
func (p *sia) Weigh(ctx context.Context, s *scheduler.Snapshot, given map[spec.JobID]Given) (w Weighed, err error) {
	c, err := p.consider(ctx, s)
	if err != nil {
		return w, err
	}
	own, _, err := chooseCells(ctx, c.rows, p.wait, c.room())
	if err != nil {
		return w, fmt.Errorf("policy: sia: %w", err)
	}
	w.Own = c.cost(own, p.wait)
	picks := make([]int, len(c.rows))
	for i, r := range c.rows {
		if picks[i], err = r.pickOf(given, s.Cluster); err != nil && w.Impossible == "" {
			w.Impossible = err.Error()
		}
	}
	w.Given = c.cost(picks, p.wait)
	w.Decision = c.place(picks)
	for i, r := range c.rows {
		if picks[i] >= 0 && (r.grant == nil || r.grant.Devices() != r.cells[picks[i]].devices) && w.Impossible == "" {
			w.Impossible = fmt.Sprintf("job %s: there is no room for %s", r.Job.ID, spec.Count(r.cells[picks[i]].devices, "device"))
		}
	}
	for _, r := range c.stuck {
		if g := given[r.Job.ID]; w.Impossible == "" && (g.Group != r.cells[0].group || g.Devices != r.cells[0].devices) {
			w.Impossible = fmt.Sprintf("job %s: starts just now and keeps what it has", r.Job.ID)
		}
	}
	w.Decision.Wake = s.Now + p.interval
	return w, nil
}

// cost returns what picks cost.
func (c *siaChoice) cost(picks []int, wait float64) (sum float64) {
	for i, pick := range picks {
		if pick < 0 {
			sum += wait
		} else {
			sum += c.rows[i].costs[pick]
		}
	}
	return sum
}

// pickOf returns the configuration that r was given, -1 for none. One that r does
// not have is added, unless it is more than there is, and an error.
func (r *siaRow) pickOf(given map[spec.JobID]Given, cl spec.Cluster) (int, error) {
	g, ok := given[r.Job.ID]
	if !ok {
		return -1, nil
	}
	if i := slices.IndexFunc(r.cells, func(c siaCell) bool { return c.group == g.Group && c.devices == g.Devices }); i >= 0 {
		return i, nil
	}
	none := fmt.Errorf("job %s: %d %s is none of its configurations", r.Job.ID, g.Devices, cl.Groups[g.Group].Accelerator.Name)
	if in := &cl.Groups[g.Group]; g.Devices > in.Count*in.Devices {
		return -1, none
	}
	o := option{group: g.Group, plan: spec.Plan{DP: g.Devices}.Normal(), shape: spec.Packed(g.Devices, cl.Groups[g.Group].Devices), devices: g.Devices}
	elastic := len(r.cells) > 0 && r.cells[0].elastic
	r.cells = append(r.cells, siaCell{group: g.Group, devices: g.Devices, options: []option{o}, elastic: elastic})
	r.costs = append(r.costs, 0)
	return len(r.cells) - 1, none
}
