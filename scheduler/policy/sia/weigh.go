package sia

import (
	"context"
	"fmt"
	"slices"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/scheduler"
	"github.com/pacer-ml/pacer/scheduler/internal/candidate"
)

// Weigher is a policy with an objective that it can evaluate for the decisions of other
// schedulers.
type Weigher interface {
	scheduler.Policy
	// Weigh returns the objective of the policy's own decision and that of given, with
	// grants for given. A job that is not in given gets nothing.
	Weigh(ctx context.Context, s *scheduler.Snapshot, given map[spec.JobID]Given) (Weighed, error)
}

// Given is the configuration that another scheduler gave a job.
type Given struct {
	Group, Devices int
}

// Weighed compares a decision with one that was given.
type Weighed struct {
	Own, Given float64 // objectives; lower is better
	Impossible string  // why the policy could not choose the given decision, "" if it could
	Decision   scheduler.Decision
}

// Weigh implements Weigher.
func (p *sia) Weigh(ctx context.Context, s *scheduler.Snapshot, given map[spec.JobID]Given) (w Weighed, err error) {
	c, err := p.program(ctx, s)
	if err != nil {
		return w, err
	}
	own, err := Choose(ctx, c.rows, p.wait, c.room(), nil)
	if err != nil {
		return w, fmt.Errorf("policy: sia: %w", err)
	}
	w.Own = c.cost(own.Picks, p.wait)
	picks := make([]int, len(c.rows))
	for i, r := range c.rows {
		if picks[i], err = r.pickOf(given, s.Cluster); err != nil && w.Impossible == "" {
			w.Impossible = err.Error()
		}
	}
	w.Given = c.cost(picks, p.wait)
	w.Decision = c.place(picks)
	for i, r := range c.rows {
		if picks[i] >= 0 && (r.Granted == nil || r.Granted.Devices() != r.Cells[picks[i]].Devices) && w.Impossible == "" {
			w.Impossible = fmt.Sprintf("job %s: no room for %s", r.Job.ID, spec.Count(r.Cells[picks[i]].Devices, "device"))
		}
	}
	for _, r := range c.stuck {
		if g := given[r.Job.ID]; w.Impossible == "" && (g.Group != r.Cells[0].Group || g.Devices != r.Cells[0].Devices) {
			w.Impossible = fmt.Sprintf("job %s: is starting and keeps its devices", r.Job.ID)
		}
	}
	w.Decision.Wake = s.Now + p.interval
	return w, nil
}

// cost returns the sum of costs of picks.
func (c *program) cost(picks []int, wait float64) (sum float64) {
	for i, pick := range picks {
		if pick < 0 {
			sum += wait
		} else {
			sum += c.rows[i].Costs[pick]
		}
	}
	return sum
}

// pickOf returns the configuration given to r, -1 = none. If r does not have it, pickOf
// adds it, unless it exceeds the group, and returns an error.
func (r *Row) pickOf(given map[spec.JobID]Given, cl spec.Cluster) (int, error) {
	g, ok := given[r.Job.ID]
	if !ok {
		return -1, nil
	}
	if i := slices.IndexFunc(r.Cells, func(c Cell) bool { return c.Group == g.Group && c.Devices == g.Devices }); i >= 0 {
		return i, nil
	}
	none := fmt.Errorf("job %s: %d %s is none of its configurations", r.Job.ID, g.Devices, cl.Groups[g.Group].Accelerator.Name)
	if in := &cl.Groups[g.Group]; g.Devices > in.Count*in.Devices {
		return -1, none
	}
	o := candidate.Config{Group: g.Group, Plan: spec.Plan{DP: g.Devices}.Normal(), Shape: spec.Packed(g.Devices, cl.Groups[g.Group].Devices), Devices: g.Devices}
	elastic := len(r.Cells) > 0 && r.Cells[0].Elastic
	r.Cells = append(r.Cells, Cell{Group: g.Group, Devices: g.Devices, Options: []candidate.Config{o}, Elastic: elastic})
	r.Costs = append(r.Costs, 0)
	return len(r.Cells) - 1, none
}
