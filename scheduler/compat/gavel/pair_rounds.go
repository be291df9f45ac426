package gavel

import (
	"cmp"
	"context"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/scheduler"
	"github.com/pacer-ml/pacer/scheduler/policy/gavel"
)

// pairRounds is policy gandiva in the round mechanism of Gavel's simulator, see
// typeByType. Its units are single jobs, or two jobs that share devices. Pairs are drawn
// even if their speeds are unknown. A pair that cannot run waits until the fractions are
// recomputed, but its jobs may run alone on spare devices.
type pairRounds struct {
	*gavel.Pairs
	rules      *Rounds
	random     *rand.Rand
	candidates map[spec.JobID]gavel.Candidates

	began time.Duration // begin of the previous round
	ran   bool          // a job ran in it
	ended time.Duration // begin of the first round after the last one with a running job
	reset time.Duration // time of the last recomputation
	stale bool          // jobs have arrived or left since
	jobs  map[spec.JobID]*scheduler.JobState
	units []*unit // units of the last recomputation, then newcomers
	spare []*unit // jobs that run in this round on spare devices
}

// unit is a job, or two that share devices.
type unit struct {
	a, b     *scheduler.JobState // b may be nil
	x        []float64           // fractions by group, nil for a newcomer
	received []float64           // seconds by group, initially halfRound
	deficit  []float64           // seconds by group
	on       int                 // the group it runs on, -1 = none
}

func newPairRounds(p *gavel.Pairs, seed uint64, r *Rounds) *pairRounds {
	return &pairRounds{Pairs: p, rules: r, random: rand.New(rand.NewPCG(seed, 0))}
}

func (p *pairRounds) Decide(ctx context.Context, s *scheduler.Snapshot) (scheduler.Decision, error) {
	var d scheduler.Decision
	if err := p.note(ctx, s, &d); err != nil {
		return d, err
	}
	if p.stale && (p.reset == 0 || s.Now-p.reset >= p.rules.Least) {
		if err := p.recompute(s); err != nil {
			return d, err
		}
	}
	if err := p.pick(s); err != nil {
		return d, err
	}
	d.Grants = p.grants(s)
	p.began, p.ran = s.Now, len(d.Grants) > 0
	return d, nil
}

// note records the time received in the previous round, arrivals and completions.
func (p *pairRounds) note(ctx context.Context, s *scheduler.Snapshot, d *scheduler.Decision) error {
	if !p.ran && s.Now == p.began {
		p.reset = 0
	}
	for _, u := range p.units {
		if u.on >= 0 {
			u.received[u.on] += (s.Now - p.ended).Seconds()
		}
	}
	if p.ran {
		p.ended = s.Now
	}
	before := p.jobs
	p.jobs = make(map[spec.JobID]*scheduler.JobState, len(before))
	p.candidates = make(map[spec.JobID]gavel.Candidates, len(before))
	for _, j := range s.Jobs() {
		m, err := p.Candidates(ctx, s.Cluster, j.Job)
		if err != nil {
			return err
		}
		if m.Warning() != "" {
			d.Warnings = append(d.Warnings, m.Warning())
		}
		p.jobs[j.Job.ID], p.candidates[j.Job.ID] = j, m
		if before[j.Job.ID] == nil {
			p.units = append(p.units, newUnit(j, len(s.Cluster.Groups)))
			p.stale = true
		}
	}
	hasLeft := func(j *scheduler.JobState) bool { return j != nil && p.jobs[j.Job.ID] == nil }
	for _, u := range p.units {
		if u.b != nil && (hasLeft(u.a) || hasLeft(u.b)) { // the other job has no fractions until the next recomputation
			if hasLeft(u.a) {
				u.a = u.b
			}
			u.b = nil
			clear(u.x)
		}
	}
	n := len(p.units)
	p.units = slices.DeleteFunc(p.units, func(u *unit) bool { return hasLeft(u.a) })
	p.stale = p.stale || len(p.units) < n || len(p.jobs) < len(before)
	return nil
}

// newUnit returns a unit of one job without received time.
func newUnit(j *scheduler.JobState, groups int) *unit {
	return &unit{a: j, on: -1, received: slices.Repeat([]float64{halfRound}, groups), deficit: make([]float64, groups)}
}

