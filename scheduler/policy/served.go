package policy

import (
	"context"
	"fmt"
	"time"

	"github.com/pacer-ml/pacer/scheduler"
	"github.com/pacer-ml/pacer/scheduler/compat"
)

// served is a policy for jobs with parameter servers: it gives the cluster away from
// nothing whenever it is asked, by a rule of its own.
type served struct {
	*servedBelief
	rule  servedRule
	every time.Duration // after which it decides anew though nothing happened, 0 = never
}

// servedRule gives a cluster away.
type servedRule func(ctx context.Context, s *scheduler.Snapshot, f *filling) error

// newServed returns the policy of a rule that is made of what is believed.
func newServed(d Deps, every time.Duration, rule func(*servedBelief) servedRule) scheduler.Policy {
	b := newServedBelief(d)
	if d.Quirks.LeastLoaded {
		b.most = compat.DL2Most
	}
	if d.Quirks.EveryRound {
		every = leastWake
	}
	return &served{b, rule(b), every}
}

func (p *served) Decide(ctx context.Context, s *scheduler.Snapshot) (scheduler.Decision, error) {
	d := scheduler.Decision{}
	f := newFilling(s, p.servedBelief)
	for _, t := range f.jobs {
		if !t.Job.Served() {
			return d, fmt.Errorf("policy: job %s has no parameter servers, and others have: all must have some, or none", t.Job.ID)
		}
	}
	if err := p.rule(ctx, s, f); err != nil {
		return d, err
	}
	f.settle()
	f.grant(&d, s)
	if p.every > 0 && len(f.jobs) > 0 {
		d.Wake = s.Now + p.every
	}
	return d, nil
}

// grant puts what everybody gets into a decision, and why.
func (f *filling) grant(d *scheduler.Decision, s *scheduler.Snapshot) {
	for _, t := range f.jobs {
		if t.grant == nil {
			d.Because(s, t.Job.ID, "not even one replica and one parameter server are left for it")
			continue
		}
		d.Grants = append(d.Grants, t.grant)
		if t.grant != t.Grant {
			d.Because(s, t.Job.ID, "%v: %s", t.has, t.why)
		}
	}
}

// fastest gives t the fastest numbers there is room for, or one of each where nothing
// is believed, and reports whether there is room for any.
func (p *servedBelief) fastest(ctx context.Context, f *filling, t *trainee) (bool, error) {
	best, at, rate := -1, numbers{}, 0.0
	for gi, g := range f.accepted(t.Job) {
		all, err := p.order(ctx, t.Job, g)
		if err != nil {
			return false, err
		}
		for _, n := range all {
			t.group = gi
			if !f.give(t, n) {
				continue
			}
			f.takeBack(t, 0)
			r, err := p.rate(ctx, t.Job, g, n)
			if err != nil {
				return false, err
			}
			if best < 0 || r > rate {
				best, at, rate = gi, n, r
			}
			break
		}
	}
	if t.group = best; best < 0 {
		return false, nil
	}
	return f.give(t, at), nil
}

// least returns the seconds t has left with the fastest numbers it may have, whether
// there is room for them or not; infinite where it may have none or nothing is believed.
func (p *servedBelief) least(ctx context.Context, f *filling, t *trainee) (float64, error) {
	fastest := 0.0
	for _, g := range f.accepted(t.Job) {
		all, err := p.order(ctx, t.Job, g)
		if err != nil {
			return 0, err
		}
		if len(all) == 0 {
			continue
		}
		rate, err := p.rate(ctx, t.Job, g, all[0])
		if err != nil {
			return 0, err
		}
		fastest = max(fastest, rate)
	}
	return t.Remaining / fastest, nil
}

// withOne returns the steps/s believed of t with one of each, where it is fastest so; 0
// where nothing is believed.
func (p *servedBelief) withOne(ctx context.Context, f *filling, t *trainee) (float64, error) {
	fastest := 0.0
	for _, g := range f.accepted(t.Job) {
		rate, err := p.rate(ctx, t.Job, g, oneOfEach)
		if err != nil {
			return 0, err
		}
		fastest = max(fastest, rate)
	}
	return fastest, nil
}
