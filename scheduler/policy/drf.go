package policy

import (
	"cmp"
	"container/heap"
	"context"

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
	h := byShare{f: f, jobs: append([]*trainee(nil), f.jobs...)}
	heap.Init(&h)
	for len(h.jobs) > 0 && !f.ended {
		t := h.jobs[0]
		if !p.more(f, t) {
			heap.Pop(&h)
			continue
		}
		t.why = "as much of what it needs most as others have of theirs"
		heap.Fix(&h, 0)
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

// byShare is a heap of jobs, that with the least dominant share on top, of equal ones
// the one that arrived first.
type byShare struct {
	f    *filling
	jobs []*trainee
}

func (h *byShare) Len() int { return len(h.jobs) }
func (h *byShare) Less(i, k int) bool {
	a, b := h.jobs[i], h.jobs[k]
	return cmp.Or(cmp.Compare(h.f.shareOf(a, a.has), h.f.shareOf(b, b.has)), cmp.Compare(a.arrival, b.arrival)) < 0
}
func (h *byShare) Swap(i, k int) { h.jobs[i], h.jobs[k] = h.jobs[k], h.jobs[i] }
func (h *byShare) Push(x any)    { h.jobs = append(h.jobs, x.(*trainee)) }
func (h *byShare) Pop() any {
	last := h.jobs[len(h.jobs)-1]
	h.jobs = h.jobs[:len(h.jobs)-1]
	return last
}
