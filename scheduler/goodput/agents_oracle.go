package goodput

import (
	"context"
	"fmt"

	"github.com/pacer-ml/pacer/perfmodel"
	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/planner"
	"github.com/pacer-ml/pacer/scheduler"
)

// agentOracle is the oracle of agents.
type agentOracle struct{ agents *Agents }

// maxReplicas bounds the devices of an agent.
const maxReplicas = 64

// Goodput implements scheduler.Elastic. A job may use up to twice the devices it has
// run on, of any type. On a type it has not run on, the estimate is that on the first
// type it has run on, times the ratio of single-device speeds at the largest
// micro-batch. A job that has not run may use one device.
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
	if most := o.agents.maxDevices(a); devices > most {
		return spec.Plan{}, 0, fmt.Errorf("goodput: job %s has %d devices, want at most %d until it has run on more: %w", j.Job.ID, devices, most, errNotCovered)
	}
	from, base := o.agents.base(a, s)
	if from == nil {
		return spec.Plan{DP: 1, MicroBatch: s.minLocal}.Normal(), 0, nil
	}
	r := batchRange{nodes: shape.Nodes(), replicas: devices, minLocal: from.speeds.minLocal, maxLocal: a.tables.maxLocal(a.app.name, from.speeds), maxBatch: a.app.largest()}
	if o.agents.rules.MaxBatch != nil {
		r.maxBatch = o.agents.rules.MaxBatch(j.Job, r.maxBatch)
	}
	ratio := 1.0
	if from.speeds != s {
		r.nodes, ratio = ceil(devices, base.Devices), s.alone()/from.speeds.alone()
	}
	micro, accum, goodput := a.best(from.model, r)
	if !(goodput > 0) {
		return spec.Plan{}, 0, fmt.Errorf("goodput: %s: no batch up to %d can be trained on %d devices: %w", s.what, r.maxBatch, devices, errNotCovered)
	}
	plan := spec.Plan{DP: devices, MicroBatch: micro, AccumSteps: accum, Precision: j.Job.Plan.Precision}
	return plan.Normal(), ratio * goodput / (a.training.gains[a.training.epoch(j.Done)] * a.tables.slowdown(a.app.name)), nil
}

// maxDevices returns the largest number of devices that a job may use.
func (a *Agents) maxDevices(j *agent) (most int) {
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
		may := min(max(2*seen, 1), maxReplicas, j.app.largest()/s.minLocal)
		if l := j.tables.limit(j.app.name, s); l.Devices > 0 {
			may = min(may, l.Devices)
		}
		most = max(most, may)
	}
	return most
}

// base returns a job's observations on the devices of s, or else those on the first
// type of the cluster that it has run on, with the nodes of that type. It returns nil
// if the job has not run.
func (a *Agents) base(j *agent, s *speeds) (*observations, *spec.NodeGroup) {
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

// alone returns the samples per second of one device: the largest number of samples
// over the longest step.
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

// errJobsOnly is the result of queries without a job.
var errJobsOnly = fmt.Errorf("goodput: agents have estimates for single jobs only: %w", perfmodel.ErrNotCovered)

// Predict, Best, Curve and Rank return an error; only Goodput has estimates.
func (agentOracle) Predict(context.Context, spec.Config) (spec.Prediction, error) {
	return spec.Prediction{}, errJobsOnly
}
func (agentOracle) Best(context.Context, planner.Request) (planner.Choice, error) {
	return planner.Choice{}, errJobsOnly
}
func (agentOracle) Curve(context.Context, planner.Request) (planner.Curve, error) {
	return planner.Curve{}, errJobsOnly
}
func (agentOracle) Rank(context.Context, planner.Request) (planner.Ranking, error) {
	return planner.Ranking{}, errJobsOnly
}
