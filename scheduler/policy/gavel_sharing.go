package policy

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/pacer-ml/pacer/perfmodel"
	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/scheduler"
)

// company knows which kinds of jobs may share devices, and how fast they run then.
// Jobs of a kind are alike: with them pairs are counted by kind, so that a
// programme grows with jobs times kinds and not with the square of the jobs.
type company struct {
	menus *menus
	pairs scheduler.Colocator // nil = nothing is known, and nobody shares
	ids   map[submittedKey]int
	kinds []companion      // by id-1
	ways  map[[2]int][]Way // of the first kind beside the second
	used  map[side]bool    // in programmes so far
	apart string           // who was not measured beside whom, of those looked at when that was first found; "" so far
}

// companion is a kind of jobs that may share devices.
type companion struct {
	job  *spec.Job // one of them
	menu *menu
}

func newCompany(d Deps, m *menus) *company {
	c := &company{menus: m, ids: map[submittedKey]int{}, ways: map[[2]int][]Way{}, used: map[side]bool{}}
	c.pairs, _ = d.Oracle.(scheduler.Colocator)
	return c
}

// kind returns the number of the kind of j, from 1 on; 0 = it shares with nobody.
func (c *company) kind(j *spec.Job, m *menu) int {
	known := func(options []option) bool { return len(options) > 0 }
	if c.pairs == nil || !slices.ContainsFunc(m.options, known) {
		return 0
	}
	key := submittedKey{kind(j), j.Plan, j.Devices, j.Accelerator}
	id, ok := c.ids[key]
	if !ok {
		c.kinds = append(c.kinds, companion{j, m})
		id = len(c.kinds)
		c.ids[key] = id
	}
	return id
}

// couple is two jobs on the same devices: an option of each, of one shape.
type couple struct{ a, b option }

// couples returns how jobs of two kinds can share so many devices of a group, those
// fastest for the first alone first.
func (c *company) couples(cl spec.Cluster, a, b companion, group, devices int) (out []couple) {
	g := &cl.Groups[group]
	need := a.job.Host.Plus(b.job.Host)
	for _, oa := range a.menu.optionsIn(group, devices) {
		if oa.shape.Most() > g.Room(need) {
			continue
		}
		for _, ob := range b.menu.optionsIn(group, devices) {
			if oa.shape == ob.shape {
				out = append(out, couple{oa, ob})
				break
			}
		}
	}
	return out
}

// place returns grants of free devices of a group that two jobs share, nil if there
// are none.
func (c *company) place(cl spec.Cluster, free *scheduler.Inventory, a, b companion, group, devices int) (mine, its *scheduler.Grant) {
	both := *a.job
	both.Host = a.job.Host.Plus(b.job.Host)
	for _, o := range c.couples(cl, a, b, group, devices) {
		slots, ok := c.menus.belief.find(free, &both, &o.a)
		if !ok {
			continue
		}
		return &scheduler.Grant{Job: a.job.ID, Plan: o.a.plan, Shape: o.a.shape, Slots: slotsFor(a.job, slots), With: b.job.ID},
			&scheduler.Grant{Job: b.job.ID, Plan: o.b.plan, Shape: o.b.shape, Slots: slotsFor(b.job, slots), With: a.job.ID}
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

// learn tells a belief that learns who shares devices now, and reports whether that
// is news: what it said of them is then forgotten.
func (c *company) learn(s *scheduler.Snapshot) (news bool) {
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
	return config(cl, j.Job, &option{group: groupOf(cl, g.Slots[0].Node), plan: g.Plan, shape: g.Shape})
}

// optionsIn returns the options of so many devices of a group, fastest first.
func (f *menu) optionsIn(group, devices int) []option {
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
func (c *company) beside(cl spec.Cluster, a, b int) (ways []Way, missing bool, err error) {
	key := [2]int{a, b}
	if w, ok := c.ways[key]; ok {
		return w, false, nil
	}
	x, y := c.kinds[a-1], c.kinds[b-1]
	for _, w := range x.menu.ways {
		couples := c.couples(cl, x, y, w.Group, w.Devices)
		if len(couples) == 0 {
			continue
		}
		speed, its, err := c.speeds(cl, x, y, couples[0])
		switch {
		case errors.Is(err, perfmodel.ErrNotCovered):
			missing = true
		case err != nil:
			return nil, false, fmt.Errorf("policy: %s beside %s: %w", x.job.Model.Name, y.job.Model.Name, err)
		case speed/couples[0].a.rate+its/couples[0].b.rate > 1:
			ways = append(ways, Way{Group: w.Group, Devices: w.Devices, Rate: speed, Beside: b})
		}
	}
	c.ways[key] = ways
	return ways, missing, nil
}

// speeds returns the steps/s of two jobs that share devices.
func (c *company) speeds(cl spec.Cluster, a, b companion, o couple) (rateA, rateB float64, err error) {
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
func config(cl spec.Cluster, j *spec.Job, o *option) spec.Config {
	g := &cl.Groups[o.group]
	return spec.Config{Model: j.Model, SeqLen: j.SeqLen, Plan: o.plan, Accelerator: g.Accelerator, Shape: o.shape, Link: g.Link}
}

// extend adds the ways of sharing devices to those of the jobs of s: behind their
// own, by the kinds that are there.
func (c *company) extend(s *Shares) error {
	s.sharing, s.used, s.tried = true, c.used, map[side]bool{}
	c.warnBlind(s)
	count := map[int]int{}
	for i := range s.Jobs {
		j := &s.Jobs[i]
		if j.kind = c.kind(j.State.Job, j.menu); j.kind > 0 {
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
		all := slices.Clip(c.kinds[a-1].menu.ways)
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

// warnBlind says that nobody shares, where nothing is known of pairs.
func (c *company) warnBlind(s *Shares) {
	if c.pairs == nil {
		s.Warnings = append(s.Warnings, "nothing is known of jobs that share devices, so none do: the belief has to be a table of pairs, such as gavel:FILE")
	}
}

// warnApart says once, when it is first found, which pairs of so many kinds were not
// measured; the text stays the same, so that it is shown once.
func (c *company) warnApart(pairs []string, kinds int) []string {
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
