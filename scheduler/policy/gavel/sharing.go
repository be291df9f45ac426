package gavel

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/pacer-ml/pacer/perfmodel"
	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/scheduler"
	"github.com/pacer-ml/pacer/scheduler/internal/candidate"
	"github.com/pacer-ml/pacer/scheduler/policy"
)

// pairTable lists which kinds of jobs may share devices, and their speeds then. Jobs of a
// kind are alike: pairs are by kind, so that a linear program grows with jobs times kinds,
// not with the square of the jobs.
type pairTable struct {
	candidates *candidates
	pairs      scheduler.Colocator // nil = no speeds of pairs are known, and no jobs share
	ids        map[candidate.SubmittedKey]int
	kinds      []jobKind        // by id-1
	ways       map[[2]int][]Way // of the first kind beside the second
	used       map[side]bool    // in programmes so far
	apart      string           // warning of pairs without measurements, once found; "" = none so far
}

// jobKind is a kind of jobs that may share devices.
type jobKind struct {
	job          *spec.Job // one of them
	candidateSet *candidateSet
}

func newPairTable(d policy.Deps, m *candidates) *pairTable {
	c := &pairTable{candidates: m, ids: map[candidate.SubmittedKey]int{}, ways: map[[2]int][]Way{}, used: map[side]bool{}}
	c.pairs, _ = d.Oracle.(scheduler.Colocator)
	return c
}

// kind returns the number of the kind of j, from 1 on; 0 = it shares with no job.
func (c *pairTable) kind(j *spec.Job, m *candidateSet) int {
	known := func(options []candidate.Config) bool { return len(options) > 0 }
	if c.pairs == nil || !slices.ContainsFunc(m.options, known) {
		return 0
	}
	key := candidate.KeyOf(j)
	id, ok := c.ids[key]
	if !ok {
		c.kinds = append(c.kinds, jobKind{j, m})
		id = len(c.kinds)
		c.ids[key] = id
	}
	return id
}

// jobPair is two jobs on the same devices: a configuration of each, of one shape.
type jobPair struct{ a, b candidate.Config }

// jobPairs returns how jobs of two kinds can share so many devices of a group, those
// fastest for the first alone first.
func (c *pairTable) jobPairs(cl spec.Cluster, a, b jobKind, group, devices int) (out []jobPair) {
	g := &cl.Groups[group]
	need := a.job.Host.Plus(b.job.Host)
	for _, oa := range a.candidateSet.optionsIn(group, devices) {
		if oa.Shape.Most() > g.Room(need) {
			continue
		}
		for _, ob := range b.candidateSet.optionsIn(group, devices) {
			if oa.Shape == ob.Shape {
				out = append(out, jobPair{oa, ob})
				break
			}
		}
	}
	return out
}

// place returns grants of free devices of a group that two jobs share, nil if there
// are none.
func (c *pairTable) place(cl spec.Cluster, free *scheduler.Inventory, a, b jobKind, group, devices int) (mine, its *scheduler.Grant) {
	both := *a.job
	both.Host = a.job.Host.Plus(b.job.Host)
	for _, o := range c.jobPairs(cl, a, b, group, devices) {
		slots, ok := c.candidates.Belief.Find(free, &both, &o.a)
		if !ok {
			continue
		}
		return &scheduler.Grant{Job: a.job.ID, Plan: o.a.Plan, Shape: o.a.Shape, Slots: slotsFor(a.job, slots), With: b.job.ID},
			&scheduler.Grant{Job: b.job.ID, Plan: o.b.Plan, Shape: o.b.Shape, Slots: slotsFor(b.job, slots), With: a.job.ID}
	}
	return nil, nil
}

// slotsFor returns the devices of slots with what j needs of the host for them.
func slotsFor(j *spec.Job, slots []scheduler.Slot) []scheduler.Slot {
	out := slices.Clone(slots)
	for i := range out {
		out[i].Host = j.Host.Times(out[i].Devices)
	}
	return out
}

// learn tells a learning belief which pairs share devices now, and reports whether that is
// new: predictions of pairs are then asked again.
func (c *pairTable) learn(s *scheduler.Snapshot) (news bool) {
	learner, ok := c.pairs.(scheduler.PairLearner)
	if !ok {
		return false
	}
	byID := map[spec.JobID]*scheduler.JobState{}
	for _, j := range s.Jobs() {
		if j.Grant != nil && j.Grant.With != "" {
			byID[j.Job.ID] = j
		}
	}
	for _, j := range s.Jobs() {
		if j.Grant == nil || j.Grant.With == "" || !j.Grant.Counted() {
			continue
		}
		other := byID[j.Grant.With]
		if learner.Ran(ran(s.Cluster, j), ran(s.Cluster, other)) {
			clear(c.ways) // few pairs are new, and looking up is cheap
			news = true
		}
	}
	return news
}

// ran is what j runs.
func ran(cl spec.Cluster, j *scheduler.JobState) spec.Config {
	g := j.Grant
	return config(cl, j.Job, &candidate.Config{Group: groupOf(cl, g.Slots[0].Node), Plan: g.Plan, Shape: g.Shape})
}

