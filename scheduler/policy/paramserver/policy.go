package paramserver

import (
	"context"
	"fmt"
	"time"

	"github.com/pacer-ml/pacer/scheduler"
	"github.com/pacer-ml/pacer/scheduler/policy"
)

// byRule is a policy for jobs with parameter servers: every decision packs the empty cluster
// by a rule.
type byRule struct {
	*Speeds
	rule     Rule
	interval time.Duration // between decisions without an event, 0 = none
}

// Rule assigns tasks to the jobs of a packing.
type Rule func(ctx context.Context, s *scheduler.Snapshot, f *Packing) error

// New returns the policy of a rule made from predicted speeds.
func New(d policy.Deps, every time.Duration, rule func(*Speeds) Rule) scheduler.Policy {
	b := NewSpeeds(d)
	rules := policy.VariantOf[Variant](d)
	b.limit = rules.Limit
	if rules.EveryRound {
		every = policy.MinWake
	}
	return &byRule{b, rule(b), every}
}

// Decide packs the jobs by the rule, consolidates them and makes grants.
func (p *byRule) Decide(ctx context.Context, s *scheduler.Snapshot) (scheduler.Decision, error) {
	d := scheduler.Decision{}
	f := NewPacking(s, p.Speeds)
	for _, t := range f.Jobs {
		if !t.Job.HasParamServers() {
			return d, fmt.Errorf("policy: job %s has no parameter servers: this policy needs them for all jobs", t.Job.ID)
		}
	}
	if err := p.rule(ctx, s, f); err != nil {
		return d, err
	}
	f.Settle()
	f.Grant(&d, s)
	if p.interval > 0 && len(f.Jobs) > 0 {
		d.Wake = s.Now + p.interval
	}
	return d, nil
}

// Grant adds the grants of all jobs to a decision, with reasons.
func (f *Packing) Grant(d *scheduler.Decision, s *scheduler.Snapshot) {
	for _, t := range f.Jobs {
		if t.Granted == nil {
			d.Because(s, t.Job.ID, "no room for one replica and one parameter server")
			continue
		}
		d.Grants = append(d.Grants, t.Granted)
		if t.Granted != t.Grant {
			d.Because(s, t.Job.ID, "%v: %s", t.Has, t.Why)
		}
	}
}

// Fastest gives t the fastest Counts that fit, or one of each without a prediction, and
// reports whether any fit.
func (p *Speeds) Fastest(ctx context.Context, f *Packing, t *PackedJob) (bool, error) {
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

// remainingAtFastest returns the remaining seconds of t at the fastest Counts it may have,
// whether or not they fit; infinite without a prediction.
func (p *Speeds) remainingAtFastest(ctx context.Context, f *Packing, t *PackedJob) (float64, error) {
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

// rateOfOneEach returns the predicted steps/s of t with one replica and one server in the
// fastest group, 0 without a prediction.
func (p *Speeds) rateOfOneEach(ctx context.Context, f *Packing, t *PackedJob) (float64, error) {
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
