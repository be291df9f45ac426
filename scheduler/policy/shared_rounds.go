package policy

import (
	"context"
	"slices"
	"time"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/scheduler"
)

// sharedRounds is rounds where two jobs may share devices. A job has ways alone
// and beside kinds of jobs; when leases end those are matched who have a right to
// be beside each other. Between two ends a job that comes may join one that is
// alone, and who is left goes on alone.
type sharedRounds struct {
	books
	company *company
	extend  func(*Shares) error // adds the ways beside others, and sets the kinds
	// outdated reports, when leases end, whether these are to be others; nil = never.
	outdated func(*scheduler.Snapshot) (bool, error)
	round    time.Duration
	keep     float64
	picked   time.Duration // when leases were given out last
	ends     time.Duration // when they end
	kinds    map[spec.JobID]int
}

func newSharedRounds(m *menus, c *company, o Objective, round time.Duration, keep float64) *sharedRounds {
	return &sharedRounds{books: books{objective: o, menus: m}, company: c, extend: c.extend, round: round, keep: keep}
}

func (p *sharedRounds) Decide(ctx context.Context, s *scheduler.Snapshot) (scheduler.Decision, error) {
	p.settle(s)
	if s.Now >= p.ends {
		p.picked, p.ends = s.Now, s.Now-s.Now%p.round+p.round
	}
	over := s.Now == p.picked
	stale, err := p.stale(s, over)
	if err == nil && stale {
		err = p.refresh(ctx, s)
	}
	if err != nil {
		return scheduler.Decision{}, err
	}
	l := p.leases(s)
	if !over {
		l.extend()
	}
	l.rightful(p.keep, !over)
	if !p.objective.Strict {
		l.rest()
		if over {
			l.upgrade()
		}
	}
	d := l.decision()
	d.Warnings = p.warnings
	l.explain(s, &d)
	if l.unsettled() {
		d.Wake = p.ends
	}
	return d, nil
}

// stale reports whether the fractions are to be others: jobs have come or gone, or
// leases are over and there is other company, or news of it.
func (p *sharedRounds) stale(s *scheduler.Snapshot, over bool) (bool, error) {
	other := over && p.company.learn(s)
	if over && p.outdated != nil {
		parting, err := p.outdated(s)
		if err != nil {
			return false, err
		}
		other = other || parting
	}
	return other || !p.current(s), nil
}

// settle brings the books up to now: who holds devices has had them by the way
// decided last. Jobs that have gone are left as they are.
func (p *sharedRounds) settle(s *scheduler.Snapshot) {
	p.credit(s, func(k *book, _ *scheduler.Grant) int { return k.last })
}

// refresh asks the objective about the jobs of s.
func (p *sharedRounds) refresh(ctx context.Context, s *scheduler.Snapshot) error {
	shares, err := p.menus.sharesOf(ctx, s, p.found)
	if err != nil {
		return err
	}
	if err := p.extend(shares); err != nil {
		return err
	}
	for i := range shares.Jobs {
		j := &shares.Jobs[i]
		if j.Last = -1; p.found[i] != nil && p.found[i].last >= 0 {
			j.Last = wayLike(j.Ways, p.found[i].ways[p.found[i].last])
		}
	}
	if err := shares.fill(ctx, p.objective); err != nil {
		return err
	}
	p.kinds = make(map[spec.JobID]int, len(shares.Jobs))
	for i := range shares.Jobs {
		j := &shares.Jobs[i]
		p.found[i] = carryOver(j, p.found[i])
		p.kinds[j.State.Job.ID] = j.kind
	}
	p.open(s, shares)
	return nil
}

// carryOver opens a book for the ways a job has now, with what the old one says of
// those that were there, nil = there is none.
func carryOver(j *Share, old *book) *book {
	k := &book{job: j.State.Job.ID, menu: j.menu, ways: j.Ways, last: j.Last,
		owed: make([]float64, len(j.Ways)), got: make([]float64, len(j.Ways))}
	if old == nil {
		return k
	}
	for w, way := range old.ways {
		if at := wayLike(k.ways, way); at >= 0 {
			k.owed[at], k.got[at] = old.owed[w], old.got[w]
		}
	}
	return k
}

// wayLike returns the index of the way with the group, devices and company of
// another, -1 if there is none.
func wayLike(ways []Way, like Way) int {
	return slices.IndexFunc(ways, func(w Way) bool {
		return w.Group == like.Group && w.Devices == like.Devices && w.Beside == like.Beside
	})
}
