package policy

import (
	"context"
	"errors"
	"slices"

	"github.com/pacer-ml/pacer/scheduler"
)

// solving are the options of policies that solve a programme for the fractions.
var solving = append([]Option{
	{Name: "centre", Default: "false", Doc: "of equal optima the one in their middle; else the one of greatest total throughput"},
	{Name: "agnostic", Default: "false", Doc: "reckon fractions as if jobs were as fast everywhere as on their first type; leases still give what nobody has a right to to who is fastest"},
	{Name: "sharing", Default: "false", Doc: "two jobs may share devices, where the belief knows how fast they run then"},
}, rounding...)

// fractions is the Fractions of an Objective.
type fractions func(ctx context.Context, s *Shares) error

// solved returns a policy that takes the fractions of o from a programme.
func solved(d Deps, o Objective, f fractions) (scheduler.Policy, error) {
	agnostic, err := d.flag("agnostic", false)
	if err != nil {
		return nil, err
	}
	centre, err := d.flag("centre", d.Quirks.AnyOptimum)
	if err != nil {
		return nil, err
	}
	if o.Sharing, err = d.flag("sharing", false); err != nil {
		return nil, err
	}
	if agnostic && o.Sharing {
		return nil, errors.New("policy: agnostic and sharing: without speeds nothing is known of jobs that share devices; leave one of them out")
	}
	if agnostic {
		f = alike(f)
	}
	o.Agnostic = agnostic
	o.Fractions = func(ctx context.Context, s *Shares) error {
		s.anyOptimum, s.agnostic = centre, agnostic
		return f(ctx, s)
	}
	return Rounds(d, o)
}

// alike hides how fast jobs are on other types than the first on which they run,
// as Gavel's heterogeneity-agnostic policies do.
func alike(f fractions) fractions {
	return func(ctx context.Context, s *Shares) error {
		ways := make([][]Way, len(s.Jobs))
		for i := range s.Jobs {
			ways[i] = s.Jobs[i].Ways
			s.Jobs[i].Ways = s.alike(&s.Jobs[i])
			s.Jobs[i].X = make([]float64, len(s.Jobs[i].Ways))
		}
		if err := f(ctx, s); err != nil {
			return err
		}
		for i := range s.Jobs {
			j := &s.Jobs[i]
			j.Ways = ways[i]
			j.X = j.X[:len(j.Ways)]
		}
		return nil
	}
}

// alike returns the ways of j with the rate of the first. With the quirk
// zeros-count every other group follows.
func (s *Shares) alike(j *Share) []Way {
	ways := slices.Clone(j.Ways)
	for k := range ways {
		ways[k].Rate = ways[0].Rate
	}
	for g := range s.Devices {
		if s.quirks.ZerosCount && len(ways) > 0 && !slices.ContainsFunc(j.Ways, func(w Way) bool { return w.Group == g }) {
			ways = append(ways, Way{Group: g, Devices: j.State.Job.Devices, Rate: ways[0].Rate})
		}
	}
	return ways
}
