package study

import (
	"context"
	"strconv"
	"sync"
	"time"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/scheduler/sim"
)

// references are the completions of guaranteed jobs in the runs that guarantees are judged by. Runs of
// different policies with equal settings, jobs and seed share one.
type references struct {
	mu    sync.Mutex
	byKey map[string]func() map[spec.JobID]time.Duration
}

// ends returns the completions of the reference run of s, nil without one. A reference that
// cannot run the workload has none.
func (r *references) ends(ctx context.Context, s Setup, sc Scenario) (map[spec.JobID]time.Duration, error) {
	if s.Reference == nil {
		return nil, nil
	}
	config, ok := s.Reference(ctx)
	if !ok {
		return nil, nil
	}
	config.Jobs, config.Truth = s.Config.Jobs, sc.Truth(config.Truth)
	key, err := keyOf(config.Cluster, config.Jobs, append([]string{strconv.FormatUint(sc.Seed, 10)}, s.Identity...))
	if err != nil {
		return nil, err
	}
	run := r.run(key, func() map[spec.JobID]time.Duration {
		result, err := sim.Run(ctx, config)
		if err != nil {
			return nil
		}
		return result.GuaranteedEnds()
	})
	return run(), ctx.Err()
}

// run returns the function of a key, which calls simulate once.
func (r *references) run(key string, simulate func() map[spec.JobID]time.Duration) func() map[spec.JobID]time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.byKey == nil {
		r.byKey = map[string]func() map[spec.JobID]time.Duration{}
	}
	if r.byKey[key] == nil {
		r.byKey[key] = sync.OnceValue(simulate)
	}
	return r.byKey[key]
}