// recompute draws pairs of the single jobs, and gives every unit an equal part of all
// groups.
func (p *pairRounds) recompute(s *scheduler.Snapshot) error {
	if err := p.draw(s); err != nil {
		return err
	}
	deficits := map[spec.JobID][]float64{}
	elapsed := (s.Now - p.reset).Seconds()
	for _, u := range p.units {
		for g := range u.deficit {
			u.deficit[g] -= u.received[g] - halfRound
			if u.x != nil {
				u.deficit[g] += u.x[g] * elapsed
			}
		}
		deficits[u.a.Job.ID] = u.deficit
	}
	p.units = p.units[:0]
	for _, j := range s.Jobs() {
		u := newUnit(j, len(s.Cluster.Groups))
		if other, has := p.Partner[j.Job.ID]; has && s.Requested() > s.Cluster.Devices() {
			if u.b = p.jobs[other]; u.b.Order < j.Order {
				continue
			}
		}
		if was := deficits[j.Job.ID]; was != nil {
			u.deficit = was
		}
		p.units = append(p.units, u)
	}
	for _, u := range p.units {
		u.x = make([]float64, len(u.received))
		sum := 0.0
		for g, group := range s.Cluster.Groups {
			u.x[g] = float64(group.Count*group.Devices) / float64(len(p.units)*u.a.Job.Devices)
			sum += u.x[g]
		}
		for g := range u.x {
			u.x[g] /= max(sum, 1)
		}
	}
	p.reset, p.stale = s.Now, false
	return nil
}

// draw separates pairs if a job has left or sharing does not pay, and draws new ones.
func (p *pairRounds) draw(s *scheduler.Snapshot) error {
	on := map[spec.JobID]int{} // group of each pair that ran, by its first job
	for _, u := range p.units {
		if u.b != nil && u.on >= 0 {
			on[u.a.Job.ID] = u.on
		}
	}
	for a, b := range p.Partner {
		x, y := p.jobs[a], p.jobs[b]
		pays := x != nil && y != nil
		if pays {
			if x.Order > y.Order {
				continue // each pair is in Partner twice
			}
			group, ran := on[a]
			if !ran {
				group = -1
			}
			var err error
			if pays, err = p.paid(s.Cluster, x.Job, y.Job, group); err != nil {
				return err
			}
		}
		if !pays {
			delete(p.Partner, a)
			delete(p.Partner, b)
		}
	}
	if s.Requested() <= s.Cluster.Devices() {
		return nil
	}
	bySize := map[int][]spec.JobID{}
	var sizes []int
	for _, j := range s.Jobs() {
		if _, has := p.Partner[j.Job.ID]; has {
			continue
		}
		if n := j.Job.Devices; bySize[n] == nil {
			sizes = append(sizes, n)
		}
		bySize[j.Job.Devices] = append(bySize[j.Job.Devices], j.Job.ID)
	}
	for _, n := range sizes {
		ids := bySize[n]
		p.random.Shuffle(len(ids), func(i, k int) { ids[i], ids[k] = ids[k], ids[i] })
		for i := 0; i+1 < len(ids); i += 2 {
			p.Partner[ids[i]], p.Partner[ids[i+1]] = ids[i+1], ids[i]
		}
	}
	return nil
}

// paid reports whether sharing pays for two jobs on the group they ran on last, or on any
// group if they did not run, -1.
func (p *pairRounds) paid(cl spec.Cluster, a, b *spec.Job, on int) (bool, error) {
	if on >= 0 {
		return p.Pays(cl, a, b, on)
	}
	for g := range cl.Groups {
		if pays, err := p.Pays(cl, a, b, g); err != nil || pays {
			return pays, err
		}
	}
	return false, nil
}

// contender is a unit that could run on a group.
type contender struct {
	*unit
	priority float64 // owed over received
}

