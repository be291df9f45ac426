package gavel

import (
	"cmp"
	"context"
	"math/bits"
	"slices"
	"time"

	"gonum.org/v1/gonum/mathext/prng"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/scheduler"
	"github.com/pacer-ml/pacer/scheduler/policy/gavel"
)

// typeByType is the round mechanism of Gavel's simulator (stanford-futuredata/gavel
// at commit c4fa400, scheduler/scheduler.py). It decides once a round, when it begins.
type typeByType struct {
	*gavel.Allocation
	rules    *Rounds
	shuffler *prng.MT19937

	began    time.Duration // of the round before
	ran      bool          // whether a job ran in it
	clock    float64       // seconds, when it began
	ended    float64       // seconds, start of the last round with a running job
	reset    float64       // seconds, of the last recomputation
	given    []float64     // seconds, what all jobs got of each group since, half a round each to begin with
	stale    bool          // jobs have come or gone since
	tallies  map[spec.JobID]*tally
	warnings []string
}

// tally is what a job got of each group since the last recomputation, and what
// it was short of until then.
type tally struct {
	menu    gavel.Candidates
	way     []int     // by group, -1 = it does not run there
	x       []float64 // fractions by group, nil before the first recomputation
	got     []float64 // seconds, half a round to begin with
	deficit []float64 // seconds
	on      int       // the group it ran on in the round before, -1 = none
	done    float64   // steps it had made by then
	there   bool      // it is still there
}

// shuffleSeed seeds the Mersenne Twister that shuffles the types of devices in runs
// with seed 0.
const shuffleSeed = 5

func newTypeByType(a *gavel.Allocation, r *Rounds) scheduler.Policy {
	p := &typeByType{Allocation: a, rules: r, shuffler: prng.NewMT19937(), tallies: map[spec.JobID]*tally{}}
	p.shuffler.SeedFromKeys([]uint32{shuffleSeed})
	return p
}

func (p *typeByType) Decide(ctx context.Context, s *scheduler.Snapshot) (scheduler.Decision, error) {
	jobs, err := p.note(ctx, s)
	if err != nil {
		return scheduler.Decision{}, err
	}
	if p.stale && (p.reset == 0 || p.clock-p.reset >= p.rules.Least.Seconds()) {
		if err := p.recompute(ctx, s, jobs); err != nil {
			return scheduler.Decision{}, err
		}
	}
	p.pick(s, jobs)
	d := scheduler.Decision{Grants: p.grants(s, jobs), Warnings: p.warnings}
	p.explain(s, &d, jobs)
	p.began, p.ran = s.Now, len(d.Grants) > 0
	return d, nil
}

// explain says by which share of the time jobs run, or do not.
func (p *typeByType) explain(s *scheduler.Snapshot, d *scheduler.Decision, jobs []*tally) {
	if !s.Reasons {
		return
	}
	for i, j := range s.Jobs() {
		switch t := jobs[i]; {
		case t.on < 0:
			d.Because(s, j.Job.ID, "others are owed more of the time, or nothing is left of their types")
		case t.x == nil:
			d.Because(s, j.Job.ID, "new: no share of the time is worked out yet")
		default:
			d.Because(s, j.Job.ID, "a share of %.3g of the time on %s, had %.0f s", t.x[t.on], s.Cluster.Groups[t.on].Accelerator.Name, t.got[t.on])
		}
	}
}

// note writes down what the round before gave the jobs of s, and returns their
// tallies.
func (p *typeByType) note(ctx context.Context, s *scheduler.Snapshot) ([]*tally, error) {
	if !p.ran && s.Now == p.began {
		p.reset = 0 // no job ran and none will arrive, or time would have passed
	}
	p.credit(s)
	for _, t := range p.tallies {
		t.there = false
	}
	jobs := make([]*tally, len(s.Jobs()))
	for i, j := range s.Jobs() {
		t := p.tallies[j.Job.ID]
		if t == nil {
			var err error
			if t, err = p.open(ctx, s, j); err != nil {
				return nil, err
			}
		}
		t.done, t.there, jobs[i] = j.Done, true, t
	}
	for id, t := range p.tallies {
		if !t.there {
			delete(p.tallies, id)
			p.stale = true
		}
	}
	return jobs, nil
}

// stretch is the time a job got in a round.
type stretch struct {
	job    *tally
	number int
	finish float64 // seconds
}

// credit adds the round before to what jobs got, those that ended with it
// included. A job's time counts from the end of the round before that, even after
// a gap. Times are seconds since the beginning, as there, and added in the order
// they are there, the longest first: what rounding leaves decides among jobs that
// had equally much.
func (p *typeByType) credit(s *scheduler.Snapshot) {
	var legs []stretch
	add := func(j *scheduler.JobState) {
		if t := p.tallies[j.Job.ID]; t != nil && t.on >= 0 {
			legs = append(legs, stretch{t, j.Order, p.clock + (j.Done-t.done)/t.menu.All()[t.way[t.on]].Rate})
		}
	}
	for _, j := range s.Jobs() {
		add(j)
	}
	for i := range s.Ended {
		add(&s.Ended[i])
	}
	if len(legs) == 0 {
		p.clock = s.Now.Seconds()
		return
	}
	slices.SortFunc(legs, func(a, b stretch) int {
		return cmp.Or(cmp.Compare(b.finish, a.finish), cmp.Compare(a.number, b.number))
	})
	for _, l := range legs {
		sec := l.finish - p.ended
		l.job.got[l.job.on] += sec
		p.given[l.job.on] += sec
	}
	p.clock, p.ended = legs[0].finish, legs[0].finish
}

