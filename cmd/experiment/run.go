package experiment

import (
	"context"
	"slices"

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
	// Done is called after each run.
	Done func(context.Context, sim.Config, *sim.Result)
	// Replayed is called after a run with recorded decisions.
	Replayed func(replay.Report)
}

// Run simulates the policies one after another. If one fails or ctx ends, it returns the
// results so far with the error.
func (s *Simulation) Run(ctx context.Context, h Hooks) (done []*sim.Result, err error) {
	for _, r := range s.Runs() {
		config, err := r.Config(ctx)
		if err != nil {
			return done, err
		}
		if h.Observe != nil {
			config.Observe = h.Observe(config)
		}
		config.Finished = h.Finished
		if h.Explain != nil {
			config.Explain = h.Explain.Explain(config.PolicyName)
		}
		result, err := sim.Run(ctx, config)
		if err != nil {
			return done, err
		}
		result.Warnings = slices.Concat(s.Notes, result.Warnings)
		if p, ok := config.Policy.(*replay.Policy); ok && h.Replayed != nil {
			h.Replayed(p.Report())
		}
		if h.Done != nil {
			h.Done(ctx, config, result)
		}
		done = append(done, result)
	}
	return done, nil
}
