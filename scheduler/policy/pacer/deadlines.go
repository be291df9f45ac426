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
	"github.com/pacer-ml/pacer/perfmodel/spec/stats"
	"github.com/pacer-ml/pacer/scheduler"
	"github.com/pacer-ml/pacer/scheduler/internal/candidate"
)

// deadlines computes the deadlines of guaranteed jobs: the times at which they would end
// under fifo-backfill as submitted, in a reference run. A small error of a predicted speed
// can move these times far, because all later starts depend on each end. So there are
// several cases, each with a reference run. The first uses the predicted speeds. The others
// draw speeds from their intervals, one draw per configuration for all jobs, in antithetic
// pairs: one case of a pair is as much faster as the other is slower.
//
// When predictions about jobs as submitted change, all cases are run again from the start.
type deadlines struct {
	finder  *candidate.Finder
	caution float64 // option caution
	draws   map[drawKey]*[drawnPairs]float64
	cases   []*reference

	log     []*arrival // jobs that arrived since the cases were last idle
	present map[spec.JobID]*arrival
	sizes   map[modelSize]*revision
}

// drawnPairs is the number of pairs of drawn cases. The computing time for guaranteed jobs
// is proportional to it.
const drawnPairs = 4

// drawKey identifies configurations with a common draw.
type drawKey struct {
	model string
	group int
	plan  spec.Plan
	shape string
}

// modelSize identifies jobs of a model that ask for so many devices.
type modelSize struct {
	model   string
	devices int
}

// revision is that of the predictions about jobs as submitted which the cases were run with.
type revision struct {
	job *spec.Job // an example
	n   int       // Finder.SubmittedRevision
}

func newDeadlines(b *candidate.Finder, caution float64) *deadlines {
	return &deadlines{finder: b, caution: caution, draws: map[drawKey]*[drawnPairs]float64{}, present: map[spec.JobID]*arrival{}, sizes: map[modelSize]*revision{}}
}

// update advances all cases to s.
func (p *deadlines) update(ctx context.Context, s *scheduler.Snapshot) error {
	if p.cases == nil {
		p.cases = []*reference{newReference(p.finder, s.Cluster)}
	}
	arrived, ended := p.changes(s)
	p.log = append(p.log, arrived...)
	if p.stale(s.Cluster, arrived) {
		if err := p.replay(ctx, s); err != nil {
			return err
		}
	} else {
		for _, h := range p.cases {
			if err := h.step(ctx, s, arrived, ended); err != nil {
				return err
			}
		}
	}
	if !slices.ContainsFunc(p.cases, func(h *reference) bool { return !h.idle() }) {
		p.log = nil
	}
	return nil
}

// step advances one case to s.
func (h *reference) step(ctx context.Context, s *scheduler.Snapshot, arrived, ended []*arrival) error {
	if err := h.advance(ctx, s.Cluster, s.Now); err != nil {
		return err
	}
	if err := h.leave(ctx, s.Cluster, ended); err != nil {
		return err
	}
	return h.enter(ctx, s.Cluster, arrived)
}

// changes returns the jobs that arrived and ended since the last call.
func (p *deadlines) changes(s *scheduler.Snapshot) (arrived, ended []*arrival) {
	present := make(map[spec.JobID]*arrival, len(p.present))
	for _, j := range s.Jobs() {
		a := p.present[j.Job.ID]
		if a == nil {
			a = &arrival{job: j.Job, steps: j.Done + j.Remaining, start: j.StartCost, arrived: s.Now}
			arrived = append(arrived, a)
		}
		present[j.Job.ID] = a
	}
	for id, a := range p.present {
		if present[id] == nil {
			a.ended = s.Now
			ended = append(ended, a)
		}
	}
	p.present = present
	return arrived, ended
}

// stale reports whether predictions have changed since the cases were run.
func (p *deadlines) stale(c spec.Cluster, arrived []*arrival) (changed bool) {
	for _, a := range arrived {
		key := modelSize{a.job.Model.Name, a.job.Devices}
		if p.sizes[key] == nil {
			p.sizes[key] = &revision{a.job, p.finder.SubmittedRevision(c, a.job)}
		}
	}
	var present map[modelSize]bool
	for key, r := range p.sizes {
		now := p.finder.SubmittedRevision(c, r.job)
		if now == r.n {
			continue
		}
		if present == nil {
			present = p.presentSizes()
		}
		r.n, changed = now, changed || p.finder.Learns != nil || present[key] && len(p.log) <= mostReplayed
	}
	return changed
}