// pick assigns units to groups, group by group like typeByType. The jobs of pairs that do
// not run may run alone on spare devices.
func (p *pairRounds) pick(s *scheduler.Snapshot) error {
	taken := map[spec.JobID]bool{}
	for _, u := range p.units {
		u.on = -1
	}
	all := slices.Clone(p.units)
	for _, u := range p.units {
		if u.b != nil {
			for _, j := range []*scheduler.JobState{u.a, u.b} {
				alone := newUnit(j, len(s.Cluster.Groups))
				alone.x = make([]float64, len(s.Cluster.Groups))
				all = append(all, alone)
			}
		}
	}
	idle := s.Idle()
	for g := range s.Cluster.Groups {
		contenders, err := p.contendersOn(s.Cluster, all, g)
		if err != nil {
			return err
		}
		left := idle.FreeIn(g)
		for _, t := range contenders {
			n := t.a.Job.Devices
			if n > left || taken[t.a.Job.ID] || t.b != nil && taken[t.b.Job.ID] {
				continue
			}
			left -= n
			taken[t.a.Job.ID] = true
			if t.b != nil {
				taken[t.b.Job.ID] = true
			}
			if t.x != nil || !p.rules.NewcomersWait {
				t.on = g
			}
		}
	}
	p.spare = slices.DeleteFunc(all[len(p.units):], func(u *unit) bool { return u.on < 0 })
	return nil
}

// contendersOn returns the units that could run on a group, by descending priority.
func (p *pairRounds) contendersOn(cl spec.Cluster, all []*unit, g int) (out []contender, err error) {
	for _, u := range all {
		can, err := p.runs(cl, u, g)
		if err != nil {
			return nil, err
		}
		if !can {
			continue
		}
		t := contender{unit: u}
		if u.x != nil {
			t.priority = u.x[g] / u.received[g]
		}
		out = append(out, t)
	}
	slices.SortStableFunc(out, func(a, b contender) int {
		return cmp.Or(cmp.Compare(b.priority, a.priority), cmp.Compare(b.deficit[g], a.deficit[g]))
	})
	return out, nil
}

// runs reports whether a unit can run on a group.
func (p *pairRounds) runs(cl spec.Cluster, u *unit, g int) (bool, error) {
	if u.b != nil {
		return p.Runs(cl, u.a.Job, u.b.Job, g)
	}
	return p.candidate(u.a.Job, g) >= 0, nil
}

// candidate returns the index of a job's candidate on a group, -1 if it does not run there.
func (p *pairRounds) candidate(j *spec.Job, g int) int {
	return slices.IndexFunc(p.candidates[j.ID].All(), func(w gavel.Candidate) bool { return w.Group == g })
}

// grants finds devices for the assigned units. A unit that stays on its group keeps its
// devices; the others are placed largest first.
func (p *pairRounds) grants(s *scheduler.Snapshot) (out []*scheduler.Grant) {
	running := slices.DeleteFunc(slices.Concat(p.units, p.spare), func(u *unit) bool { return u.on < 0 })
	keeps := map[spec.JobID]bool{}
	running = slices.DeleteFunc(running, func(u *unit) bool {
		old, with := u.a.Grant, spec.JobID("")
		if u.b != nil {
			with = u.b.Job.ID
		}
		if old == nil || old.With != with || s.Cluster.GroupOf(old.Slots[0].Node) != u.on {
			return false
		}
		out, keeps[u.a.Job.ID] = append(out, old), true
		if u.b != nil {
			out, keeps[with] = append(out, u.b.Grant), true
		}
		return true
	})
	free := s.Free()
	for _, j := range s.Jobs() {
		if j.Grant != nil && !keeps[j.Job.ID] {
			free.Give(j.Grant.Counts())
		}
	}
	slices.SortStableFunc(running, func(a, b *unit) int { return cmp.Compare(b.a.Job.Devices, a.a.Job.Devices) })
	for _, u := range running {
		out = append(out, p.place(s.Cluster, free, u)...)
	}
	return out
}

// place returns the grants of a unit, none if it does not fit.
func (p *pairRounds) place(cl spec.Cluster, free *scheduler.Inventory, u *unit) []*scheduler.Grant {
	a := u.a.Job
	if u.b == nil {
		g := p.Place(free, a, p.candidates[a.ID], p.candidate(a, u.on))
		if g == nil {
			return nil
		}
		free.Take(g.Slots)
		return []*scheduler.Grant{g}
	}
	b := u.b.Job
	ofA, ofB := p.PlacePair(cl, free, a, b, u.on)
	if ofA == nil {
		return nil
	}
	free.Take(ofA.Counts())
	free.Take(ofB.Counts())
	return []*scheduler.Grant{ofA, ofB}
}
