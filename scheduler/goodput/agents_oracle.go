package goodput

import (
	"context"
	"fmt"

	"github.com/pacer-ml/pacer/perfmodel"
	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/planner"
	"github.com/pacer-ml/pacer/scheduler"
)

// agentOracle is the belief about agents.
type agentOracle struct{ agents *Agents }

// mostReplicas is the most devices that agents go up to.
const mostReplicas = 64

// Goodput implements scheduler.Elastic. A job is believed to run on at most twice as
// many devices as it has been seen on of any type. On a type it has not seen, it
// is as on the first that it has, times how much faster one device is at the
// largest micro-batch; one that has seen none can be tried on single devices.
func (o agentOracle) Goodput(_ context.Context, j *scheduler.JobState, group *spec.NodeGroup, shape spec.Shape) (spec.Plan, float64, error) {
	a, err := o.agents.of(j.Job)
	if err != nil {
		return spec.Plan{}, 0, err
	}
	_, s, err := a.tables.lookup(j.Job.Model.Name, group.Accelerator.Name)
	if err != nil {
		return spec.Plan{}, 0, err
	}
	devices := shape.Total()
	if most := o.agents.mostDevices(a); devices > most {
		return spec.Plan{}, 0, fmt.Errorf("goodput: job %s is not tried on more than %d devices yet, not %d: %w", j.Job.ID, most, devices, errNotCovered)
	}
	from, base := o.agents.base(a, s)
	if from == nil {
		return spec.Plan{DP: 1, MicroBatch: s.least}.Normal(), 0, nil
	}
	r := batchRange{nodes: shape.Nodes(), replicas: devices, least: from.speeds.least, most: a.tables.mostLocal(a.app.name, from.speeds), upTo: a.app.largest()}
	if o.agents.rules.MaxBatch != nil {
		r.upTo = o.agents.rules.MaxBatch(j.Job, r.upTo)
	}
	ratio := 1.0
	if from.speeds != s {
		r.nodes, ratio = ceil(devices, base.Devices), s.alone()/from.speeds.alone()
	}
	micro, accum, goodput := a.best(from.model, r)
	if !(goodput > 0) {
		return spec.Plan{}, 0, fmt.Errorf("goodput: %s: no batch up to %d can be trained on %d devices: %w", s.what, r.upTo, devices, errNotCovered)
	}
	plan := spec.Plan{DP: devices, MicroBatch: micro, AccumSteps: accum, Precision: j.Job.Plan.Precision}
	return plan.Normal(), ratio * goodput / (a.course.gains[a.course.epoch(j.Done)] * a.tables.slowdown(a.app.name)), nil
}

// mostDevices returns on how many devices a job may be tried.
func (a *Agents) mostDevices(j *agent) (most int) {
	for i := range a.cluster.Groups {
		_, s, err := a.truth.tables.lookup(j.app.name, a.cluster.Groups[i].Accelerator.Name)
		if err != nil {
			continue
		}
		seen := 0
		if e := j.types[s.accelerator]; e != nil {
			for _, step := range e.steps {
				seen = max(seen, step.Replicas)
			}
		}
		may := min(max(2*seen, 1), mostReplicas, j.app.largest()/s.least)
		if l := j.tables.limit(j.app.name, s); l.Devices > 0 {
			may = min(may, l.Devices)
		}
		most = max(most, may)
	}
	return most
}

// base returns what a job has seen of the devices of s, or of the first type of the
// cluster that it has seen, and nodes of that type; nil where it has seen none.
func (a *Agents) base(j *agent, s *speeds) (*experience, *spec.NodeGroup) {
	if e := j.types[s.accelerator]; e != nil {
		return e, nil
	}
	for i := range a.cluster.Groups {
		if e := j.types[a.cluster.Groups[i].Accelerator.Name]; e != nil {
			return e, &a.cluster.Groups[i]
		}
	}
	return nil, nil
}

// alone returns the samples a second of one device: most samples of a step over the
// longest step.
func (s *speeds) alone() float64 {
	p := s.placement(spec.NewShape(1))
	if p == nil {
		return 1
	}
	longest := 0.0
	for _, t := range p.times {
		longest = max(longest, t.step)
	}
	return p.local[len(p.local)-1] / longest
}

// errNotLearnt is what is known of configurations.
var errNotLearnt = fmt.Errorf("goodput: agents know what they have seen alone: %w", perfmodel.ErrNotCovered)

// Predict, Best, Curve and Rank return an error: only Goodput has answers, job by job.
func (agentOracle) Predict(context.Context, spec.Config) (spec.Prediction, error) {
	return spec.Prediction{}, errNotLearnt
}
func (agentOracle) Best(context.Context, planner.Request) (planner.Choice, error) {
	return planner.Choice{}, errNotLearnt
}
func (agentOracle) Curve(context.Context, planner.Request) (planner.Curve, error) {
	return planner.Curve{}, errNotLearnt
}
func (agentOracle) Rank(context.Context, planner.Request) (planner.Ranking, error) {
	return planner.Ranking{}, errNotLearnt
}
