package paramserver

import (
	"context"
	"fmt"
	"time"

	"github.com/pacer-ml/pacer/scheduler"
	"github.com/pacer-ml/pacer/scheduler/policy"
)

// byRule is a policy for jobs with parameter servers: it gives the cluster away from
// nothing whenever it is asked, by a rule of its own.
type byRule struct {
	*Belief
	rule  Rule
	every time.Duration // after which it decides anew though nothing happened, 0 = never
}

// Rule gives a cluster away.
type Rule func(ctx context.Context, s *scheduler.Snapshot, f *Packing) error

// New returns the policy of a rule that is made of what is believed.
func New(d policy.Deps, every time.Duration, rule func(*Belief) Rule) scheduler.Policy {
	b := NewBelief(d)
	rules := policy.VariantOf[Variant](d)
	b.most = rules.Most
	if rules.EveryRound {
		every = policy.MinWake
	}
	return &byRule{b, rule(b), every}
}

func (p *byRule) Decide(ctx context.Context, s *scheduler.Snapshot) (scheduler.Decision, error) {
	d := scheduler.Decision{}
	f := NewPacking(s, p.Belief)
	for _, t := range f.Jobs {
		if !t.Job.HasParamServers() {
			return d, fmt.Errorf("policy: job %s has no parameter servers, and others have: all jobs need them, or none", t.Job.ID)
		}
	}
	if err := p.rule(ctx, s, f); err != nil {
		return d, err
	}
	f.Settle()
	f.Grant(&d, s)
	if p.every > 0 && len(f.Jobs) > 0 {
		d.Wake = s.Now + p.every
	}
	return d, nil
}

// Grant adds the grants of all jobs to a decision, with reasons.
func (f *Packing) Grant(d *scheduler.Decision, s *scheduler.Snapshot) {
	for _, t := range f.Jobs {
		if t.Granted == nil {
			d.Because(s, t.Job.ID, "there is no room for one replica and one parameter server")
			continue
		}
		d.Grants = append(d.Grants, t.Granted)
		if t.Granted != t.Grant {
			d.Because(s, t.Job.ID, "%v: %s", t.Has, t.Why)
		}
	}
}

// Fastest gives t the fastest numbers there is room for, or one of each where nothing
// is believed, and reports whether there is room for any.
func (p *Belief) Fastest(ctx context.Context, f *Packing, t *PackedJob) (bool, error) {
	best, at, rate := -1, Counts{}, 0.0
	for gi, g := range f.accepted(t.Job) {
		all, err := p.Order(ctx, t.Job, g)
		if err != nil {
			return false, err
		}
		for _, n := range all {
			t.Group = gi
			if !f.Give(t, n) {
				continue
			}
			f.TakeBack(t, 0)
			r, err := p.Rate(ctx, t.Job, g, n)
			if err != nil {
				return false, err
			}
			if best < 0 || r > rate {
				best, at, rate = gi, n, r
			}
			break
		}
	}
	if t.Group = best; best < 0 {
		return false, nil
	}
	return f.Give(t, at), nil
}

// least returns the seconds t has left with the fastest numbers it may have, whether
// there is room for them or not; infinite where it may have none or nothing is believed.
func (p *Belief) least(ctx context.Context, f *Packing, t *PackedJob) (float64, error) {
	fastest := 0.0
	for _, g := range f.accepted(t.Job) {
		all, err := p.Order(ctx, t.Job, g)
		if err != nil {
			return 0, err
		}
		if len(all) == 0 {
			continue
		}
		rate, err := p.Rate(ctx, t.Job, g, all[0])
		if err != nil {
			return 0, err
		}
		fastest = max(fastest, rate)
	}
	return t.Remaining / fastest, nil
}

// withOne returns the steps/s believed of t with one of each, where it is fastest so; 0
// where nothing is believed.
func (p *Belief) withOne(ctx context.Context, f *Packing, t *PackedJob) (float64, error) {
	fastest := 0.0
	for _, g := range f.accepted(t.Job) {
		rate, err := p.Rate(ctx, t.Job, g, OneOfEach)
		if err != nil {
			return 0, err
		}
		fastest = max(fastest, rate)
	}
	return fastest, nil
}
