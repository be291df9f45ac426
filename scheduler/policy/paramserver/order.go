package paramserver

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/pacer-ml/pacer/scheduler"
	"github.com/pacer-ml/pacer/scheduler/policy"
)

// interval is the time between decisions for rules that depend on the progress of jobs.
const interval = 600 * time.Second

// NewFIFO returns first come, first served: each job gets the fastest Counts that fit. A
// job that does not fit blocks all jobs behind it.
func NewFIFO(d policy.Deps) scheduler.Policy {
	return New(d, 0, func(b *Speeds) Rule {
		return inOrder{b, policy.VariantOf[Variant](d).UpToLimit, true, "next in order of submission", nil}.fill
	})
}

// NewSRTF returns shortest remaining time first, by the remaining time at the fastest
// Counts that a job may have. Each job gets the fastest Counts that fit. Jobs that do not
// fit are skipped.
func NewSRTF(d policy.Deps) scheduler.Policy {
	return New(d, interval, func(b *Speeds) Rule {
		rules := policy.VariantOf[Variant](d)
		p := inOrder{b, rules.UpToLimit, false, "next in order of remaining time", nil}
		p.key = func(ctx context.Context, f *Packing, t *PackedJob) (float64, error) {
			if rules.Left != nil {
				return rules.Left(t.Done, t.Remaining), nil
			}
			return b.remainingAtFastest(ctx, f, t)
		}
		return p.fill
	})
}

// inOrder gives each job, in order, the fastest Counts that fit.
type inOrder struct {
	*Speeds
	upToLimit bool
	blocks    bool // a job that does not fit blocks all behind it
	why       string
	key       func(ctx context.Context, f *Packing, t *PackedJob) (float64, error) // lower goes first; nil = by arrival
}

func (p inOrder) fill(ctx context.Context, _ *scheduler.Snapshot, f *Packing) error {
	jobs, err := p.sorted(ctx, f)
	if err != nil {
		return err
	}
	for _, t := range jobs {
		t.Why = p.why
		if p.upToLimit {
			p.giveUpToLimit(f, t)
			continue
		}
		fits, err := p.Fastest(ctx, f, t)
		if err != nil {
			return err
		}
		if !fits && p.blocks {
			return nil
		}
	}
	return nil
}

// giveUpToLimit gives t pairs on the least loaded node up to its limit.
func (p inOrder) giveUpToLimit(f *Packing, t *PackedJob) {
	for t.Group < 0 || p.Allows(t.Job, f.GroupOf(t), t.Has.Plus(OneOfEach)) {
		if !f.GiveLeast(t, OneOfEach) {
			return
		}
	}
}

// sorted returns the jobs in order; ties go by arrival.
func (p inOrder) sorted(ctx context.Context, f *Packing) ([]*PackedJob, error) {
	if p.key == nil {
		return f.Jobs, nil
	}
	keys := make([]float64, len(f.Jobs))
	for i, t := range f.Jobs {
		var err error
		if keys[i], err = p.key(ctx, f, t); err != nil {
			return nil, err
		}
	}
	out := slices.Clone(f.Jobs)
	slices.SortStableFunc(out, func(a, b *PackedJob) int { return cmp.Compare(keys[a.Arrival], keys[b.Arrival]) })
	return out, nil
}
