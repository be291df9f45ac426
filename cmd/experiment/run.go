package experiment

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/scheduler/replay"
	"github.com/pacer-ml/pacer/scheduler/report"
	"github.com/pacer-ml/pacer/scheduler/sim"
)

// Hooks observe runs. A nil hook is left out.
type Hooks struct {
	// Observe returns the receiver of a run's events, nil for none.
	Observe func(sim.Config) func(sim.Event)
	// Explain collects why things happen to the jobs it names.
	Explain *report.Explanations
	// Finished is called after each job that completes.
	Finished func()
	// Done is called after each run, whether it failed or not.
	Done func(*sim.Result)
	// Replayed is called after a run with recorded decisions.
	Replayed func(replay.Report)
}

// Results returns the number of results of Run: of each of Runs, and of the recording that is replayed.
func (s *Simulation) Results() int {
	if s.recorded != nil {
		return len(s.Runs()) + 1
	}
	return len(s.Runs())
}

// Run simulates the policies one after another. With a recording, what happened is the first result.
// If ctx ends, it returns the results so far with the error. A policy that cannot run the workload ends its run: its result has Failed.
// If every run ends so, Run returns the first error. Jobs have their times alone, and
// guaranteed ones their completions under fifo-backfill.
func (s *Simulation) Run(ctx context.Context, h Hooks) (done []*sim.Result, err error) {
	backfill := sync.OnceValue(func() map[spec.JobID]time.Duration { return s.backfillEnds(ctx) })
	var first error
	failed := 0
	if s.recorded != nil {
		live, err := s.recordedRun(ctx)
		if err != nil {
			return nil, err
		}
		live.SetBackfill(backfill())
		if h.Done != nil {
			h.Done(live)
		}
		done = append(done, live)
	}
	for _, r := range s.Runs() {
		config, err := r.Config(ctx)
		if err != nil {
			return done, err
		}
		result, err := s.run(ctx, config, h)
		switch {
		case err == nil:
		case ctx.Err() != nil:
			return done, err
		default:
			result = &sim.Result{Policy: config.PolicyName, Devices: config.Cluster.Devices(), Failed: err.Error()}
			if failed++; first == nil {
				first = err
			}
		}
		switch {
		case result.Failed != "":
		case result.Policy == backfillPolicy:
			result.SetBackfill(result.GuaranteedEnds())
		default:
			result.SetBackfill(backfill())
		}
		if h.Done != nil {
			h.Done(result)
		}
		done = append(done, result)
	}
	if failed == len(s.Runs()) {
		return nil, first
	}
	return done, nil
}

// run simulates one policy.
func (s *Simulation) run(ctx context.Context, config sim.Config, h Hooks) (*sim.Result, error) {
	if h.Observe != nil {
		config.Observe = h.Observe(config)
	}
	config.Finished = h.Finished
	if h.Explain != nil {
		config.Explain = h.Explain.Explain(config.PolicyName)
	}
	result, err := sim.Run(ctx, config)
	if err != nil {
		return nil, err
	}
	result.TimeAlone(ctx, config)
	result.Warnings = slices.Concat(s.Notes, result.Warnings)
	if p, ok := config.Policy.(*replay.Policy); ok && h.Replayed != nil {
		h.Replayed(p.Report())
	}
	return result, nil
}
