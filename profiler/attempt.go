package profiler

import (
	"context"
	"fmt"

	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// Journal is an optional interface of Sinks, found by type assertion: it knows
// after a crash which point was being measured. *store.DB is one.
type Journal interface {
	// Begin notes that a run begins to measure a point; when it returns nil that
	// survives a crash. before is how often in a row the same was noted, with
	// neither another point of the run nor End in between.
	Begin(run, point string) (before int, err error)
	// End forgets what was noted of the run.
	End(run string) error
}

// maxAttempts is how often in a row a point may take pacer or the machine down.
// The same rows choose the same point, so that without a bound it would be
// measured again and again for ever. A session may be killed for reasons of its
// own too; that this happens at one point so often is less likely.
const maxAttempts = 3

// attempt runs a point, unless maxAttempts sessions in a row were killed at it:
// then it has failed.
func (r *run) attempt(ctx context.Context, c spec.Config) (spec.Measurement, error) {
	if j := r.journal(); j != nil {
		before, err := j.Begin(r.title(), r.identity(c).String())
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

// ended notes that the session ends in good order, whatever became of its last
// point.
func (r *run) ended() error {
	if j := r.journal(); j != nil {
		return j.End(r.title())
	}
	return nil
}

// journal returns the Journal of the run, nil if it has or needs none: tables and
// formulas take nothing down.
func (r *run) journal() Journal {
	j, ok := r.o.Sink.(Journal)
	if !ok || r.played() {
		return nil
	}
	return j
}

// title names the run: "campaign/NAME#LABEL".
func (r *run) title() string { return r.c.Source() + "#" + r.label }
