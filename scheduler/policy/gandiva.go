package policy

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/pacer-ml/pacer/perfmodel"
	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/scheduler"
)

func init() {
	register(Info{
		Name: "gandiva",
		Doc:  "jobs take turns; where they ask for more than there is two drawn at random share devices, and part where that does not pay (Xiao et al., Gandiva, OSDI 2018, as Gavel compares with it)",
		Options: []Option{
			{Name: "round", Default: "360", Doc: "seconds devices are leased for, after which it is looked at whether sharing pays"},
			{Name: "keep", Default: "3", Doc: "how many times over who holds devices has a right to them when leases end, at least 1"},
		},
		New: newGandiva,
	})
}

func newGandiva(d Deps) (scheduler.Policy, error) {
	round, keep, err := d.leaseTerms()
	if err != nil {
		return nil, err
	}
	m, err := newMenus(d)
	if err != nil {
		return nil, err
	}
	g := &matches{company: newCompany(d, m), seed: d.Seed, with: map[spec.JobID]spec.JobID{}, poor: map[trial]bool{}, summed: d.Quirks.SummedGain}
	if d.Quirks.TypeByType {
		return newGandivaRounds(d, g), nil
	}
	p := newSharedRounds(m, g.company, Objective{Fractions: g.turns, Agnostic: true, Sharing: true}, round, keep)
	p.extend, p.outdated = g.extend, g.outdated
	return p, nil
}

// matches is who is to share devices with whom. Nothing is known of a pair until
// it has run: any two may be drawn that the belief says can run together at all.
type matches struct {
	company *company
	seed    uint64
	with    map[spec.JobID]spec.JobID // both ways
	poor    map[trial]bool
	summed  bool // compat.Quirks.SummedGain
}

// trial is two jobs, the one that arrived first before the other, on a group, -1 =
// on all.
type trial struct {
	a, b  spec.JobID
	group int
}

// outdated looks at who shares devices now that leases end, and reports whether
// some are to part.
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
// Gavel's code sums over the types of devices: they may make a third.
func (g *matches) pays(cl spec.Cluster, a, b *spec.Job, group int) (bool, error) {
	if !g.summed {
		gain, err := g.gain(cl, a, b, group)
		return gain > 1, err
	}
	sum := 0.0
	for group := range cl.Groups {
		gain, err := g.gain(cl, a, b, group)
		if err != nil {
			return false, err
		}
		sum += gain
	}
	return sum >= 1, nil
}

// gain returns what parts of their speeds alone two jobs keep beside each other, in
// sum; 0 where they cannot run together.
func (g *matches) gain(cl spec.Cluster, a, b *spec.Job, group int) (float64, error) {
	x, y, o, err := g.couple(cl, a, b, group)
	if err != nil || o == nil {
		return 0, err
	}
	return x/o.a.rate + y/o.b.rate, nil
}

// couple returns how two jobs run on a group together, nil if they cannot.
func (g *matches) couple(cl spec.Cluster, a, b *spec.Job, group int) (rateA, rateB float64, o *couple, err error) {
	x, y := g.companion(a), g.companion(b)
	if x == nil || y == nil || a.Devices != b.Devices {
		return 0, 0, nil, nil
	}
	all := g.company.couples(cl, *x, *y, group, a.Devices)
	if len(all) == 0 {
		return 0, 0, nil, nil
	}
	rateA, rateB, err = g.company.speeds(cl, *x, *y, all[0])
	if errors.Is(err, perfmodel.ErrNotCovered) {
		return 0, 0, nil, nil
	}
	return rateA, rateB, &all[0], err
}

// companion returns what a job may have, nil if nothing is known of it.
func (g *matches) companion(j *spec.Job) *companion {
	m := g.company.menus.known[submittedKey{kind(j), j.Plan, j.Devices, j.Accelerator}]
	if m == nil || g.company.kind(j, m) == 0 {
		return nil
	}
	return &companion{j, m}
}

// match parts those of whom one is gone, and if the jobs ask for more than there is
// draws others for all that have nobody, in the order they arrived: from the seed,
// and who they are. If they do not, short is false, and all run alone.
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
		if _, _, o, err := g.couple(cl, a, b, group); err != nil || o != nil {
			return o != nil, err
		}
	}
	return false, nil
}

// extend gives jobs that have somebody the ways to be beside each other.
func (g *matches) extend(s *Shares) error {
	s.sharing = true
	g.company.warnBlind(s)
	states, at := make([]*scheduler.JobState, len(s.Jobs)), make(map[spec.JobID]int, len(s.Jobs))
	devices := 0.0
	for _, n := range s.Devices {
		devices += n
	}
	for i := range s.Jobs {
		states[i], s.Jobs[i].kind = s.Jobs[i].State, s.Jobs[i].State.Order+1
		at[states[i].Job.ID] = i
	}
	for i, j := range states { // who has nowhere left where sharing pays parts
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
		rateA, rateB, o, err := g.couple(s.Cluster, a.State.Job, b.State.Job, group)
		if err != nil {
			return fmt.Errorf("policy: jobs %s and %s: %w", a.State.Job.ID, b.State.Job.ID, err)
		}
		if o != nil {
			x = append(x, Way{Group: group, Devices: o.a.devices, Rate: rateA, Beside: b.kind})
			y = append(y, Way{Group: group, Devices: o.b.devices, Rate: rateB, Beside: a.kind})
		}
	}
	a.Ways, b.Ways = x, y
	a.X, b.X = make([]float64, len(x)), make([]float64, len(y))
	return nil
}

// turns gives an equal part of every group to each job, of its time no more than
// all. Two that share bring both their parts to each group on which that pays, and
// have their own elsewhere; so who shares takes nothing from who does not. (Gavel
// counts two as one, of which those gain most that share with nobody.)
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

// sharesOn reports whether j has a way beside somebody on a group.
func (s *Share) sharesOn(group int) bool {
	return slices.ContainsFunc(s.Ways, func(w Way) bool { return w.Beside > 0 && w.Group == group })
}