// presentSizes returns the sizes of the jobs in the system.
func (p *deadlines) presentSizes() map[modelSize]bool {
	out := map[modelSize]bool{}
	for _, a := range p.present {
		out[modelSize{a.job.Model.Name, a.job.Devices}] = true
	}
	return out
}

// mostReplayed is the number of arrivals since the cases were last idle up to which cases are run again for speeds that the
// progress of jobs shows. With more, later starts alone have these speeds.
const mostReplayed = 1000

// replay runs all cases again. Jobs that arrived before the first in the log have ended in
// all cases.
func (p *deadlines) replay(ctx context.Context, s *scheduler.Snapshot) error {
	for i, old := range p.cases {
		h := newReference(p.finder, s.Cluster)
		h.slowdown = old.slowdown
		if err := h.rerun(ctx, s, p.log); err != nil {
			return err
		}
		for id := range p.present {
			if j := old.jobs[id]; h.jobs[id] == nil && j != nil {
				h.jobs[id] = j
			}
		}
		p.cases[i] = h
	}
	return nil
}

// rerun runs h from the first arrival of a log.
func (h *reference) rerun(ctx context.Context, s *scheduler.Snapshot, log []*arrival) error {
	for len(log) > 0 {
		n := 1
		for n < len(log) && log[n].arrived == log[0].arrived {
			n++
		}
		if err := h.advance(ctx, s.Cluster, log[0].arrived); err != nil {
			return err
		}
		if err := h.enter(ctx, s.Cluster, log[:n]); err != nil {
			return err
		}
		log = log[n:]
	}
	for id, j := range h.jobs {
		if j.ended > 0 {
			delete(h.jobs, id)
		}
	}
	return h.advance(ctx, s.Cluster, s.Now)
}

// forecast computes when waiting jobs start and end, in all cases. If a speed is uncertain
// it adds the drawn cases first.
func (p *deadlines) forecast(ctx context.Context, s *scheduler.Snapshot) error {
	if len(p.cases) == 1 && p.caution > 0 {
		if unsure, err := p.uncertain(ctx, s); err != nil {
			return err
		} else if unsure {
			for k := range 2 * drawnPairs {
				p.cases = append(p.cases, &reference{slowdown: func(j *spec.Job, w *candidate.Config) float64 { return p.slowdown(k, j, w) }, jobs: p.cases[0].jobs})
			}
			if err := p.replay(ctx, s); err != nil {
				return err
			}
		}
	}
	for _, h := range p.cases {
		if err := h.forecastWaiting(ctx, s.Cluster); err != nil {
			return err
		}
	}
	return nil
}

// uncertain reports whether the predicted speed of a job as submitted has an interval.
func (p *deadlines) uncertain(ctx context.Context, s *scheduler.Snapshot) (bool, error) {
	for _, j := range s.Jobs() {
		w, err := p.finder.AsSubmitted(ctx, s.Cluster, j.Job)
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

// slowdown returns the run time of a job in drawn case k divided by the predicted one.
func (p *deadlines) slowdown(k int, j *spec.Job, w *candidate.Config) float64 {
	if w.Spread == 0 {
		return 1
	}
	key := drawKey{j.Model.Name, w.Group, w.Plan, w.Shape.Devices}
	z := p.draws[key]
	if z == nil {
		z = draw(key)
		p.draws[key] = z
	}
	x := p.caution * w.Spread / stats.Normal90 * z[k/2]
	if k%2 == 1 {
		x = -x
	}
	return math.Exp(x)
}

// draw returns standard normal numbers that depend on key only.
func draw(key drawKey) *[drawnPairs]float64 {
	h := fnv.New64a()
	fmt.Fprintf(h, "%s %d %s %s", key.model, key.group, key.plan, key.shape)
	rng := rand.New(rand.NewPCG(h.Sum64(), 0x70726f6d))
	z := new([drawnPairs]float64)
	for i := range z {
		z[i] = rng.NormFloat64()
	}
	return z
}

// deadline is the deadline of a job in one case.
type deadline struct {
	end      time.Duration
	slowdown func(*spec.Job, *candidate.Config) float64
}

// deadlinesOf returns the deadline of j in each case in which it ends.
func (p *deadlines) deadlinesOf(j *scheduler.JobState) (out []deadline) {
	for _, h := range p.cases {
		if mine := h.of(j.Job.ID); mine != nil && mine.slots != nil {
			out = append(out, deadline{mine.end, h.slowdown})
		}
	}
	return out
}

// runTime returns the remaining run time of j in a configuration, in seconds.
func (d *deadline) runTime(j *scheduler.JobState, w *candidate.Config) float64 {
	run := candidate.RunTime(j, w.Rate)
	if d.slowdown != nil {
		run *= d.slowdown(j.Job, w)
	}
	return run
}