// open begins the tally of a job that came.
func (p *typeByType) open(ctx context.Context, s *scheduler.Snapshot, j *scheduler.JobState) (*tally, error) {
	f, err := p.Candidates(ctx, s.Cluster, j.Job)
	if err != nil {
		return nil, err
	}
	n := len(s.Cluster.Groups)
	t := &tally{menu: f, way: slices.Repeat([]int{-1}, n), got: slices.Repeat([]float64{halfRound}, n), deficit: make([]float64, n), on: -1}
	for k, w := range f.All() {
		t.way[w.Group] = k
	}
	p.tallies[j.Job.ID], p.stale = t, true
	return t, nil
}

// halfRound is the initial credit of every job, so that no job has received nothing.
const halfRound = 180 // s

// recompute asks the objective and begins the count of time again.
func (p *typeByType) recompute(ctx context.Context, s *scheduler.Snapshot, jobs []*tally) error {
	shares, err := p.Fractions(ctx, s)
	if err != nil {
		return err
	}
	elapsed := p.clock - p.reset
	p.given = slices.Repeat([]float64{halfRound * float64(len(jobs))}, len(s.Cluster.Groups))
	for i, t := range jobs {
		for g := range t.got {
			t.deficit[g] -= t.got[g] - halfRound
			if t.x != nil {
				t.deficit[g] += t.x[g] * elapsed
			}
			t.got[g] = halfRound
		}
		t.x = make([]float64, len(t.got))
		for k, w := range shares.Jobs[i].Candidates {
			t.x[w.Group] = shares.Jobs[i].X[k]
		}
	}
	p.reset, p.stale, p.warnings = p.clock, false, shares.Warnings
	return nil
}

// bid is a job that could run on a group.
type bid struct {
	job               int
	right, deficit, x float64
}

// pick assigns jobs group by group, within each in descending owed/received ratio. A job
// without fractions takes devices but does not run.
func (p *typeByType) pick(s *scheduler.Snapshot, jobs []*tally) {
	for _, t := range jobs {
		t.on = -1
	}
	taken := make([]bool, len(jobs))
	idle := s.Idle()
	for _, g := range p.visits(len(s.Cluster.Groups)) {
		left := idle.FreeIn(g)
		for _, b := range p.bids(jobs, g) {
			t := jobs[b.job]
			if taken[b.job] || left == 0 || p.Objective.Strict && b.right <= 0 {
				continue
			}
			n := t.menu.All()[t.way[g]].Devices
			if n > left {
				continue
			}
			left -= n
			taken[b.job] = true
			if t.x != nil || !p.rules.NewcomersWait {
				t.on = g
			}
		}
	}
}

// bids returns the jobs that could run on group g, best first.
func (p *typeByType) bids(jobs []*tally, g int) []bid {
	bids := make([]bid, 0, len(jobs))
	for i, t := range jobs {
		if t.way[g] < 0 {
			continue
		}
		b := bid{job: i, deficit: t.deficit[g]}
		if t.x != nil {
			b.x = t.x[g]
			b.right = b.x / (t.got[g] / p.given[g])
		}
		bids = append(bids, b)
	}
	slices.SortStableFunc(bids, func(a, b bid) int {
		return cmp.Or(cmp.Compare(b.right, a.right), cmp.Compare(b.deficit, a.deficit), cmp.Compare(b.x, a.x))
	})
	return bids
}

// visits is the order of the groups: the cluster's, shuffled for objectives that
// are told nothing of speeds as random.shuffle of CPython does it.
func (p *typeByType) visits(n int) []int {
	out := make([]int, n)
	for i := range out {
		out[i] = i
	}
	if !p.Objective.Agnostic {
		return out
	}
	for i := n - 1; i > 0; i-- {
		j := i + 1
		for j > i {
			j = int(p.shuffler.Uint32() >> (32 - bits.Len(uint(i+1))))
		}
		out[i], out[j] = out[j], out[i]
	}
	return out
}

// grants finds the devices: who stays on its group keeps its own, then the
// largest first.
func (p *typeByType) grants(s *scheduler.Snapshot, jobs []*tally) []*scheduler.Grant {
	now, free := s.Jobs(), s.Free()
	var out []*scheduler.Grant
	var moving []int
	for i, t := range jobs {
		old := now[i].Grant
		if old != nil && t.on >= 0 && gavel.GroupOf(s.Cluster, old.Slots[0].Node) == t.on {
			out = append(out, old)
			continue
		}
		if old != nil {
			free.Give(old.Slots)
		}
		if t.on >= 0 {
			moving = append(moving, i)
		}
	}
	size := func(i int) int { return jobs[i].menu.All()[jobs[i].way[jobs[i].on]].Devices }
	slices.SortStableFunc(moving, func(a, b int) int { return cmp.Compare(size(b), size(a)) })
	for _, i := range moving {
		t := jobs[i]
		if g := p.Place(free, now[i].Job, t.menu, t.way[t.on]); g != nil {
			free.Take(g.Slots)
			out = append(out, g)
		} else {
			t.on = -1
		}
	}
	return out
}
