package order

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/scheduler"
	"github.com/pacer-ml/pacer/scheduler/policy"
)

// audit checks the promise of Ranking.Steady at every decision.
type audit struct {
	ranking Ranking
	keys    map[spec.JobID]auditedKey
}

// auditedKey is the key of a job at the last decision.
type auditedKey struct {
	key   float64
	grant *scheduler.Grant
	since time.Duration // JobState.Since
}

// newAudit returns the audit of a policy made of d, nil if none is needed.
func newAudit(d policy.Deps, r Ranking) *audit {
	if !d.Audit || !r.Steady {
		return nil
	}
	return &audit{r, map[spec.JobID]auditedKey{}}
}

// check returns an error if the key of a job changed while it waited, or rose while it held
// devices.
func (a *audit) check(ctx context.Context, s *scheduler.Snapshot) error {
	if a == nil {
		return nil
	}
	for _, j := range s.Jobs() {
		key, err := a.ranking.Key(ctx, s, j)
		if err != nil {
			return err
		}
		id := j.Job.ID
		last, known := a.keys[id]
		a.keys[id] = auditedKey{key, j.Grant, j.Since}
		switch {
		case !known || last.grant != j.Grant || last.since != j.Since || math.IsNaN(key) && math.IsNaN(last.key):
		case j.Grant == nil && key != last.key:
			return fmt.Errorf("order: a Ranking is Steady, and the key of job %s changes from %g to %g while it waits: leave out Steady", id, last.key, key)
		case j.Grant != nil && !(key <= last.key+keyMargin(last.key)):
			return fmt.Errorf("order: a Ranking is Steady, and the key of job %s rises from %g to %g while it holds devices: leave out Steady", id, last.key, key)
		}
	}
	return nil
}
