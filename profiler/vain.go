package profiler

import (
	"fmt"
	"regexp"

	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// vainPoints is how many points of a session must fail alike, before any other
// outcome, for the machine to be at fault and not the points.
const vainPoints = 5

// vain returns an error when nothing but one failure came of the run so far: it
// looks once, after the first points of a session, so that a run that is
// started again tries again.
func (r *run) vain() error {
	if len(r.rows)-r.resumed != vainPoints || r.played() {
		return nil
	}
	last := r.rows[len(r.rows)-1]
	for i, m := range r.rows {
		if m.Outcome != spec.Failed || i >= r.resumed && gist(m.Reason) != gist(last.Reason) {
			return nil
		}
	}
	return fmt.Errorf("profiler: campaign %s, run %s: %d points were tried and all failed alike (%s): mend that and run it again: %w",
		r.c.Name, r.label, vainPoints, last.Reason, ErrSetup)
}

// numbers are what differs between reports of one failure: process ids, ports,
// addresses, sizes.
var numbers = regexp.MustCompile(`0x[0-9a-fA-F]+|[0-9]+`)

// gist returns a reason without its numbers.
func gist(reason string) string { return numbers.ReplaceAllString(reason, "#") }
