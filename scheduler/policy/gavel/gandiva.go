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

// Gandiva is the registry entry of policy gandiva.
var Gandiva = policy.Info{
	Name:    "gandiva",
	Doc:     "time-slices jobs; when they need more devices than the cluster has, random pairs share devices and are separated if that lowers their throughput (Xiao et al., Gandiva, OSDI 2018, as in Gavel's comparison)",
	Options: gandivaOptions,
	New:     newGandiva,
}

var gandivaOptions = []policy.Option{
	{Name: "round", Default: "360", Unit: "s", Max: 1e9, Doc: "seconds of a lease; when leases end, unprofitable pairs are separated"},
	{Name: "keep", Default: "3", Min: 1, Max: 1e9, Doc: "factor by which the priority of the present holder of devices is multiplied when leases end"},
}

func newGandiva(d policy.Deps) (scheduler.Policy, error) {
	v := d.Values(gandivaOptions)
	round, keep := leaseTerms(v)
	if err := v.Err(); err != nil {
		return nil, err
	}
	m := newCandidates(d, false)
	g := &matches{pairTable: newPairTable(d, m), seed: d.Seed, partner: map[spec.JobID]spec.JobID{}, unprofitable: map[trial]bool{}}
	if mechanism := m.rules.PairRounds; mechanism != nil {
		return mechanism(&Pairs{Allocation{candidates: m}, g.partner, g}, d.Seed), nil
	}
	return &rounds{deficits: deficits{objective: Objective{Fractions: g.equalShares, Agnostic: true, Sharing: true}, candidates: m},
		pairs: &colocation{pairTable: g.pairTable, extend: g.extend, outdated: g.outdated}, round: round, keep: keep}, nil
}

// matches has the pairs of jobs that share devices. Any two jobs that can run together may
// be drawn: Gandiva knows the throughput of a pair only once the pair has run.
type matches struct {
	pairTable    *pairTable
	seed         uint64
	partner      map[spec.JobID]spec.JobID // symmetric
	unprofitable map[trial]bool
}

// trial is a pair of jobs on a group. a arrived before b.
type trial struct {
	a, b  spec.JobID
	group int
}

// outdated marks the running pairs that turned out unprofitable, and reports whether there
// are any. It is called when leases end.
func (g *matches) outdated(s *scheduler.Snapshot) (any bool, err error) {
	byID := map[spec.JobID]*scheduler.JobState{}
	for _, j := range s.Jobs() {
		byID[j.Job.ID] = j
	}
	for _, j := range s.Jobs() {
		if j.Grant == nil || j.Grant.With == "" || byID[j.Grant.With].Order < j.Order {
			continue
		}
		t := trial{j.Job.ID, j.Grant.With, s.Cluster.GroupOf(j.Grant.Slots[0].Node)}
		if g.unprofitable[t] {
			continue
		}
		pays, err := g.pays(s.Cluster, j.Job, byID[t.b].Job, t.group)
		if err != nil {
			return any, err
		}
		if !pays {
			g.unprofitable[t], any = true, true
		}
	}
	return any, nil
}

// pays reports whether two jobs have a higher throughput when they share devices of a
// group than when they alternate on them.
func (g *matches) pays(cl spec.Cluster, a, b *spec.Job, group int) (bool, error) {
	if pays := g.pairTable.candidates.rules.Pays; pays != nil {
		return pays(func(group int) (float64, error) { return g.gain(cl, a, b, group) }, group, len(cl.Groups))
	}
	gain, err := g.gain(cl, a, b, group)
	return gain > 1, err
}

// gain returns the sum of the throughputs of two jobs that share devices, each divided by
// its throughput alone; 0 if they cannot run together.
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

// jobKind returns the kind of a job, nil if it has no predictions.
func (g *matches) jobKind(j *spec.Job) *jobKind {
	m := g.pairTable.candidates.sets[candidate.KeyOf(j)]
	if m == nil || g.pairTable.kind(j, m) == 0 {
		return nil
	}
	return &jobKind{j, m}
}

