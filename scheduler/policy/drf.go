package policy

import (
	"cmp"
	"context"
	"slices"

	"github.com/pacer-ml/pacer/scheduler"
)

func init() {
	register(Info{
		Name:    "drf",
		Doc:     "of jobs with parameter servers, one replica and one server at a time to whom has the least dominant share (Ghodsi et al., DRF, NSDI 2011); resizes",
		Servers: ServesOnly,
		New: func(d Deps) (scheduler.Policy, error) {
			return newServed(d, 0, func(b *servedBelief) servedRule { return drf{b, d.Quirks.LeastLoaded}.fill }), nil
		},
	})
}

// drf is progressive filling: a job's demand is one replica and one parameter server,
// as often as it may have them.
type drf struct {
	*servedBelief
	leastLoaded bool
}

func (p drf) fill(_ context.Context, _ *scheduler.Snapshot, f *filling) error {
	// the one with the least dominant share first, of equal ones the one that arrived first
	h := binaryHeap[*trainee]{items: slices.Clone(f.jobs), less: func(a, b *trainee) bool {
		return cmp.Or(cmp.Compare(f.shareOf(a, a.has), f.shareOf(b, b.has)), cmp.Compare(a.arrival, b.arrival)) < 0
	}}
	h.init()
	for len(h.items) > 0 && !f.ended {
		t := h.items[0]
		if !p.more(f, t) {
			h.pop()
			continue
		}
		t.why = "as much of what it needs most as others have of theirs"
		h.again()
	}
	return nil
}

// more gives t one of each, and reports whether it may have them and they fit.
func (p drf) more(f *filling, t *trainee) bool {
	to := t.has.plus(oneOfEach)
	if t.group >= 0 && !p.allows(t.Job, f.groupOf(t), to) {
		return false
	}
	if p.leastLoaded {
		return f.giveLeast(t, oneOfEach)
	}
	return f.give(t, oneOfEach)
}
