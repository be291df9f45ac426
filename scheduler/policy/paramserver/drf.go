package paramserver

import (
	"cmp"
	"context"
	"slices"

	"github.com/pacer-ml/pacer/scheduler"
	"github.com/pacer-ml/pacer/scheduler/internal/heap"
	"github.com/pacer-ml/pacer/scheduler/policy"
)

// DRF is the registry entry of policy drf.
var DRF = policy.Info{
	Name:    "drf",
	Doc:     "parameter servers only: dominant resource fairness by progressive filling, one replica and one server at a time (Ghodsi et al., DRF, NSDI 2011); resizes",
	Servers: policy.ServesOnly,
	New: func(d policy.Deps) (scheduler.Policy, error) {
		return New(d, 0, func(b *Speeds) Rule { return drf{b, policy.VariantOf[Variant](d).LeastLoaded}.fill }), nil
	},
}

// drf is progressive filling (DRF, section 4.1, algorithm 1). The demand vector of a job is
// one replica and one parameter server. It is granted repeatedly to the job with the lowest
// dominant share.
type drf struct {
	*Speeds
	leastLoaded bool
}

func (p drf) fill(_ context.Context, _ *scheduler.Snapshot, f *Packing) error {
	// lowest dominant share first, then arrival
	h := heap.Heap[*PackedJob]{Items: slices.Clone(f.Jobs), Less: func(a, b *PackedJob) bool {
		return cmp.Or(cmp.Compare(f.ShareOf(a, a.Has), f.ShareOf(b, b.Has)), cmp.Compare(a.Arrival, b.Arrival)) < 0
	}}
	h.Init()
	for len(h.Items) > 0 && !f.Ended {
		t := h.Items[0]
		if !p.more(f, t) {
			h.Pop()
			continue
		}
		t.Why = "progressive filling by dominant share"
		h.FixFirst()
	}
	return nil
}

// more gives t one of each, and reports whether that is allowed and fits.
func (p drf) more(f *Packing, t *PackedJob) bool {
	to := t.Has.Plus(OneOfEach)
	if t.Group >= 0 && !p.Allows(t.Job, f.GroupOf(t), to) {
		return false
	}
	if p.leastLoaded {
		return f.GiveLeast(t, OneOfEach)
	}
	return f.Give(t, OneOfEach)
}
