package profiler

import (
	"fmt"
	"regexp"

	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// earlyAbortPoints is the number of first points of a session that must all fail for the same reason for the
// run to stop.
const earlyAbortPoints = 5

// checkEarlyFailures returns an error if all points so far failed for one reason. It checks once, after the
// first points of a session, so that a restarted run tries again.
func (r *run) checkEarlyFailures() error {
	if len(r.rows)-r.resumed != earlyAbortPoints || r.simulated() {
		return nil
	}
	last := r.rows[len(r.rows)-1]
	for i, m := range r.rows {
		if m.Outcome != spec.Failed || i >= r.resumed && normalizeError(m.Reason) != normalizeError(last.Reason) {
			return nil
		}
	}
	return fmt.Errorf("profiler: campaign %s, run %s: the first %d points all failed for the same reason (%s): fix it and run again: %w",
		r.c.Name, r.label, earlyAbortPoints, last.Reason, ErrSetup)
}

// numbers matches the parts that differ between messages of the same failure: process ids, ports, addresses,
// sizes.
var numbers = regexp.MustCompile(`0x[0-9a-fA-F]+|[0-9]+`)

// normalizeError replaces the numbers in a reason.
func normalizeError(reason string) string { return numbers.ReplaceAllString(reason, "#") }