// drawPartners removes pairs with a job that ended. If the jobs request more devices than
// the cluster has, it draws a partner for each job without one, by arrival, from the seed
// and the order of the job. Otherwise short is false and all jobs run alone.
func (g *matches) drawPartners(cl spec.Cluster, jobs []*scheduler.JobState, devices float64) (short bool, err error) {
	present, requested := map[spec.JobID]bool{}, 0
	for _, j := range jobs {
		present[j.Job.ID] = true
		requested += j.Job.Devices
	}
	for t := range g.unprofitable {
		if !present[t.a] || !present[t.b] {
			delete(g.unprofitable, t)
		}
	}
	for a, b := range g.partner {
		if !present[a] || !present[b] {
			delete(g.partner, a)
			delete(g.partner, b)
		}
	}
	if float64(requested) <= devices {
		return false, nil
	}
	for i, j := range jobs {
		if _, has := g.partner[j.Job.ID]; has {
			continue
		}
		var free []*scheduler.JobState
		for _, o := range jobs[i+1:] {
			if _, has := g.partner[o.Job.ID]; has {
				continue
			}
			if can, err := g.canPair(cl, j.Job, o.Job); err != nil {
				return true, err
			} else if can {
				free = append(free, o)
			}
		}
		if len(free) > 0 {
			o := free[rand.New(rand.NewPCG(g.seed, uint64(j.Order))).IntN(len(free))]
			g.partner[j.Job.ID], g.partner[o.Job.ID] = o.Job.ID, j.Job.ID
		}
	}
	return true, nil
}

// canPair reports whether two jobs can run together on a group where they were not found
// unprofitable. a arrived first.
func (g *matches) canPair(cl spec.Cluster, a, b *spec.Job) (bool, error) {
	for group := range cl.Groups {
		if g.unprofitable[trial{a.ID, b.ID, group}] {
			continue
		}
		if _, _, o, err := g.jobPair(cl, a, b, group); err != nil || o != nil {
			return o != nil, err
		}
	}
	return false, nil
}

// extend adds the candidates with a partner to the jobs of pairs.
func (g *matches) extend(s *Shares) error {
	s.sharing = true
	g.pairTable.warnNoPairSpeeds(s)
	states, at := make([]*scheduler.JobState, len(s.Jobs)), make(map[spec.JobID]int, len(s.Jobs))
	devices := 0.0
	for _, n := range s.Devices {
		devices += n
	}
	for i := range s.Jobs {
		states[i], s.Jobs[i].kind = s.Jobs[i].State, s.Jobs[i].State.Order+1
		at[states[i].Job.ID] = i
	}
	for i, j := range states { // separate pairs that are unprofitable on every group
		other := g.partner[j.Job.ID]
		k, there := at[other]
		if !there || k < i {
			continue
		}
		if can, err := g.canPair(s.Cluster, j.Job, states[k].Job); err != nil {
			return err
		} else if !can {
			delete(g.partner, j.Job.ID)
			delete(g.partner, other)
		}
	}
	if short, err := g.drawPartners(s.Cluster, states, devices); err != nil || !short {
		return err
	}
	for i := range s.Jobs {
		a := &s.Jobs[i]
		other, has := g.partner[a.State.Job.ID]
		if !has || at[other] < i {
			continue
		}
		if err := g.addShared(s, a, &s.Jobs[at[other]]); err != nil {
			return err
		}
	}
	return nil
}

// addShared adds the candidates on which two jobs share devices.
func (g *matches) addShared(s *Shares, a, b *Share) error {
	x, y := a.Candidates[:len(a.Candidates):len(a.Candidates)], b.Candidates[:len(b.Candidates):len(b.Candidates)]
	for group := range s.Cluster.Groups {
		if g.unprofitable[trial{a.State.Job.ID, b.State.Job.ID, group}] {
			continue
		}
		rateA, rateB, o, err := g.jobPair(s.Cluster, a.State.Job, b.State.Job, group)
		if err != nil {
			return fmt.Errorf("policy: jobs %s and %s: %w", a.State.Job.ID, b.State.Job.ID, err)
		}
		if o != nil {
			x = append(x, Candidate{Group: group, Devices: o.a.Devices, Rate: rateA, Partner: b.kind})
			y = append(y, Candidate{Group: group, Devices: o.b.Devices, Rate: rateB, Partner: a.kind})
		}
	}
	a.Candidates, b.Candidates = x, y
	a.X, b.X = make([]float64, len(x)), make([]float64, len(y))
	return nil
}

// equalShares gives each job 1/N of every group, and at most all of its time. Two jobs
// that share devices use both their parts together on each group where sharing pays, so
// other jobs lose nothing. Gavel counts a pair as one job, which favours jobs without a
// partner.
func (g *matches) equalShares(_ context.Context, s *Shares) error {
	for i := range s.Jobs {
		j := &s.Jobs[i]
		sum := 0.0
		for k, w := range j.Candidates {
			part := s.Devices[w.Group] / float64(len(s.Jobs)) / float64(w.Devices)
			switch {
			case w.Partner > 0:
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

// sharesOn reports whether a candidate of the job shares devices of a group.
func (s *Share) sharesOn(group int) bool {
	return slices.ContainsFunc(s.Candidates, func(w Candidate) bool { return w.Partner > 0 && w.Group == group })
}
