package gavel

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/pacer-ml/pacer/perfmodel"
	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/scheduler"
	"github.com/pacer-ml/pacer/scheduler/internal/candidate"
	"github.com/pacer-ml/pacer/scheduler/policy"
)

var Gandiva = policy.Info{
	Name:    "gandiva",
	Doc:     "jobs take turns; if they ask for more devices than there are, random pairs share devices, and are separated if that does not pay (Xiao et al., Gandiva, OSDI 2018, as Gavel compares with it)",
	Options: gandivaOptions,
	New:     newGandiva,
}

var gandivaOptions = []policy.Option{
	{Name: "round", Default: "360", Unit: "s", Max: 1e9, Doc: "seconds of a lease; when it ends, pairs that do not pay are separated"},
	{Name: "keep", Default: "3", Min: 1, Max: 1e9, Doc: "weight of the job that holds devices when leases end, at least 1"},
}

func newGandiva(d policy.Deps) (scheduler.Policy, error) {
	v := d.Values(gandivaOptions)
	round, keep := leaseTerms(v)
	if err := v.Err(); err != nil {
		return nil, err
	}
	m := newCandidates(d, false)
	g := &matches{pairTable: newPairTable(d, m), seed: d.Seed, with: map[spec.JobID]spec.JobID{}, poor: map[trial]bool{}}
	if mechanism := m.rules.PairRounds; mechanism != nil {
		return mechanism(&Pairs{Allocation{candidates: m}, g.with, g}, d.Seed), nil
	}
	return &rounds{deficits: deficits{objective: Objective{Fractions: g.turns, Agnostic: true, Sharing: true}, candidates: m},
		pairs: &colocation{pairTable: g.pairTable, extend: g.extend, outdated: g.outdated}, round: round, keep: keep}, nil
}

// matches are the pairs of jobs that share devices. Any two may be drawn that can run
// together at all: what a pair is worth is known only once it has run.
type matches struct {
	pairTable *pairTable
	seed      uint64
	with      map[spec.JobID]spec.JobID // both ways
	poor      map[trial]bool
}

// trial is two jobs, the one that arrived first before the other, on a group, -1 =
// on all.
type trial struct {
	a, b  spec.JobID
	group int
}

// outdated reports, when leases end, whether a pair that shares devices does not pay.
func (g *matches) outdated(s *scheduler.Snapshot) (any bool, err error) {
	byID := map[spec.JobID]*scheduler.JobState{}
	for _, j := range s.Jobs() {
		byID[j.Job.ID] = j
	}
	for _, j := range s.Jobs() {
		if j.Grant == nil || j.Grant.With == "" || byID[j.Grant.With].Order < j.Order {
			continue
		}
		t := trial{j.Job.ID, j.Grant.With, groupOf(s.Cluster, j.Grant.Slots[0].Node)}
		if g.poor[t] {
			continue
		}
		pays, err := g.pays(s.Cluster, j.Job, byID[t.b].Job, t.group)
		if err != nil {
			return any, err
		}
		if !pays {
			g.poor[t], any = true, true
		}
	}
	return any, nil
}

// pays reports whether two jobs make more together on a group than in turns.
func (g *matches) pays(cl spec.Cluster, a, b *spec.Job, group int) (bool, error) {
	if pays := g.pairTable.candidates.rules.Pays; pays != nil {
		return pays(func(group int) (float64, error) { return g.gain(cl, a, b, group) }, group, len(cl.Groups))
	}
	gain, err := g.gain(cl, a, b, group)
	return gain > 1, err
}

// gain returns what parts of their speeds alone two jobs keep beside each other, in
// sum; 0 where they cannot run together.
func (g *matches) gain(cl spec.Cluster, a, b *spec.Job, group int) (float64, error) {
	x, y, o, err := g.jobPair(cl, a, b, group)
	if err != nil || o == nil {
		return 0, err
	}
	return x/o.a.Rate + y/o.b.Rate, nil
}

// jobPair returns how two jobs run on a group together, nil if they cannot.
func (g *matches) jobPair(cl spec.Cluster, a, b *spec.Job, group int) (rateA, rateB float64, o *jobPair, err error) {
	x, y := g.jobKind(a), g.jobKind(b)
	if x == nil || y == nil || a.Devices != b.Devices {
		return 0, 0, nil, nil
	}
	all := g.pairTable.jobPairs(cl, *x, *y, group, a.Devices)
	if len(all) == 0 {
		return 0, 0, nil, nil
	}
	rateA, rateB, err = g.pairTable.speeds(cl, *x, *y, all[0])
	if errors.Is(err, perfmodel.ErrNotCovered) {
		return 0, 0, nil, nil
	}
	return rateA, rateB, &all[0], err
}

// jobKind returns what a job may have, nil if nothing is known of it.
func (g *matches) jobKind(j *spec.Job) *jobKind {
	m := g.pairTable.candidates.known[candidate.KeyOf(j)]
	if m == nil || g.pairTable.kind(j, m) == 0 {
		return nil
	}
	return &jobKind{j, m}
}

