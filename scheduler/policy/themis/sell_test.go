package themis

import (
	"testing"
	"time"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/scheduler"
	"github.com/pacer-ml/pacer/scheduler/internal/candidate"
)

// A hidden payment shortens a lease to no less than a tenth, counted from the start of progress.
func TestLeastLease(t *testing.T) {
	const s = time.Second
	for _, c := range []struct {
		part       float64       // of the time until the leases end
		ready      time.Duration // start of progress
		until, end time.Duration // of the account, and of the lease
	}{
		{1, 40 * s, 100 * s, 100 * s},
		{0.5, 40 * s, 75 * s, 75 * s},
		{0.01, 40 * s, 60 * s, 60 * s},
		{0.5, 70 * s, 75 * s, 80 * s},
		{1, 95 * s, 100 * s, 105 * s},
	} {
		j := &scheduler.JobState{Job: &spec.Job{ID: "a"}, Ready: c.ready}
		r := leasing{themis: &themis{lease: 100 * s}, s: &scheduler.Snapshot{Now: 50 * s}, grants: make([]*scheduler.Grant, 1),
			ledger: &ledger{end: 100 * s, accounts: map[spec.JobID]account{}}}
		r.lend(&contender{state: j, candidates: &candidate.Set{}}, &scheduler.Grant{Job: "a"}, c.part)
		if until, end := r.ledger.accounts["a"].until, r.leasedUntil(j); until != c.until || end != c.end {
			t.Errorf("part %g, progress from %v: paid until %v, leased until %v; want %v and %v", c.part, c.ready, until, end, c.until, c.end)
		}
	}
}
