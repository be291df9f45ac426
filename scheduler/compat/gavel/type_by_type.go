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
// at commit c4fa400, scheduler/scheduler.py). It decides at the begin of each round.
type typeByType struct {
	*gavel.Allocation
	rules    *Rounds
	shuffler *prng.MT19937

	began    time.Duration // begin of the previous round
	ran      bool          // a job ran in it
	clock    float64       // its begin, in seconds
	ended    float64       // seconds, begin of the last round with a running job
	reset    float64       // seconds, time of the last recomputation
	given    []float64     // seconds that all jobs received by group since then, initially halfRound each
	stale    bool          // jobs have arrived or left since
	tallies  map[spec.JobID]*tally
	warnings []string
}

// tally is the time a job received on each group since the last recomputation, and its
// deficit before that.
type tally struct {
	candidates gavel.Candidates
	candidate  []int     // index by group, -1 = it does not run there
	x          []float64 // fractions by group, nil before the first recomputation
	received   []float64 // seconds, initially halfRound
	deficit    []float64 // seconds
	on         int       // group it ran on in the previous round, -1 = none
	done       float64   // steps done before that round
	present    bool      // it is still in the system
}

// shuffleSeed is the seed of the Mersenne Twister that shuffles the types of devices in the
// simulator's runs with seed 0.
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

// explain sets the reasons: the jobs' fractions of time.
func (p *typeByType) explain(s *scheduler.Snapshot, d *scheduler.Decision, jobs []*tally) {
	if !s.Reasons {
		return
	}
	for i, j := range s.Jobs() {
		switch t := jobs[i]; {
		case t.on < 0:
			d.Because(s, j.Job.ID, "other jobs have a higher priority, or no device is left")
		case t.x == nil:
			d.Because(s, j.Job.ID, "new: its fraction of time is not computed yet")
		default:
			d.Because(s, j.Job.ID, "fraction %.3g of the time on %s, received %.0f s", t.x[t.on], s.Cluster.Groups[t.on].Accelerator.Name, t.received[t.on])
		}
	}
}

// note records the time received in the previous round, arrivals and completions, and
// returns the tallies of the jobs of s.
func (p *typeByType) note(ctx context.Context, s *scheduler.Snapshot) ([]*tally, error) {
	if !p.ran && s.Now == p.began {
		p.reset = 0 // no job ran and none will arrive, or time would have passed
	}
	p.credit(s)
	for _, t := range p.tallies {
		t.present = false
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
		t.done, t.present, jobs[i] = j.Done, true, t
	}
	for id, t := range p.tallies {
		if !t.present {
			delete(p.tallies, id)
			p.stale = true
		}
	}
	return jobs, nil
}

// segment is the time of a job in a round.
type segment struct {
	job    *tally
	number int
	finish float64 // seconds
}

// credit adds the previous round to the received times, also of jobs that ended in it. The
// time of a job begins at the end of the last round with a running job, even after a gap.
// Times are in seconds and added in the order of the simulator, longest first, because
// rounding errors break ties between jobs.
func (p *typeByType) credit(s *scheduler.Snapshot) {
	var segments []segment
	add := func(j *scheduler.JobState) {
		if t := p.tallies[j.Job.ID]; t != nil && t.on >= 0 {
			segments = append(segments, segment{t, j.Order, p.clock + (j.Done-t.done)/t.candidates.All()[t.candidate[t.on]].Rate})
		}
	}
	for _, j := range s.Jobs() {
		add(j)
	}
	for i := range s.Ended {
		add(&s.Ended[i])
	}
	if len(segments) == 0 {
		p.clock = s.Now.Seconds()
		return
	}
	slices.SortFunc(segments, func(a, b segment) int {
		return cmp.Or(cmp.Compare(b.finish, a.finish), cmp.Compare(a.number, b.number))
	})
	for _, l := range segments {
		sec := l.finish - p.ended
		l.job.received[l.job.on] += sec
		p.given[l.job.on] += sec
	}
	p.clock, p.ended = segments[0].finish, segments[0].finish
}

