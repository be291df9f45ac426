package experiment

import (
	"context"
	"slices"
	"time"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/scheduler/policy"
	"github.com/pacer-ml/pacer/scheduler/sim"
)

// backfillPolicy is the reference of guarantees.
const backfillPolicy = "fifo-backfill"

// backfillRun returns the run of the reference of guarantees: the same simulation under
// fifo-backfill. It returns false if no job is guaranteed, or if there is no such run:
// recorded decisions are imposed, or the semantics have no such policy.
func (s *Simulation) backfillRun(ctx context.Context) (sim.Config, bool) {
	spec := policy.Spec{Name: backfillPolicy}
	if s.replay != nil || !slices.ContainsFunc(s.Jobs, isGuaranteed) || s.composition.supports([]policy.Spec{spec}) != nil {
		return sim.Config{}, false
	}
	r := Run{s, spec, backfillPolicy, s.belief}
	config, err := r.Config(ctx)
	return config, err == nil
}

func isGuaranteed(j spec.Job) bool { return j.Guaranteed }

// backfillEnds returns the completions of guaranteed jobs in the reference run, nil without one. A reference
// that cannot run the workload leaves lateness unknown, as that of its own row.
func (s *Simulation) backfillEnds(ctx context.Context) map[spec.JobID]time.Duration {
	if config, ok := s.backfillRun(ctx); ok {
		if r, err := sim.Run(ctx, config); err == nil {
			return r.GuaranteedEnds()
		}
	}
	return nil
}
