package builtin_test

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/pacer-ml/pacer/perfmodel"
	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/planner"
	"github.com/pacer-ml/pacer/scheduler"
	"github.com/pacer-ml/pacer/scheduler/policy"
	"github.com/pacer-ml/pacer/scheduler/policy/builtin"
	"github.com/pacer-ml/pacer/scheduler/schedulertest"
)

// elasticOracle makes an oracle Elastic: all jobs choose their batch.
type elasticOracle struct{ scheduler.Oracle }

func (o elasticOracle) Goodput(ctx context.Context, j *scheduler.JobState, g *spec.NodeGroup, shape spec.Shape) (spec.Plan, float64, error) {
	r, err := o.Rank(ctx, planner.Request{Model: j.Job.Model, GlobalBatch: j.Job.Batch(), Accelerator: g.Accelerator, Devices: shape.Total(), PerNode: g.Devices})
	if err != nil && !errors.Is(err, planner.ErrInfeasible) && !errors.Is(err, perfmodel.ErrNotCovered) {
		return spec.Plan{}, 0, err
	}
	i := slices.IndexFunc(r.Choices, func(c planner.Choice) bool { return c.Config.Shape == shape })
	if err != nil || i < 0 {
		return spec.Plan{}, 0, perfmodel.ErrNotCovered
	}
	c := &r.Choices[i]
	return c.Config.Plan, c.Prediction.Throughput / float64(c.Config.Plan.GlobalBatch()), nil
}

// Policies with special rules for jobs that choose their batch conform with such jobs only.
func TestElasticConformance(t *testing.T) {
	for _, name := range []string{"pacer", "sia"} {
		t.Run(name, func(t *testing.T) {
			schedulertest.Conformance(t, func(o scheduler.Oracle) (scheduler.Policy, error) {
				d := policy.Deps{Oracle: o}
				if o != nil {
					d.Oracle = elasticOracle{o}
				}
				return builtin.Policies.New(policy.Spec{Name: name}, d)
			})
		})
	}
}