// match separates pairs of which one job is gone. If jobs ask for more devices than there
// are, it draws a partner for each job without one, in order of arrival, from the seed and
// the order of the job. Else short is false, and all jobs run alone.
func (g *matches) match(cl spec.Cluster, jobs []*scheduler.JobState, devices float64) (short bool, err error) {
	inside, asked := map[spec.JobID]bool{}, 0
	for _, j := range jobs {
		inside[j.Job.ID] = true
		asked += j.Job.Devices
	}
	for t := range g.poor {
		if !inside[t.a] || !inside[t.b] {
			delete(g.poor, t)
		}
	}
	for a, b := range g.with {
		if !inside[a] || !inside[b] {
			delete(g.with, a)
			delete(g.with, b)
		}
	}
	if float64(asked) <= devices {
		return false, nil
	}
	for i, j := range jobs {
		if _, has := g.with[j.Job.ID]; has {
			continue
		}
		var free []*scheduler.JobState
		for _, o := range jobs[i+1:] {
			if _, has := g.with[o.Job.ID]; has {
				continue
			}
			if can, err := g.can(cl, j.Job, o.Job); err != nil {
				return true, err
			} else if can {
				free = append(free, o)
			}
		}
		if len(free) > 0 {
			o := free[rand.New(rand.NewPCG(g.seed, uint64(j.Order))).IntN(len(free))]
			g.with[j.Job.ID], g.with[o.Job.ID] = o.Job.ID, j.Job.ID
		}
	}
	return true, nil
}

// can reports whether two jobs can run together on a group where it was not seen
// that it does not pay. a arrived first.
func (g *matches) can(cl spec.Cluster, a, b *spec.Job) (bool, error) {
	for group := range cl.Groups {
		if g.poor[trial{a.ID, b.ID, group}] {
			continue
		}
		if _, _, o, err := g.jobPair(cl, a, b, group); err != nil || o != nil {
			return o != nil, err
		}
	}
	return false, nil
}

// extend gives the jobs of pairs the ways to share devices.
func (g *matches) extend(s *Shares) error {
	s.sharing = true
	g.pairTable.warnBlind(s)
	states, at := make([]*scheduler.JobState, len(s.Jobs)), make(map[spec.JobID]int, len(s.Jobs))
	devices := 0.0
	for _, n := range s.Devices {
		devices += n
	}
	for i := range s.Jobs {
		states[i], s.Jobs[i].kind = s.Jobs[i].State, s.Jobs[i].State.Order+1
		at[states[i].Job.ID] = i
	}
	for i, j := range states { // pairs for which sharing pays nowhere are separated
		other := g.with[j.Job.ID]
		k, there := at[other]
		if !there || k < i {
			continue
		}
		if can, err := g.can(s.Cluster, j.Job, states[k].Job); err != nil {
			return err
		} else if !can {
			delete(g.with, j.Job.ID)
			delete(g.with, other)
		}
	}
	if short, err := g.match(s.Cluster, states, devices); err != nil || !short {
		return err
	}
	for i := range s.Jobs {
		a := &s.Jobs[i]
		other, has := g.with[a.State.Job.ID]
		if !has || at[other] < i {
			continue
		}
		if err := g.addWays(s, a, &s.Jobs[at[other]]); err != nil {
			return err
		}
	}
	return nil
}

// addWays adds to two jobs the ways to be beside each other.
func (g *matches) addWays(s *Shares, a, b *Share) error {
	x, y := a.Ways[:len(a.Ways):len(a.Ways)], b.Ways[:len(b.Ways):len(b.Ways)]
	for group := range s.Cluster.Groups {
		if g.poor[trial{a.State.Job.ID, b.State.Job.ID, group}] {
			continue
		}
		rateA, rateB, o, err := g.jobPair(s.Cluster, a.State.Job, b.State.Job, group)
		if err != nil {
			return fmt.Errorf("policy: jobs %s and %s: %w", a.State.Job.ID, b.State.Job.ID, err)
		}
		if o != nil {
			x = append(x, Way{Group: group, Devices: o.a.Devices, Rate: rateA, Beside: b.kind})
			y = append(y, Way{Group: group, Devices: o.b.Devices, Rate: rateB, Beside: a.kind})
		}
	}
	a.Ways, b.Ways = x, y
	a.X, b.X = make([]float64, len(x)), make([]float64, len(y))
	return nil
}

// turns gives each job an equal part of every group, and at most all of its time. Two jobs
// that share use both their parts on each group where sharing pays, and their own parts
// elsewhere: sharing takes nothing from other jobs. Gavel counts two as one, which favours
// jobs that do not share.
func (g *matches) turns(_ context.Context, s *Shares) error {
	for i := range s.Jobs {
		j := &s.Jobs[i]
		sum := 0.0
		for k, w := range j.Ways {
			part := s.Devices[w.Group] / float64(len(s.Jobs)) / float64(w.Devices)
			switch {
			case w.Beside > 0:
				part *= 2
			case j.sharesOn(w.Group):
				part = 0
			}
			j.X[k] = part
			sum += part
		}
		for k := range j.X {
			j.X[k] /= max(sum, 1)
		}
	}
	return nil
}

// sharesOn reports whether j has a way to share devices of a group.
func (s *Share) sharesOn(group int) bool {
	return slices.ContainsFunc(s.Ways, func(w Way) bool { return w.Beside > 0 && w.Group == group })
}
