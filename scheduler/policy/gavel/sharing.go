package gavel

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/pacer-ml/pacer/perfmodel"
	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/scheduler"
	"github.com/pacer-ml/pacer/scheduler/internal/candidate"
	"github.com/pacer-ml/pacer/scheduler/policy"
)

// pairTable caches the speeds of pairs of jobs that share devices, by kind. Pairs are by
// kind so that a linear program grows with jobs times kinds, not with the square of jobs.
type pairTable struct {
	candidates *candidateTable
	pairs      scheduler.Colocator // nil = there are no speeds of pairs, and no jobs share
	ids        map[candidate.SubmittedKey]int
	kinds      []jobKind              // by id-1
	found      map[[2]int][]Candidate // candidates of the first kind with a partner of the second
	used       map[side]bool          // see Shares.used
	unmeasured string                 // warning of pairs without measurements, "" = none yet
}

// jobKind is a kind of job that may share devices.
type jobKind struct {
	job          *spec.Job // an example
	candidateSet *candidateSet
}

func newPairTable(d policy.Deps, m *candidateTable) *pairTable {
	c := &pairTable{candidates: m, ids: map[candidate.SubmittedKey]int{}, found: map[[2]int][]Candidate{}, used: map[side]bool{}}
	c.pairs, _ = d.Oracle.(scheduler.Colocator)
	return c
}

// kind returns the number of the kind of j, from 1; 0 = it cannot share devices.
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

// jobPair has the configurations of two jobs on the same devices. Their shapes are equal.
type jobPair struct{ a, b candidate.Config }

// jobPairs returns the configurations in which jobs of two kinds can share a number of
// devices of a group, in descending order of the speed of the first job alone.
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

// place returns grants of the same free devices of a group for two jobs, nil if they do
// not fit.
func (c *pairTable) place(cl spec.Cluster, free *scheduler.Inventory, a, b jobKind, group, devices int) (ofA, ofB *scheduler.Grant) {
	both := *a.job
	both.Host = a.job.Host.Plus(b.job.Host)
	for _, o := range c.jobPairs(cl, a, b, group, devices) {
		slots, ok := c.candidates.Finder.Find(free, &both, &o.a)
		if !ok {
			continue
		}
		return &scheduler.Grant{Job: a.job.ID, Plan: o.a.Plan, Shape: o.a.Shape, Slots: slotsFor(a.job, slots), With: b.job.ID},
			&scheduler.Grant{Job: b.job.ID, Plan: o.b.Plan, Shape: o.b.Shape, Slots: slotsFor(b.job, slots), With: a.job.ID}
	}
	return nil, nil
}

// slotsFor returns slots with the CPUs and host memory that j needs.
func slotsFor(j *spec.Job, slots []scheduler.Slot) []scheduler.Slot {
	out := slices.Clone(slots)
	for i := range out {
		out[i].Host = j.Host.Times(out[i].Devices)
	}
	return out
}

// learn reports the pairs that share devices to a PairLearner. It returns true if any pair
// is new to it; the cached speeds are then cleared.
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
			clear(c.found) // new pairs are rare and looking up speeds is cheap
			news = true
		}
	}
	return news
}

// ran is the configuration that j runs.
func ran(cl spec.Cluster, j *scheduler.JobState) spec.Config {
	g := j.Grant
	return config(cl, j.Job, &candidate.Config{Group: cl.GroupOf(g.Slots[0].Node), Plan: g.Plan, Shape: g.Shape})
}

// optionsIn returns the configurations with a number of devices of a group, fastest first.
func (f *candidateSet) optionsIn(group, devices int) []candidate.Config {
	for k, w := range f.all {
		if w.Group == group && w.Devices == devices {
			return f.options[k]
		}
	}
	return nil
}

