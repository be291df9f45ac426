package pacer

import (
	"context"
	"fmt"
	"hash/fnv"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/scheduler"
	"github.com/pacer-ml/pacer/scheduler/internal/candidate"
)

// deadlines are the times at which jobs would end under fifo-backfill as submitted.
// Those are believed as speeds are, and move further than these do: one job that
// ends a little earlier lets in another, and all behind it run otherwise. So there
// are several cases. In the first all speeds are as believed, in the others they are
// drawn from their intervals, each way to run once for all jobs, in pairs of which one
// has as much more than believed as the other less.
//
// When the belief has learnt, all is run again from the beginning: what it had been
// promised before its speed was known is nothing to go by.
type deadlines struct {
	belief  *candidate.Finder
	caution float64 // as a part of the intervals
	draws   map[drawKey]*[pairs]float64
	cases   []*reference

	log    []*arrival // since the cases were last empty, in order
	inside map[spec.JobID]*arrival
	models map[string]*learnt
}

// pairs is how many pairs of drawn cases there are. The time that guaranteed jobs cost
// grows with it.
const pairs = 4

// drawKey is what two ways have in common of which one is not known better than the
// other.
type drawKey struct {
	model string
	group int
	plan  spec.Plan
	shape string
}

// learnt is what was believed of a model when the cases were run.
type learnt struct {
	job      *spec.Job // one of it
	revision int
}

func newDeadlines(b *candidate.Finder, caution float64) *deadlines {
	return &deadlines{belief: b, caution: caution, draws: map[drawKey]*[pairs]float64{}, inside: map[spec.JobID]*arrival{}, models: map[string]*learnt{}}
}

// follow brings all cases to s.
func (p *deadlines) follow(ctx context.Context, s *scheduler.Snapshot) error {
	if p.cases == nil {
		p.cases = []*reference{newReference(p.belief, s.Cluster)}
	}
	came, gone := p.changes(s)
	p.log = append(p.log, came...)
	if p.stale(s.Cluster, came) {
		if err := p.replay(ctx, s); err != nil {
			return err
		}
	} else {
		for _, h := range p.cases {
			if err := h.step(ctx, s, came, gone); err != nil {
				return err
			}
		}
	}
	if !slices.ContainsFunc(p.cases, func(h *reference) bool { return !h.idle() }) {
		p.log = nil
	}
	return nil
}

// step brings one case to s.
func (h *reference) step(ctx context.Context, s *scheduler.Snapshot, came, gone []*arrival) error {
	if err := h.advance(ctx, s.Cluster, s.Now); err != nil {
		return err
	}
	if err := h.leave(ctx, s.Cluster, gone); err != nil {
		return err
	}
	return h.enter(ctx, s.Cluster, came)
}

// changes returns the jobs that came and left since the last call.
func (p *deadlines) changes(s *scheduler.Snapshot) (came, gone []*arrival) {
	inside := make(map[spec.JobID]*arrival, len(p.inside))
	for _, j := range s.Jobs() {
		a := p.inside[j.Job.ID]
		if a == nil {
			a = &arrival{job: j.Job, steps: j.Done + j.Remaining, start: j.StartCost, came: s.Now}
			came = append(came, a)
		}
		inside[j.Job.ID] = a
	}
	for id, a := range p.inside {
		if inside[id] == nil {
			a.gone = s.Now
			gone = append(gone, a)
		}
	}
	p.inside = inside
	return came, gone
}

// stale reports whether something else is believed than what the cases were run
// with.
func (p *deadlines) stale(c spec.Cluster, came []*arrival) (changed bool) {
	if p.belief.Learns == nil {
		return false
	}
	for _, a := range came {
		if p.models[a.job.Model.Name] == nil {
			p.models[a.job.Model.Name] = &learnt{a.job, p.belief.Revision(c, a.job)}
		}
	}
	for _, m := range p.models {
		if r := p.belief.Revision(c, m.job); r != m.revision {
			m.revision, changed = r, true
		}
	}
	return changed
}

// replay runs all cases again. Jobs that came before the log begins have ended.
func (p *deadlines) replay(ctx context.Context, s *scheduler.Snapshot) error {
	for i, old := range p.cases {
		h := newReference(p.belief, s.Cluster)
		h.slower = old.slower
		if err := h.again(ctx, s, p.log); err != nil {
			return err
		}
		for id := range p.inside {
			if j := old.jobs[id]; h.jobs[id] == nil && j != nil {
				h.jobs[id] = j
			}
		}
		p.cases[i] = h
	}
	return nil
}

