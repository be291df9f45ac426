package policy

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/pacer-ml/pacer/scheduler"
)

// servedInterval is after how much time orders that change as jobs get on are looked
// at again.
const servedInterval = 600 * time.Second

// newServedFIFO gives each job in turn the fastest numbers there is room for. Who
// finds none holds up all behind.
func newServedFIFO(d Deps) scheduler.Policy {
	return newServed(d, 0, func(b *servedBelief) servedRule {
		return inTurn{b, d.Quirks.ToTheMost, true, "its turn by submission", nil}.fill
	})
}

// newServedSRTF is that in the order of the time that jobs have left at the fastest
// numbers they may have, whatever there is room for. It holds up nobody.
func newServedSRTF(d Deps) scheduler.Policy {
	return newServed(d, servedInterval, func(b *servedBelief) servedRule {
		p := inTurn{b, d.Quirks.ToTheMost, false, "its turn by the time left", nil}
		p.key = func(ctx context.Context, f *filling, t *trainee) (float64, error) {
			if d.Quirks.ShareLeft {
				return t.Remaining / (t.Done + t.Remaining), nil
			}
			return b.least(ctx, f, t)
		}
		return p.fill
	})
}

// inTurn serves jobs in order, each to the full.
type inTurn struct {
	*servedBelief
	toTheMost bool
	blocks    bool // who finds no room holds up all behind
	why       string
	key       func(ctx context.Context, f *filling, t *trainee) (float64, error) // who goes first: the least; nil = by arrival
}

func (p inTurn) fill(ctx context.Context, _ *scheduler.Snapshot, f *filling) error {
	jobs, err := p.line(ctx, f)
	if err != nil {
		return err
	}
	for _, t := range jobs {
		t.why = p.why
		if p.toTheMost {
			p.most(f, t)
			continue
		}
		fits, err := p.fastest(ctx, f, t)
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
func (p inTurn) most(f *filling, t *trainee) {
	for t.group < 0 || p.allows(t.Job, f.groupOf(t), t.has.plus(oneOfEach)) {
		if !f.giveLeast(t, oneOfEach) {
			return
		}
	}
}

// line returns the jobs in order; equal ones by arrival.
func (p inTurn) line(ctx context.Context, f *filling) ([]*trainee, error) {
	if p.key == nil {
		return f.jobs, nil
	}
	keys := make([]float64, len(f.jobs))
	for i, t := range f.jobs {
		var err error
		if keys[i], err = p.key(ctx, f, t); err != nil {
			return nil, err
		}
	}
	out := slices.Clone(f.jobs)
	slices.SortStableFunc(out, func(a, b *trainee) int { return cmp.Compare(keys[a.arrival], keys[b.arrival]) })
	return out, nil
}
