package policy

import (
	"context"
	"errors"
	"time"

	"github.com/pacer-ml/pacer/scheduler"
)

// rounding are the options of every policy made by Rounds.
var rounding = []Option{
	{Name: "round", Default: "360", Doc: "seconds devices are leased for; longer leases mean fewer restarts, shorter ones are truer to the fractions"},
	{Name: "keep", Default: "3", Doc: "how many times over who holds devices has a right to them when leases end, at least 1"},
	{Name: "ideal", Default: "false", Doc: "no rounds: jobs run at their fractions of time as if devices could be divided at will, starts being free; what leases come near to"},
	{Name: "plan", Default: "false", Doc: "other device counts and plans than a job asks for, each count at its best believed plan"},
}

// Rounds returns a policy that turns fractions of time into leases (Narayanan et
// al., Gavel, OSDI 2020, section 5). The objective is asked whenever jobs have
// come or gone. When leases end, devices go to those who have had least of what
// they are to have: all of a job's or none, and who stays on its type of devices
// stays where it is. What nobody has a right to goes to who is fastest on it. In
// between, only free devices are given away.
func Rounds(d Deps, o Objective) (scheduler.Policy, error) {
	round, keep, err := d.leaseTerms()
	if err != nil {
		return nil, err
	}
	menus, err := newMenus(d)
	if err != nil {
		return nil, err
	}
	fluid, err := d.flag("ideal", false)
	if err != nil {
		return nil, err
	}
	if o.Sharing {
		switch {
		case fluid:
			return nil, errors.New("policy: ideal knows of no jobs that share devices: leave ideal or sharing out")
		case d.Quirks.TypeByType:
			return nil, errors.New("policy: sharing: the rounds of the simulator of Gavel that compat repeats know of no jobs that share devices but under gandiva; turn its quirk type-by-type off")
		}
		return newSharedRounds(menus, newCompany(d, menus), o, round, keep), nil
	}
	if d.Quirks.TypeByType {
		if fluid {
			return nil, errors.New("policy: ideal has no rounds, which quirk type-by-type is about: leave one out")
		}
		return newTypeByType(d, menus, o), nil
	}
	p := &rounds{books: books{objective: o, menus: menus}, round: round, keep: keep}
	if fluid {
		return ideal{p}, nil
	}
	return p, nil
}

// leaseTerms are for how long devices are leased, at least a second, and how many
// times over who holds them has a right to them then.
func (d Deps) leaseTerms() (round time.Duration, keep float64, err error) {
	round, err = d.seconds("round", 360*time.Second)
	if err == nil {
		keep, err = d.number("keep", 3, 1, 1e9)
	}
	return max(round, time.Second), keep, err
}

type rounds struct {
	books
	round  time.Duration
	keep   float64
	picked time.Duration // when leases were given out last
	ends   time.Duration // when they end
}

func (p *rounds) Decide(ctx context.Context, s *scheduler.Snapshot) (scheduler.Decision, error) {
	p.settle(s)
	if !p.current(s) {
		if err := p.refresh(ctx, s); err != nil {
			return scheduler.Decision{}, err
		}
	}
	if s.Now >= p.ends {
		p.picked, p.ends = s.Now, s.Now-s.Now%p.round+p.round
	}
	over := s.Now == p.picked
	l := newLeases(&p.books, s)
	if !over {
		l.extend()
	}
	l.rightful(p.keep)
	if !p.objective.Strict {
		l.rest()
		if over {
			l.upgrade()
		}
	}
	d := l.decision(over)
	d.Warnings = p.warnings
	l.explain(s, &d)
	if l.unsettled() {
		d.Wake = p.ends
	}
	return d, nil
}