// open adds the tally of an arrival.
func (p *typeByType) open(ctx context.Context, s *scheduler.Snapshot, j *scheduler.JobState) (*tally, error) {
	f, err := p.Candidates(ctx, s.Cluster, j.Job)
	if err != nil {
		return nil, err
	}
	n := len(s.Cluster.Groups)
	t := &tally{candidates: f, candidate: slices.Repeat([]int{-1}, n), received: slices.Repeat([]float64{halfRound}, n), deficit: make([]float64, n), on: -1}
	for k, w := range f.All() {
		t.candidate[w.Group] = k
	}
	p.tallies[j.Job.ID], p.stale = t, true
	return t, nil
}

// halfRound is the initial credit of every job, so that no job has received nothing.
const halfRound = 180 // s

// recompute computes the fractions, and resets the received times.
func (p *typeByType) recompute(ctx context.Context, s *scheduler.Snapshot, jobs []*tally) error {
	shares, err := p.Fractions(ctx, s)
	if err != nil {
		return err
	}
	elapsed := p.clock - p.reset
	p.given = slices.Repeat([]float64{halfRound * float64(len(jobs))}, len(s.Cluster.Groups))
	for i, t := range jobs {
		for g := range t.received {
			t.deficit[g] -= t.received[g] - halfRound
			if t.x != nil {
				t.deficit[g] += t.x[g] * elapsed
			}
			t.received[g] = halfRound
		}
		t.x = make([]float64, len(t.received))
		for k, w := range shares.Jobs[i].Candidates {
			t.x[w.Group] = shares.Jobs[i].X[k]
		}
	}
	p.reset, p.stale, p.warnings = p.clock, false, shares.Warnings
	return nil
}

// ranked is a job that could run on a group.
type ranked struct {
	job                  int
	priority, deficit, x float64
}

// compare orders by descending priority, deficit and fraction, then by arrival.
func (a ranked) compare(b ranked) int {
	switch {
	case a.priority != b.priority:
		return cmp.Compare(b.priority, a.priority)
	case a.deficit != b.deficit:
		return cmp.Compare(b.deficit, a.deficit)
	}
	return cmp.Or(cmp.Compare(b.x, a.x), cmp.Compare(a.job, b.job))
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
		for _, b := range p.rank(jobs, g) {
			t := jobs[b.job]
			if taken[b.job] || left == 0 || p.Objective.Strict && b.priority <= 0 {
				continue
			}
			n := t.candidates.All()[t.candidate[g]].Devices
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

// rank returns the jobs that could run on group g, by descending priority.
func (p *typeByType) rank(jobs []*tally, g int) []ranked {
	out := make([]ranked, 0, len(jobs))
	for i, t := range jobs {
		if t.candidate[g] < 0 {
			continue
		}
		b := ranked{job: i, deficit: t.deficit[g]}
		if t.x != nil {
			b.x = t.x[g]
			b.priority = b.x / (t.received[g] / p.given[g])
		}
		out = append(out, b)
	}
	slices.SortFunc(out, ranked.compare)
	return out
}

// visits returns the order of the groups: that of the cluster, or for objectives without
// speeds shuffled like random.shuffle of CPython.
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

// grants finds devices for the assigned jobs. A job that stays on its group keeps its
// devices; the others are placed largest first.
func (p *typeByType) grants(s *scheduler.Snapshot, jobs []*tally) []*scheduler.Grant {
	now, free := s.Jobs(), s.Free()
	var out []*scheduler.Grant
	var moving []int
	for i, t := range jobs {
		old := now[i].Grant
		if old != nil && t.on >= 0 && s.Cluster.GroupOf(old.Slots[0].Node) == t.on {
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
	size := func(i int) int { return jobs[i].candidates.All()[jobs[i].candidate[jobs[i].on]].Devices }
	slices.SortStableFunc(moving, func(a, b int) int { return cmp.Compare(size(b), size(a)) })
	for _, i := range moving {
		t := jobs[i]
		if g := p.Place(free, now[i].Job, t.candidates, t.candidate[t.on]); g != nil {
			free.Take(g.Slots)
			out = append(out, g)
		} else {
			t.on = -1
		}
	}
	return out
}
