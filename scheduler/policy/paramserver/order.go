package paramserver

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/pacer-ml/pacer/scheduler"
	"github.com/pacer-ml/pacer/scheduler/policy"
)

// interval is after how much time orders that change as jobs get on are looked
// at again.
const interval = 600 * time.Second

// NewFIFO gives each job in turn the fastest numbers that fit. A job that does not fit
// blocks all jobs behind it.
func NewFIFO(d policy.Deps) scheduler.Policy {
	return New(d, 0, func(b *Belief) Rule {
		return inOrder{b, policy.VariantOf[Variant](d).ToTheMost, true, "its turn by submission", nil}.fill
	})
}

// NewSRTF gives each job the fastest numbers that fit, in order of the time left at the
// fastest numbers it may have. Jobs that do not fit are skipped.
func NewSRTF(d policy.Deps) scheduler.Policy {
	return New(d, interval, func(b *Belief) Rule {
		rules := policy.VariantOf[Variant](d)
		p := inOrder{b, rules.ToTheMost, false, "its turn by the time left", nil}
		p.key = func(ctx context.Context, f *Packing, t *PackedJob) (float64, error) {
			if rules.Left != nil {
				return rules.Left(t.Done, t.Remaining), nil
			}
			return b.least(ctx, f, t)
		}
		return p.fill
	})
}

// inOrder serves jobs in order, each to the full.
type inOrder struct {
	*Belief
	toTheMost bool
	blocks    bool // a job that does not fit blocks all behind it
	why       string
	key       func(ctx context.Context, f *Packing, t *PackedJob) (float64, error) // the least goes first; nil = by arrival
}

func (p inOrder) fill(ctx context.Context, _ *scheduler.Snapshot, f *Packing) error {
	jobs, err := p.line(ctx, f)
	if err != nil {
		return err
	}
	for _, t := range jobs {
		t.Why = p.why
		if p.toTheMost {
			p.most(f, t)
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

// most gives t one of each on the least loaded node as long as it may have them.
func (p inOrder) most(f *Packing, t *PackedJob) {
	for t.Group < 0 || p.Allows(t.Job, f.GroupOf(t), t.Has.Plus(OneOfEach)) {
		if !f.GiveLeast(t, OneOfEach) {
			return
		}
	}
}

// line returns the jobs in order; equal ones by arrival.
func (p inOrder) line(ctx context.Context, f *Packing) ([]*PackedJob, error) {
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