// again runs h from the beginning of a log.
func (h *reference) again(ctx context.Context, s *scheduler.Snapshot, log []*arrival) error {
	for len(log) > 0 {
		n := 1
		for n < len(log) && log[n].came == log[0].came {
			n++
		}
		if err := h.advance(ctx, s.Cluster, log[0].came); err != nil {
			return err
		}
		if err := h.enter(ctx, s.Cluster, log[:n]); err != nil {
			return err
		}
		log = log[n:]
	}
	for id, j := range h.jobs {
		if j.gone > 0 {
			delete(h.jobs, id)
		}
	}
	return h.advance(ctx, s.Cluster, s.Now)
}

// look finds how those run that wait, in all cases.
func (p *deadlines) look(ctx context.Context, s *scheduler.Snapshot) error {
	if len(p.cases) == 1 && p.caution > 0 {
		if unsure, err := p.unsure(ctx, s); err != nil {
			return err
		} else if unsure {
			for k := range 2 * pairs {
				p.cases = append(p.cases, &reference{slower: func(j *spec.Job, w *candidate.Config) float64 { return p.slower(k, j, w) }, jobs: p.cases[0].jobs})
			}
			if err := p.replay(ctx, s); err != nil {
				return err
			}
		}
	}
	for _, h := range p.cases {
		if err := h.look(ctx, s.Cluster); err != nil {
			return err
		}
	}
	return nil
}

// unsure reports whether the speed of a job inside is not sure as it was submitted.
func (p *deadlines) unsure(ctx context.Context, s *scheduler.Snapshot) (bool, error) {
	for _, j := range s.Jobs() {
		w, err := p.belief.AsSubmitted(ctx, s.Cluster, j.Job)
		if err != nil {
			return false, err
		}
		for i := range w.Configs {
			if w.Configs[i].Spread > 0 {
				return true, nil
			}
		}
	}
	return false, nil
}

// sure90 is the half width of the 90 % interval of a normal distribution, in
// standard deviations.
const sure90 = 1.645

// slower returns how many times as long as believed a job runs in a way, in drawn
// case k.
func (p *deadlines) slower(k int, j *spec.Job, w *candidate.Config) float64 {
	if w.Spread == 0 {
		return 1
	}
	key := drawKey{j.Model.Name, w.Group, w.Plan, w.Shape.Devices}
	z := p.draws[key]
	if z == nil {
		z = draw(key)
		p.draws[key] = z
	}
	x := p.caution * w.Spread / sure90 * z[k/2]
	if k%2 == 1 {
		x = -x
	}
	return math.Exp(x)
}

// draw returns numbers of a normal distribution that are a function of key.
func draw(key drawKey) *[pairs]float64 {
	h := fnv.New64a()
	fmt.Fprintf(h, "%s %d %s %s", key.model, key.group, key.plan, key.shape)
	rng := rand.New(rand.NewPCG(h.Sum64(), 0x70726f6d))
	z := new([pairs]float64)
	for i := range z {
		z[i] = rng.NormFloat64()
	}
	return z
}

// due is by when a job should be done in one case.
type due struct {
	end, start time.Duration // done, and started as submitted
	slower     func(*spec.Job, *candidate.Config) float64
}

// deadlinesOf returns by when j should be done, of each case in which it ever is. As
// submitted it is as fast in truth as in the case.
func (p *deadlines) deadlinesOf(j *scheduler.JobState) (out []due) {
	share := 0.0
	if j.Remaining > 0 {
		share = j.Remaining / (j.Done + j.Remaining)
	}
	for _, h := range p.cases {
		mine := h.of(j.Job.ID)
		if mine == nil || mine.slots == nil {
			continue
		}
		out = append(out, due{mine.end, mine.end - j.StartCost - time.Duration(share*float64(mine.run)), h.slower})
	}
	return out
}

// takes returns how many seconds j has to run in a way.
func (d *due) takes(j *scheduler.JobState, w *candidate.Config) float64 {
	run := candidate.RunTime(j, w.Rate)
	if d.slower != nil {
		run *= d.slower(j.Job, w)
	}
	return run
}
