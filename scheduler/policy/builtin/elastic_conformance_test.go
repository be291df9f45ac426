package builtin_test

import (
	"context"
	"testing"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/scheduler"
	"github.com/pacer-ml/pacer/scheduler/policy"
	"github.com/pacer-ml/pacer/scheduler/policy/builtin"
	"github.com/pacer-ml/pacer/scheduler/schedulertest"
)

// elasticOracle makes an oracle Elastic: all jobs choose their batch.
type elasticOracle struct{ scheduler.Oracle }

func (o elasticOracle) Goodput(ctx context.Context, j *scheduler.JobState, g *spec.NodeGroup, shape spec.Shape) (spec.Plan, float64, error) {
	plan := schedulertest.OnePlan(shape.Total()) // the only one in a World
	p, err := o.Predict(ctx, spec.Config{Model: j.Job.Model, Plan: plan, Accelerator: g.Accelerator, Shape: shape})
	return plan, p.Throughput / float64(plan.GlobalBatch()), err
}

// Policies with special rules for jobs that choose their batch conform with such jobs only.
func TestElasticConformance(t *testing.T) {
	for _, name := range []string{"pacer", "pollux", "sia"} {
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
