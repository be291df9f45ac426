package gavel

import (
	"context"
	"errors"
	"slices"

	"github.com/pacer-ml/pacer/scheduler"
	"github.com/pacer-ml/pacer/scheduler/policy"
)

// solving are the options of policies that solve a programme for the fractions.
var solving = append([]policy.Option{
	{Name: "centre", Default: "false", Doc: "choose the centre of equal optima; else the one with the highest total throughput"},
	{Name: "agnostic", Default: "false", Doc: "compute fractions as if jobs were as fast on all types as on their first; leases still give spare devices to the fastest job"},
	{Name: "sharing", Default: "false", Doc: "let two jobs share devices, where the belief knows their speed then"},
}, rounding...)

// fractions is the Fractions of an Objective.
type fractions func(ctx context.Context, s *Shares) error

// solved returns a policy that takes the fractions of o from a programme.
func solved(d policy.Deps, o Objective, f fractions) (scheduler.Policy, error) {
	v := d.Values(solving)
	agnostic, centre := v.Bool("agnostic"), v.Bool("centre")
	if policy.VariantOf[Variant](d).AnyOptimum && !v.Given("centre") {
		centre = true
	}
	o.Sharing = v.Bool("sharing")
	if err := v.Err(); err != nil {
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

// alike returns the ways of j with the rate of the first. With
// ZerosCount every other group follows.
func (s *Shares) alike(j *Share) []Way {
	ways := slices.Clone(j.Ways)
	for k := range ways {
		ways[k].Rate = ways[0].Rate
	}
	for g := range s.Devices {
		if s.rules.ZerosCount && len(ways) > 0 && !slices.ContainsFunc(j.Ways, func(w Way) bool { return w.Group == g }) {
			ways = append(ways, Way{Group: g, Devices: j.State.Job.Devices, Rate: ways[0].Rate})
		}
	}
	return ways
}
