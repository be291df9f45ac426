package study

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/scheduler"
	"github.com/pacer-ml/pacer/scheduler/report"
	"github.com/pacer-ml/pacer/scheduler/sim"
)

// Candidate is a configuration of a job that a policy may grant. Plan, Shape and number
// of devices of the grant matter, but not the nodes.
type Candidate struct {
	Grant scheduler.Grant
	Group *spec.NodeGroup
}

// Candidates returns all configurations that a job may run in. If one is missing, the
// bounds are not valid.
type Candidates func(*spec.Job) []Candidate

// AsRequested returns the candidates for a truth that runs jobs on their requested
// devices only, on each type with the same speed on all nodes.
func AsRequested(cl spec.Cluster) Candidates {
	return func(j *spec.Job) (out []Candidate) {
		for i := range cl.Groups {
			if g := &cl.Groups[i]; j.Accepts(g) && j.Devices <= g.Count*g.Devices {
				out = append(out, Candidate{scheduler.Grant{
					Job: j.ID, Plan: j.Plan, Shape: spec.Packed(j.Devices, g.Devices), Slots: []scheduler.Slot{{Devices: j.Devices}},
				}, g})
			}
		}
		return out
	}
}

// Listed returns the candidates for a truth that runs jobs in the listed configurations
// only.
func Listed(cl spec.Cluster, configs []spec.Config) Candidates {
	byModel := map[string][]Candidate{}
	for i := range cl.Groups {
		g := &cl.Groups[i]
		for _, c := range configs {
			if c.Accelerator.Name == g.Accelerator.Name && c.Shape.Total() <= g.Count*g.Devices {
				byModel[c.Model.Name] = append(byModel[c.Model.Name], Candidate{scheduler.Grant{
					Plan: c.Plan, Shape: c.Shape, Slots: []scheduler.Slot{{Devices: c.Shape.Total()}},
				}, g})
			}
		}
	}
	return func(j *spec.Job) []Candidate {
		var out []Candidate
		for _, c := range byModel[j.Model.Name] {
			if j.Accepts(c.Group) && c.Grant.Plan.GlobalBatch() == j.Batch() {
				out = append(out, c)
			}
		}
		return out
	}
}

// ParamServer returns the candidates for a truth that runs jobs with parameter servers
// in the listed numbers of replicas and servers only, at the same speed on all nodes.
func ParamServer(cl spec.Cluster, configs []spec.Config) Candidates {
	return func(j *spec.Job) (out []Candidate) {
		for i := range cl.Groups {
			g := &cl.Groups[i]
			for _, c := range configs {
				replicas := c.Plan.Normal().DP
				if c.Model.Name != j.Model.Name || c.Accelerator.Name != g.Accelerator.Name || !j.Accepts(g) {
					continue
				}
				slot := scheduler.Slot{Workers: replicas}
				if !j.OnCPUs() {
					slot = scheduler.Slot{Devices: replicas}
				}
				if slot.Devices <= g.Count*g.Devices {
					out = append(out, Candidate{scheduler.Grant{Job: j.ID, Plan: j.ParamServerPlan(replicas, c.Plan.ParamServers), Slots: []scheduler.Slot{slot}}, g})
				}
			}
		}
		return out
	}
}

// rounding is the resolution of completions, by which one may be early.
const rounding = time.Nanosecond

// needOf returns the need of j. With s steps, candidates of n devices and v steps/s on
// the fastest node, and the cost c of a first start, it is
//
//	alone = c + s / max(v)        area = c * min(n) + s * min(n/v)
//
// less rounding: the job pays c at least once, and each step takes n/v device-seconds of
// some candidate. Candidates that the truth does not cover cannot be granted.
func needOf(ctx context.Context, j *spec.Job, candidates []Candidate, c *sim.Config) (Need, error) {
	steps, err := c.Truth.Steps(ctx, j)
	if err != nil {
		return Need{}, err
	}
	speed := 1.0
	if c.Speeds != nil {
		speed = c.Speeds.Fastest(c.Cluster.Nodes())
	}
	fewest, perStep, fastest := math.Inf(1), math.Inf(1), 0.0
	for i := range candidates {
		rate, err := c.Truth.StepsPerSec(ctx, j, &candidates[i].Grant, candidates[i].Group)
		if err != nil || !(rate > 0) {
			continue
		}
		rate *= speed
		n := float64(candidates[i].Grant.Devices())
		fewest, perStep, fastest = min(fewest, n), min(perStep, n/rate), max(fastest, rate)
	}
	if fastest == 0 {
		return Need{}, fmt.Errorf("study: job %s (%s) has no configuration with a known speed", j.ID, j.Model.Name)
	}
	cost := 0.0
	if c.Costs != nil {
		cost = max(c.Costs.Start(sim.Start{Job: j}), 0).Seconds()
	}
	early := rounding.Seconds()
	return Need{
		SubmitSec: j.Submit.Seconds(),
		AloneSec:  max(cost+steps/fastest-early, 0),
		AreaSec:   max(cost*fewest+steps*perStep-early*fewest, 0),
	}, nil
}

// boundsOf returns the bounds on the figures of a run, over the jobs that count and
// finished, from the first submission of a job that counts. Runs in which jobs shared
// devices have no bounds, since two jobs may make more progress on a device than one.
func boundsOf(ctx context.Context, c *sim.Config, r *sim.Result, score report.Score, candidates Candidates) (Bounds, error) {
	if candidates == nil || r.Shared {
		return NoBounds(), nil
	}
	var needs []Need
	first := math.Inf(1)
	for i := range r.Jobs {
		j := &r.Jobs[i]
		if !score.Has(j.Job.ID) {
			continue
		}
		first = min(first, j.Job.Submit.Seconds())
		if !j.Finished || j.Rejected != "" {
			continue
		}
		need, err := needOf(ctx, &j.Job, candidates(&j.Job), c)
		if err != nil {
			return NoBounds(), err
		}
		needs = append(needs, need)
	}
	return LowerBounds(needs, c.Cluster.Devices(), first), nil
}
