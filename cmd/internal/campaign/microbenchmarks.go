package campaign

import (
	"context"
	"time"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/profiler"
	"github.com/pacer-ml/pacer/profiler/runner"
)

// startTimeout is the time for PyTorch to start and for the operations to be loaded, in addition to the measurement.
const startTimeout = 5 * time.Minute

// Microbenchmarks measures the devices of this machine for about that time, each with a number of CPU threads if they are
// CPUs, 0 = 1, and returns notes about them.
func Microbenchmarks(ctx context.Context, o Options, d time.Duration, threads int) (b spec.Microbenchmarks, notes []string, err error) {
	s, err := o.torchSetup(ctx, profiler.Campaign{Name: "machine", Point: profiler.PointOptions{Threads: threads, Timeout: d + startTimeout}})
	if s.close != nil {
		defer s.close()
	}
	if err != nil {
		return b, s.Notes, SetupError(err)
	}
	b, err = s.Runner.(*runner.Torchrun).Microbenchmarks(ctx, d)
	return b, s.Notes, SetupError(err)
}
