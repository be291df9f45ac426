package blox

import (
	"cmp"
	"strings"
	"time"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/scheduler/sim"
)

// Ticks notices arrivals and completions at the start of the next round.
func Ticks(r *sim.Rules) { r.Seen = sim.NextRound }

// LateEnds completes a job when its completion is noticed.
func LateEnds(r *sim.Rules) {
	r.End = func(_, seen time.Duration) time.Duration { return seen }
}

// Urgent counts the wait of a preempted job from the next round on.
func Urgent(r *sim.Rules) {
	r.WaitFrom = func(now, round time.Duration) time.Duration { return now + round }
}

// NumbersInOrder orders jobs noticed together by the numbers that their IDs end in.
func NumbersInOrder(r *sim.Rules) { r.Ties = byNumber }

// byNumber orders IDs that are or end in whole numbers by these, before all others.
func byNumber(a, b spec.JobID) int {
	x, okA := digits(a)
	y, okB := digits(b)
	switch {
	case okA && okB:
		return cmp.Or(cmp.Compare(len(x), len(y)), cmp.Compare(x, y), cmp.Compare(a, b))
	case okA:
		return -1
	case okB:
		return 1
	}
	return cmp.Compare(a, b)
}

// digits returns the number after the last hyphen of id, or id itself without a hyphen,
// without leading zeros; false if that is not a number.
func digits(id spec.JobID) (spec.JobID, bool) {
	id = id[strings.LastIndexByte(string(id), '-')+1:]
	for i := range len(id) {
		if id[i] < '0' || id[i] > '9' {
			return "", false
		}
	}
	for len(id) > 1 && id[0] == '0' {
		id = id[1:]
	}
	return id, id != ""
}
