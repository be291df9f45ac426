package sim

import (
	"context"
	"time"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/scheduler"
)

// TimeAlone adds to every record the run time of its job alone, at its requested devices
// and plan, packed on as few nodes as possible, without waits and start costs. It
// also adds the number of devices the job may use, and when it would complete if it
// started at its submission. With several types of devices the
// speed is their mean, weighted by the number of devices. A job that the truth does
// not cover stays unknown. c is the Config of the run. Call it after the run, since
// the truth counts look-ups.
func (r *Result) TimeAlone(ctx context.Context, c Config) {
	a := aloneTimer{Config: c, shapes: map[[2]int]spec.Shape{}}
	for i := range r.Jobs {
		j := &r.Jobs[i]
		if j.Alone, j.Usable = a.time(ctx, &j.Job); j.Alone > 0 {
			j.AsSubmitted = j.Job.Submit + a.start(&j.Job) + j.Alone
		}
	}
}

// aloneTimer caches shapes by requested devices and devices of a node.
type aloneTimer struct {
	Config
	shapes map[[2]int]spec.Shape
}

// time returns the run time of j alone, 0 if unknown, and the devices of the groups
// it may use.
func (a *aloneTimer) time(ctx context.Context, j *spec.Job) (alone time.Duration, usable int) {
	var known int
	var speed float64 // sum over known devices, steps/s
	for i := range a.Cluster.Groups {
		g := &a.Cluster.Groups[i]
		if !j.Accepts(g) {
			continue
		}
		usable += g.Count * g.Devices
		if rate := a.rate(ctx, j, g); rate > 0 {
			known += g.Count * g.Devices
			speed += rate * float64(g.Count*g.Devices)
		}
	}
	if known == 0 {
		return 0, usable
	}
	steps, err := a.Truth.Steps(ctx, j)
	if err != nil || !finitePositive(steps) {
		return 0, usable
	}
	return seconds(steps * float64(known) / speed), usable
}

// start returns the cost of the first start of j.
func (a *aloneTimer) start(j *spec.Job) time.Duration {
	if a.Costs == nil {
		return 0
	}
	return max(a.Costs.Start(Start{Job: j}), 0)
}

// rate returns the steps/s of j in a group, 0 if it does not fit or is unknown.
func (a *aloneTimer) rate(ctx context.Context, j *spec.Job, g *spec.NodeGroup) float64 {
	if j.Devices < 1 || j.Devices > g.MostDevices(j.Host) {
		return 0
	}
	key := [2]int{j.Devices, g.Room(j.Host)}
	shape, ok := a.shapes[key]
	if !ok {
		shape = spec.Packed(key[0], key[1])
		a.shapes[key] = shape
	}
	rate, err := a.Truth.StepsPerSec(ctx, j, &scheduler.Grant{
		Job: j.ID, Plan: j.Plan, Shape: shape, Slots: []scheduler.Slot{{Devices: j.Devices}},
	}, g)
	if err != nil || !finitePositive(rate) {
		return 0
	}
	return rate
}
