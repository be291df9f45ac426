package gavel

import (
	"context"
	"errors"
	"slices"

	"github.com/pacer-ml/pacer/scheduler"
	"github.com/pacer-ml/pacer/scheduler/policy"
)

// solving lists the options of policies that compute fractions by a linear program.
var solving = append([]policy.Option{
	{Name: "centre", Default: "false", Doc: "among equal optima choose their centre; false: the one with the highest total throughput"},
	{Name: "agnostic", Default: "false", Doc: "heterogeneity-agnostic: compute fractions as if jobs were as fast on all types as on their first; spare devices still go to the fastest job"},
	{Name: "sharing", Default: "false", Doc: "space sharing: let two jobs share devices if --belief has speeds of pairs"},
	{Name: "parts", Default: "1", Min: 1, Max: 1e6, Doc: "solve one program for each of so many parts of jobs and devices (Narayanan et al., POP, SOSP 2021)"},
}, rounding...)

// fractions is the Fractions of an Objective.
type fractions func(ctx context.Context, s *Shares) error

// solved returns a policy with o and fractions computed by f.
func solved(d policy.Deps, o Objective, f fractions) (scheduler.Policy, error) {
	v := d.Values(solving)
	agnostic, centre := v.Bool("agnostic"), v.Bool("centre")
	if policy.VariantOf[Variant](d).AnyOptimum && !v.Given("centre") {
		centre = true
	}
	o.Sharing = v.Bool("sharing")
	parts := v.Int("parts")
	if err := v.Err(); err != nil {
		return nil, err
	}
	if agnostic && o.Sharing {
		return nil, errors.New("policy: agnostic conflicts with sharing, which needs the speeds of pairs")
	}
	if parts > 1 && o.Sharing {
		return nil, errors.New("policy: parts conflicts with sharing, which pairs jobs of all parts")
	}
	if parts > 1 {
		f = partitioned(f, parts)
	}
	if agnostic {
		f = agnosticFractions(f)
	}
	o.Agnostic = agnostic
	o.Fractions = func(ctx context.Context, s *Shares) error {
		s.anyOptimum, s.agnostic = centre, agnostic
		return f(ctx, s)
	}
	return Rounds(d, o)
}

// agnosticFractions hides the rates of jobs on all types but their first, as Gavel's
// heterogeneity-agnostic policies do.
func agnosticFractions(f fractions) fractions {
	return func(ctx context.Context, s *Shares) error {
		candidates := make([][]Candidate, len(s.Jobs))
		for i := range s.Jobs {
			candidates[i] = s.Jobs[i].Candidates
			s.Jobs[i].Candidates = s.agnosticCandidates(&s.Jobs[i])
			s.Jobs[i].X = make([]float64, len(s.Jobs[i].Candidates))
		}
		if err := f(ctx, s); err != nil {
			return err
		}
		for i := range s.Jobs {
			j := &s.Jobs[i]
			j.Candidates = candidates[i]
			j.X = j.X[:len(j.Candidates)]
		}
		return nil
	}
}

// agnosticCandidates returns the candidates of j with the rate of the first. With
// ZerosCount it appends all other groups.
func (s *Shares) agnosticCandidates(j *Share) []Candidate {
	candidates := slices.Clone(j.Candidates)
	for k := range candidates {
		candidates[k].Rate = candidates[0].Rate
	}
	for g := range s.Devices {
		if s.rules.ZerosCount && len(candidates) > 0 && !slices.ContainsFunc(j.Candidates, func(w Candidate) bool { return w.Group == g }) {
			candidates = append(candidates, Candidate{Group: g, Devices: j.State.Job.Devices, Rate: candidates[0].Rate})
		}
	}
	return candidates
}