// sharing returns the candidates of a job of kind a with a partner of kind b. Pairs with a
// lower throughput than alternating on the devices are left out. missing reports that the
// speeds of the pair are unknown for a type on which both can run.
func (c *pairTable) sharing(cl spec.Cluster, a, b int) (candidates []Candidate, missing bool, err error) {
	key := [2]int{a, b}
	if w, ok := c.found[key]; ok {
		return w, false, nil
	}
	x, y := c.kinds[a-1], c.kinds[b-1]
	for _, w := range x.candidateSet.all {
		jobPairs := c.jobPairs(cl, x, y, w.Group, w.Devices)
		if len(jobPairs) == 0 {
			continue
		}
		speed, partnerSpeed, err := c.speeds(cl, x, y, jobPairs[0])
		switch {
		case errors.Is(err, perfmodel.ErrNotCovered):
			missing = true
		case err != nil:
			return nil, false, fmt.Errorf("policy: %s sharing devices with %s: %w", x.job.Model.Name, y.job.Model.Name, err)
		case speed/jobPairs[0].a.Rate+partnerSpeed/jobPairs[0].b.Rate > 1:
			candidates = append(candidates, Candidate{Group: w.Group, Devices: w.Devices, Rate: speed, Partner: b})
		}
	}
	c.found[key] = candidates
	return candidates, missing, nil
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

// config is the configuration of j running o.
func config(cl spec.Cluster, j *spec.Job, o *candidate.Config) spec.Config {
	g := &cl.Groups[o.Group]
	return spec.Config{Model: j.Model, SeqLen: j.SeqLen, Plan: o.Plan, Accelerator: g.Accelerator, Shape: o.Shape, Link: g.Link}
}

// extend appends the candidates with partners to those of the jobs of s, for the kinds of
// the present jobs.
func (c *pairTable) extend(s *Shares) error {
	s.sharing, s.used, s.tried = true, c.used, map[side]bool{}
	c.warnNoPairSpeeds(s)
	count := map[int]int{}
	for i := range s.Jobs {
		j := &s.Jobs[i]
		if j.kind = c.kind(j.State.Job, j.candidateSet); j.kind > 0 {
			count[j.kind]++
		}
	}
	present := slices.Sorted(maps.Keys(count))
	candidates := map[int][]Candidate{}
	var apart []string
	for _, a := range present {
		all := slices.Clip(c.kinds[a-1].candidateSet.all)
		for _, b := range present {
			if a == b && count[a] < 2 {
				continue
			}
			more, missing, err := c.sharing(s.Cluster, a, b)
			if err != nil {
				return err
			}
			if missing && a <= b {
				apart = append(apart, c.kinds[a-1].job.Model.Name+" and "+c.kinds[b-1].job.Model.Name)
			}
			all = append(all, more...)
		}
		candidates[a] = all
	}
	s.Warnings = append(s.Warnings, c.warnApart(apart, len(present))...)
	for i := range s.Jobs {
		if j := &s.Jobs[i]; j.kind > 0 {
			j.Candidates = candidates[j.kind]
			j.X = make([]float64, len(j.Candidates))
		}
	}
	return nil
}

// warnNoPairSpeeds warns if there are no speeds of pairs.
func (c *pairTable) warnNoPairSpeeds(s *Shares) {
	if c.pairs == nil {
		s.Warnings = append(s.Warnings, "no jobs share devices: --belief has no speeds of pairs, use a table of pairs such as gavel:FILE")
	}
}

// warnApart warns about pairs without measurements. The text is that of the first call
// with such pairs, so that the warning is shown once.
func (c *pairTable) warnApart(pairs []string, kinds int) []string {
	if c.unmeasured == "" && len(pairs) > 0 {
		more := ""
		if n := len(pairs) - 2; n > 0 {
			more = ", ..."
		}
		c.unmeasured = fmt.Sprintf("jobs without measurements as a pair do not share devices: %d of the first %d pairs of kinds, %s%s",
			len(pairs), kinds*(kinds+1)/2, strings.Join(pairs[:min(2, len(pairs))], ", "), more)
	}
	if c.unmeasured == "" {
		return nil
	}
	return []string{c.unmeasured}
}

// load is the number of devices that a candidate counts for: half of them with a partner.
func (w *Candidate) load() float64 {
	if w.Partner > 0 {
		return float64(w.Devices) / 2
	}
	return float64(w.Devices)
}
