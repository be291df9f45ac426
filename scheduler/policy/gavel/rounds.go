package gavel

import (
	"context"
	"errors"
	"time"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/scheduler"
	"github.com/pacer-ml/pacer/scheduler/policy"
)

// rounding are the options of every policy made by Rounds.
var rounding = []policy.Option{
	{Name: "round", Default: "360", Unit: "s", Max: 1e9, Doc: "seconds of a lease; longer leases mean fewer restarts, shorter ones follow the fractions more closely"},
	{Name: "keep", Default: "3", Min: 1, Max: 1e9, Doc: "weight of the job that holds devices when leases end, at least 1"},
	{Name: "ideal", Default: "false", Doc: "no rounds: jobs run at their fractions of time, as if devices could be divided and starts were free; the limit of short leases"},
	{Name: "plan", Default: "false", Doc: "allow other device counts and plans than a job asks for, each count at its best predicted plan"},
}

// Rounds returns a policy that turns fractions of time into leases (Narayanan et
// al., Gavel, OSDI 2020, section 5). The fractions are computed whenever jobs have come or
// gone. When leases end, devices go to jobs in descending ratio of time owed to time
// received; a job gets all its devices or none, and keeps its devices if it stays on their
// type. Spare devices go to the fastest job. In between only free devices are assigned.
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
			return nil, errors.New("policy: ideal supports no jobs that share devices: leave ideal or sharing out")
		case mechanism != nil:
			return nil, errors.New("policy: sharing: only gandiva shares devices in the rounds of compat gavel: turn quirk type-by-type off")
		}
	}
	if mechanism != nil {
		if fluid {
			return nil, errors.New("policy: ideal has no rounds: turn quirk type-by-type off, or leave ideal out")
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

// leaseTerms returns how long a lease is, at least a second, and the weight of the job that
// holds devices.
func leaseTerms(v *policy.Values) (round time.Duration, keep float64) {
	return max(v.Seconds("round"), time.Second), v.Float("keep")
}

// rounds turns fractions of time into leases, as Rounds describes.
type rounds struct {
	deficits
	pairs  *colocation // nil = no two jobs share devices
	round  time.Duration
	keep   float64
	picked time.Duration // when devices were leased last
	ends   time.Duration // when these leases end
}

// colocation is about jobs that share devices. A job has ways alone and ways with kinds of
// jobs. When leases end, jobs are paired; between two ends a new job may join one that
// is alone, and a job whose partner has gone continues alone.
type colocation struct {
	pairTable *pairTable
	extend    func(*Shares) error // adds the ways with other jobs, and sets the kinds
	// outdated reports, when leases end, whether pairs have to change; nil = never.
	outdated func(*scheduler.Snapshot) (bool, error)
	kinds    map[spec.JobID]int // of jobs, by the present fractions
}

func (p *rounds) Decide(ctx context.Context, s *scheduler.Snapshot) (scheduler.Decision, error) {
	p.settle(s)
	if s.Now >= p.ends {
		p.picked, p.ends = s.Now, s.Now-s.Now%p.round+p.round
	}
	over := s.Now == p.picked
	stale := !p.current(s)
	if over && p.pairs != nil {
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
	if !over {
		l.extend()
	}
	l.assignByDeficit(p.keep, !over)
	if !p.objective.Strict {
		l.assignIdle()
		if over {
			l.upgrade()
		}
	}
	d := l.decision(over && p.pairs == nil)
	d.Warnings = p.warnings
	l.explain(s, &d)
	if l.unsettled() {
		d.Wake = p.ends
	}
	return d, nil
}

// settle credits the time up to now. A job that shares devices has held them by the way
// decided last, for its partner may have gone.
func (p *rounds) settle(s *scheduler.Snapshot) {
	p.credit(s, func(k *account, g *scheduler.Grant) int {
		if p.pairs != nil {
			return k.last
		}
		return k.way(s.Cluster, g, 0)
	})
}

// changed reports, when leases end, whether what is known of pairs has changed.
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
		err = p.pairs.addWays(shares, p.found)
	}
	if err == nil {
		err = shares.fill(ctx, p.objective)
	}
	if err != nil {
		return err
	}
	for i := range shares.Jobs {
		if p.found[i] == nil || p.pairs != nil {
			p.found[i] = openAccount(&shares.Jobs[i], p.found[i])
		}
	}
	if p.pairs != nil {
		p.pairs.kinds = make(map[spec.JobID]int, len(shares.Jobs))
		for i := range shares.Jobs {
			p.pairs.kinds[shares.Jobs[i].State.Job.ID] = shares.Jobs[i].kind
		}
	}
	p.open(s, shares)
	return nil
}

// addWays adds the ways with other jobs to shares, whose jobs have these accounts.
func (p *colocation) addWays(shares *Shares, accounts []*account) error {
	if err := p.extend(shares); err != nil {
		return err
	}
	for i := range shares.Jobs {
		j, k := &shares.Jobs[i], accounts[i]
		if j.Last = -1; k != nil && k.last >= 0 {
			j.Last = wayLike(j.Ways, k.ways[k.last])
		}
	}
	return nil
}
