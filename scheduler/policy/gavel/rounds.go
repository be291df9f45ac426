package gavel

import (
	"context"
	"errors"
	"time"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/scheduler"
	"github.com/pacer-ml/pacer/scheduler/policy"
)

// rounding lists the options of every policy made by Rounds.
var rounding = []policy.Option{
	{Name: "round", Default: "360", Unit: "s", Max: 1e9, Doc: "seconds of a lease; longer leases cause fewer restarts, shorter ones follow the fractions more closely"},
	{Name: "keep", Default: "3", Min: 1, Max: 1e9, Doc: "factor by which the priority of the present holder of devices is multiplied when leases end"},
	{Name: "ideal", Default: "false", Doc: "no rounds: jobs run at their fractions, as if devices could be divided and starts cost nothing; the limit of short leases"},
	{Name: "plan", Default: "false", Doc: "allow other device counts and plans than submitted, each count with the plan predicted fastest"},
}

// Rounds returns a policy with Gavel's round-based mechanism (section 5). It computes the
// fractions whenever a job arrives or ends. When the leases end it assigns devices to jobs
// in descending ratio of time owed to time received. A job gets all its devices or none,
// and keeps its devices if it stays on their type. Spare devices go to jobs without any,
// then to jobs that run faster on them. Between the ends of leases it assigns only free
// devices.
func Rounds(d policy.Deps, o Objective) (scheduler.Policy, error) {
	v := d.Values(rounding)
	round, keep := leaseTerms(v)
	candidates, fluid := newCandidates(d, v.Bool("plan")), v.Bool("ideal")
	if err := v.Err(); err != nil {
		return nil, err
	}
	mechanism := candidates.rules.Rounds
	if o.Sharing {
		switch {
		case fluid:
			return nil, errors.New("policy: ideal conflicts with sharing")
		case mechanism != nil:
			return nil, errors.New("policy: sharing conflicts with compat quirk type-by-type, which supports it only in gandiva")
		}
	}
	if mechanism != nil {
		if fluid {
			return nil, errors.New("policy: ideal conflicts with compat quirk type-by-type, which changes rounds")
		}
		return mechanism(&Allocation{o, candidates}), nil
	}
	p := &rounds{deficits: deficits{objective: o, candidates: candidates}, round: round, keep: keep}
	if o.Sharing {
		c := newPairTable(d, candidates)
		p.pairs = &colocation{pairTable: c, extend: c.extend}
	}
	if fluid {
		return ideal{p}, nil
	}
	return p, nil
}

// leaseTerms returns the duration of a lease, at least a second, and option keep.
func leaseTerms(v *policy.Values) (round time.Duration, keep float64) {
	return max(v.Duration("round"), time.Second), v.Float("keep")
}

// rounds is the policy that Rounds returns.
type rounds struct {
	deficits
	pairs    *colocation // nil = no two jobs share devices
	round    time.Duration
	keep     float64
	leasedAt time.Duration // start of the present leases
	ends     time.Duration // end of the present leases
}

// colocation is the state of policies with space sharing. A job has candidates without a
// partner and candidates with partners of some kind. Jobs are paired when leases end.
// Between that, a new job may join a job without a partner, and a job continues alone when
// its partner ends.
type colocation struct {
	pairTable *pairTable
	extend    func(*Shares) error // adds the candidates with partners, and sets the kinds
	// outdated reports, when leases end, whether pairs have to change; nil = never.
	outdated func(*scheduler.Snapshot) (bool, error)
	kinds    map[spec.JobID]int // of jobs, by the present fractions
}

// Decide follows section 5: credit the time that jobs had, compute the fractions if a job
// arrived or ended, assign candidates by deficit, assign spare devices, place the jobs.
func (p *rounds) Decide(ctx context.Context, s *scheduler.Snapshot) (scheduler.Decision, error) {
	p.creditTime(s)
	if s.Now >= p.ends {
		p.leasedAt, p.ends = s.Now, s.Now-s.Now%p.round+p.round
	}
	ended := s.Now == p.leasedAt
	stale := !p.current(s)
	if ended && p.pairs != nil {
		changed, err := p.pairs.changed(s)
		if err != nil {
			return scheduler.Decision{}, err
		}
		stale = stale || changed
	}
	if stale {
		if err := p.refresh(ctx, s); err != nil {
			return scheduler.Decision{}, err
		}
	}
	l := newLeases(p, s)
	if !ended {
		l.renew()
	}
	l.assignByDeficit(p.keep, !ended)
	if !p.objective.Strict {
		l.assignIdle()
		if ended {
			l.upgrade()
		}
	}
	d := l.decision(ended && p.pairs == nil)
	d.Warnings = p.warnings
	l.explain(s, &d)
	if l.mayImprove() {
		d.Wake = p.ends
	}
	return d, nil
}

// creditTime credits the time up to s.Now. With sharing, a job held the candidate decided
// last: its grant may have lost the partner since.
func (p *rounds) creditTime(s *scheduler.Snapshot) {
	p.credit(s, func(k *account, g *scheduler.Grant) int {
		if p.pairs != nil {
			return k.last
		}
		return k.candidateOf(s.Cluster, g, 0)
	})
}

// changed reports whether speeds or pairs have changed. It is called when leases end.
func (p *colocation) changed(s *scheduler.Snapshot) (bool, error) {
	news := p.pairTable.learn(s)
	if p.outdated == nil {
		return news, nil
	}
	outdated, err := p.outdated(s)
	return news || outdated, err
}

// refresh computes the fractions of the jobs of s.
func (p *rounds) refresh(ctx context.Context, s *scheduler.Snapshot) error {
	shares, err := p.candidates.sharesOf(ctx, s, p.found)
	if err == nil && p.pairs != nil {
		err = p.pairs.addShared(shares, p.found)
	}
	if err == nil {
		err = shares.fill(ctx, p.objective)
	}
	if err != nil {
		return err
	}
	for i := range shares.Jobs {
		if p.found[i] == nil || p.pairs != nil {
			p.found[i] = newAccount(&shares.Jobs[i], p.found[i])
		}
	}
	if p.pairs != nil {
		p.pairs.kinds = make(map[spec.JobID]int, len(shares.Jobs))
		for i := range shares.Jobs {
			p.pairs.kinds[shares.Jobs[i].State.Job.ID] = shares.Jobs[i].kind
		}
	}
	p.install(s, shares)
	return nil
}

// addShared adds the candidates with partners to shares. accounts are those of its jobs.
func (p *colocation) addShared(shares *Shares, accounts []*account) error {
	if err := p.extend(shares); err != nil {
		return err
	}
	for i := range shares.Jobs {
		j, k := &shares.Jobs[i], accounts[i]
		if j.Last = -1; k != nil && k.last >= 0 {
			j.Last = indexLike(j.Candidates, k.candidates[k.last])
		}
	}
	return nil
}
