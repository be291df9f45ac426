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

// Choice is a way to run a job that a policy may grant: Plan and Shape of the
// grant matter, and how many devices, but not which.
type Choice struct {
	Grant scheduler.Grant
	Group *spec.NodeGroup
}

// Choices lists every way a job may run. Without all of them what follows
// would be no bound.
type Choices func(*spec.Job) []Choice

// AsRequested are the choices of a truth that knows jobs at the devices they ask
// for alone, on each type with the same speed wherever they are.
func AsRequested(cl spec.Cluster) Choices {
	return func(j *spec.Job) (out []Choice) {
		for i := range cl.Groups {
			if g := &cl.Groups[i]; mayUse(j, g) && j.Devices <= g.Count*g.Devices {
				out = append(out, Choice{scheduler.Grant{
					Job: j.ID, Plan: j.Plan, Shape: spec.Packed(j.Devices, g.Devices), Slots: []scheduler.Slot{{Devices: j.Devices}},
				}, g})
			}
		}
		return out
	}
}

// Listed are the choices of a truth that lets jobs run in the listed
// configurations alone.
func Listed(cl spec.Cluster, configs []spec.Config) Choices {
	byModel := map[string][]Choice{}
	for i := range cl.Groups {
		g := &cl.Groups[i]
		for _, c := range configs {
			if c.Accelerator.Name == g.Accelerator.Name && c.Shape.Total() <= g.Count*g.Devices {
				byModel[c.Model.Name] = append(byModel[c.Model.Name], Choice{scheduler.Grant{
					Plan: c.Plan, Shape: c.Shape, Slots: []scheduler.Slot{{Devices: c.Shape.Total()}},
				}, g})
			}
		}
	}
	return func(j *spec.Job) []Choice {
		var out []Choice
		for _, c := range byModel[j.Model.Name] {
			if mayUse(j, c.Group) && c.Grant.Plan.GlobalBatch() == j.Batch() {
				out = append(out, c)
			}
		}
		return out
	}
}

// Served are the choices of a truth that lets jobs with parameter servers run with the
// listed numbers of replicas and servers alone, wherever they are.
func Served(cl spec.Cluster, configs []spec.Config) Choices {
	return func(j *spec.Job) (out []Choice) {
		for i := range cl.Groups {
			g := &cl.Groups[i]
			for _, c := range configs {
				replicas := c.Plan.Normal().DP
				if c.Model.Name != j.Model.Name || c.Accelerator.Name != g.Accelerator.Name || !mayUse(j, g) {
					continue
				}
				slot := scheduler.Slot{Workers: replicas}
				if !j.OnCPUs() {
					slot = scheduler.Slot{Devices: replicas}
				}
				if slot.Devices <= g.Count*g.Devices {
					out = append(out, Choice{scheduler.Grant{Job: j.ID, Plan: j.ParamServerPlan(replicas, c.Plan.ParamServers), Slots: []scheduler.Slot{slot}}, g})
				}
			}
		}
		return out
	}
}

// rounding is what a completion may be early by: the engine rounds to it.
const rounding = time.Nanosecond

// needOf returns the least that j can do with. With steps s, and choices of n
// devices and v steps/s on the fastest node, the cost c of a first start is paid
// once at least, and each step takes n/v device-seconds of one of the choices:
//
//	alone = c + s / max(v)        area = c * min(n) + s * min(n/v)
//
// less what the engine rounds. Choices the truth does not answer for cannot be
// granted.
func needOf(ctx context.Context, j *spec.Job, choices []Choice, c *sim.Config) (Need, error) {
	steps, err := c.Truth.Steps(ctx, j)
	if err != nil {
		return Need{}, err
	}
	speed := 1.0
	if c.Speeds != nil {
		speed = c.Speeds.Fastest(c.Cluster.Nodes())
	}
	fewest, perStep, fastest := math.Inf(1), math.Inf(1), 0.0
	for i := range choices {
		rate, err := c.Truth.StepsPerSec(ctx, j, &choices[i].Grant, choices[i].Group)
		if err != nil || !(rate > 0) {
			continue
		}
		rate *= speed
		n := float64(choices[i].Grant.Devices())
		fewest, perStep, fastest = min(fewest, n), min(perStep, n/rate), max(fastest, rate)
	}
	if fastest == 0 {
		return Need{}, fmt.Errorf("study: nothing is known of how job %s (%s) may run", j.ID, j.Model.Name)
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

// boundsOf returns the bounds on the figures of a run: of the jobs that count
// and finished, from the first submission of those that count. There are none on
// jobs that shared devices: two may make more on them than one.
func boundsOf(ctx context.Context, c *sim.Config, r *sim.Result, score report.Score, choices Choices) (Bounds, error) {
	if choices == nil || r.Shared {
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
		need, err := needOf(ctx, &j.Job, choices(&j.Job), c)
		if err != nil {
			return NoBounds(), err
		}
		needs = append(needs, need)
	}
	return LowerBounds(needs, c.Cluster.Devices(), first), nil
}
