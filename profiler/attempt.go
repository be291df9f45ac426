package profiler

import (
	"context"
	"fmt"

	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// Journal is an optional interface of Sinks, found by type assertion. It records which point is being measured,
// so that a crash can be attributed to it. *store.DB is one.
type Journal interface {
	// Begin records durably that a run starts to measure a point. before is the number of times in a row that
	// the run began this point, without beginning another one or calling End.
	Begin(run, point string) (before int, err error)
	// End deletes the record of the run.
	End(run string) error
}

// maxAttempts is the number of times in a row that a point may crash pacer or the machine. The same rows lead to the
// same point, so without a limit the run would measure it again forever. A session may also be killed for other
// reasons; three times at one point is unlikely.
const maxAttempts = 3

// attempt measures a point. If maxAttempts sessions in a row were killed at this point, it fails without being
// measured.
func (r *run) attempt(ctx context.Context, c spec.Config) (spec.Measurement, error) {
	if j := r.sinkJournal(); j != nil {
		before, err := j.Begin(r.runName(), r.identity(c).String())
		if err != nil {
			return spec.Measurement{}, err
		}
		if before >= maxAttempts {
			return spec.Measurement{Outcome: spec.Failed,
				Reason: fmt.Sprintf("pacer or the machine went down while it was measured, %d times in a row", before)}, nil
		}
	}
	return r.o.Runner.Run(ctx, c)
}

// finish records that the session ended without a crash, regardless of the outcome of its last point.
func (r *run) finish() error {
	if j := r.sinkJournal(); j != nil {
		return j.End(r.runName())
	}
	return nil
}

// sinkJournal returns the Journal of the run, nil if there is none. Simulated points and those on a cluster need none,
// since they cannot crash this process.
func (r *run) sinkJournal() Journal {
	j, ok := r.o.Sink.(Journal)
	if !ok || r.simulated() || r.onCluster() {
		return nil
	}
	return j
}

// runName returns "campaign/NAME#LABEL".
func (r *run) runName() string { return r.c.Source() + "#" + r.label }