// optionsIn returns the options of so many devices of a group, fastest first.
func (f *candidateSet) optionsIn(group, devices int) []candidate.Config {
	for k, w := range f.ways {
		if w.Group == group && w.Devices == devices {
			return f.options[k]
		}
	}
	return nil
}

// beside returns how fast a job of kind a runs beside one of kind b, where that
// pays: together they make more than if they took turns, which any programme can
// have without. missing reports that for some type both run on nothing is known.
func (c *pairTable) beside(cl spec.Cluster, a, b int) (ways []Way, missing bool, err error) {
	key := [2]int{a, b}
	if w, ok := c.ways[key]; ok {
		return w, false, nil
	}
	x, y := c.kinds[a-1], c.kinds[b-1]
	for _, w := range x.candidateSet.ways {
		jobPairs := c.jobPairs(cl, x, y, w.Group, w.Devices)
		if len(jobPairs) == 0 {
			continue
		}
		speed, its, err := c.speeds(cl, x, y, jobPairs[0])
		switch {
		case errors.Is(err, perfmodel.ErrNotCovered):
			missing = true
		case err != nil:
			return nil, false, fmt.Errorf("policy: %s beside %s: %w", x.job.Model.Name, y.job.Model.Name, err)
		case speed/jobPairs[0].a.Rate+its/jobPairs[0].b.Rate > 1:
			ways = append(ways, Way{Group: w.Group, Devices: w.Devices, Rate: speed, Beside: b})
		}
	}
	c.ways[key] = ways
	return ways, missing, nil
}

// speeds returns the steps/s of two jobs that share devices.
func (c *pairTable) speeds(cl spec.Cluster, a, b jobKind, o jobPair) (rateA, rateB float64, err error) {
	ca, cb := config(cl, a.job, &o.a), config(cl, b.job, &o.b)
	if rateA, err = c.pairs.Beside(ca, cb); err == nil {
		rateB, err = c.pairs.Beside(cb, ca)
	}
	if err == nil && !(rateA > 0 && rateB > 0) {
		err = fmt.Errorf("%g and %g samples/s: %w", rateA, rateB, perfmodel.ErrNotCovered)
	}
	return rateA / float64(ca.Plan.GlobalBatch()), rateB / float64(cb.Plan.GlobalBatch()), err
}

// config is what runs when j has an option.
func config(cl spec.Cluster, j *spec.Job, o *candidate.Config) spec.Config {
	g := &cl.Groups[o.Group]
	return spec.Config{Model: j.Model, SeqLen: j.SeqLen, Plan: o.Plan, Accelerator: g.Accelerator, Shape: o.Shape, Link: g.Link}
}

// extend adds the ways of sharing devices to those of the jobs of s: behind their
// own, by the kinds that are there.
func (c *pairTable) extend(s *Shares) error {
	s.sharing, s.used, s.tried = true, c.used, map[side]bool{}
	c.warnBlind(s)
	count := map[int]int{}
	for i := range s.Jobs {
		j := &s.Jobs[i]
		if j.kind = c.kind(j.State.Job, j.candidateSet); j.kind > 0 {
			count[j.kind]++
		}
	}
	present := make([]int, 0, len(count))
	for k := range count {
		present = append(present, k)
	}
	slices.Sort(present)
	ways := map[int][]Way{}
	var apart []string
	for _, a := range present {
		all := slices.Clip(c.kinds[a-1].candidateSet.ways)
		for _, b := range present {
			if a == b && count[a] < 2 {
				continue
			}
			more, missing, err := c.beside(s.Cluster, a, b)
			if err != nil {
				return err
			}
			if missing && a <= b {
				apart = append(apart, c.kinds[a-1].job.Model.Name+" and "+c.kinds[b-1].job.Model.Name)
			}
			all = append(all, more...)
		}
		ways[a] = all
	}
	s.Warnings = append(s.Warnings, c.warnApart(apart, len(present))...)
	for i := range s.Jobs {
		if j := &s.Jobs[i]; j.kind > 0 {
			j.Ways = ways[j.kind]
			j.X = make([]float64, len(j.Ways))
		}
	}
	return nil
}

// warnBlind warns that no jobs share devices if no speeds of pairs are known.
func (c *pairTable) warnBlind(s *Shares) {
	if c.pairs == nil {
		s.Warnings = append(s.Warnings, "nothing is known of jobs that share devices, so none do: the belief has to be a table of pairs, such as gavel:FILE")
	}
}

// warnApart says once, when it is first found, which pairs of so many kinds were not
// measured; the text stays the same, so that it is shown once.
func (c *pairTable) warnApart(pairs []string, kinds int) []string {
	if c.apart == "" && len(pairs) > 0 {
		more := ""
		if n := len(pairs) - 2; n > 0 {
			more = ", ..."
		}
		c.apart = fmt.Sprintf("kinds of jobs that were not measured beside each other do not share devices: %d of the first %d pairs, %s%s",
			len(pairs), kinds*(kinds+1)/2, strings.Join(pairs[:min(2, len(pairs))], ", "), more)
	}
	if c.apart == "" {
		return nil
	}
	return []string{c.apart}
}

// load is how many devices a way counts for: half of those that are shared.
func (w *Way) load() float64 {
	if w.Beside > 0 {
		return float64(w.Devices) / 2
	}
	return float64(w.Devices)
}
