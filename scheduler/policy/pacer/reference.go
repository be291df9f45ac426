package pacer

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/scheduler"
	"github.com/pacer-ml/pacer/scheduler/internal/candidate"
)

// reference is the reference run of one case: the same jobs under fifo-backfill, each with
// its submitted plan and size, for its predicted run time.
type reference struct {
	finder   *candidate.Finder
	slowdown func(*spec.Job, *candidate.Config) float64 // run time / predicted run time; nil = 1
	now      time.Duration
	free     *scheduler.Inventory
	jobs     map[spec.JobID]*referenceJob // jobs that are really in the system
	queue    []*referenceJob              // waiting jobs, in order of arrival
	runs     []*referenceJob              // running jobs, ascending by end
	forecast map[spec.JobID]*referenceJob // jobs of queue as they will run if no other arrives, nil = not computed
}

// arrival is a job with its real arrival and end.
type arrival struct {
	job     *spec.Job
	steps   float64
	start   time.Duration // cost of its start
	arrived time.Duration
	ended   time.Duration // 0 = not yet

	submitted *candidate.Set // its candidates when they were looked up last, nil = never
}

type referenceJob struct {
	*arrival
	slots []scheduler.Slot
	// Only with slots, which it holds or held:
	config *candidate.Config // nil = no prediction
	run    time.Duration     // run time without the start
	end    time.Duration
}

func newReference(b *candidate.Finder, c spec.Cluster) *reference {
	return &reference{finder: b, free: scheduler.NewInventory(c), jobs: map[spec.JobID]*referenceJob{}}
}

// advance ends the jobs that end by time to, and starts waiting jobs that fit.
func (h *reference) advance(ctx context.Context, c spec.Cluster, to time.Duration) error {
	for len(h.runs) > 0 && h.runs[0].end <= to {
		h.endNext()
		if err := h.startAll(ctx, c); err != nil {
			return err
		}
	}
	h.now = to
	return nil
}

// enter adds jobs that arrive now.
func (h *reference) enter(ctx context.Context, c spec.Cluster, arrived []*arrival) error {
	if len(arrived) == 0 {
		return nil
	}
	for _, a := range arrived {
		j := &referenceJob{arrival: a}
		h.jobs[a.job.ID] = j
		h.queue = append(h.queue, j)
	}
	h.forecast = nil
	return h.startAll(ctx, c)
}

// leave marks jobs that have really ended. They continue to run here until their end; a job
// with unknownDuration ends now.
func (h *reference) leave(ctx context.Context, c spec.Cluster, ended []*arrival) error {
	ends := false
	for _, a := range ended {
		j := h.jobs[a.job.ID]
		delete(h.jobs, a.job.ID)
		if j == nil || j.slots != nil && j.run != unknownDuration {
			continue
		}
		if j.slots != nil {
			j.end, ends = h.now, true
		}
		h.forecast = nil
	}
	if !ends {
		return nil
	}
	h.sort()
	return h.advance(ctx, c, h.now)
}

// idle reports whether no job is left.
func (h *reference) idle() bool { return len(h.runs) == 0 && len(h.queue) == 0 }

// of returns a job of the system as it ran, runs or will run if no other arrives. It has no
// slots if it never runs.
func (h *reference) of(id spec.JobID) *referenceJob {
	if j := h.forecast[id]; j != nil {
		return j
	}
	return h.jobs[id]
}

// forecastWaiting computes when waiting jobs start and end if no other job arrives. The
// result is valid until a job arrives, or one with unknownDuration ends.
func (h *reference) forecastWaiting(ctx context.Context, c spec.Cluster) error {
	if h.forecast != nil {
		return nil
	}
	future := reference{finder: h.finder, slowdown: h.slowdown, now: h.now, free: h.free, runs: slices.Clone(h.runs)}
	if len(h.queue) > 0 {
		future.free = h.free.Clone()
	}
	for _, j := range h.queue {
		copied := *j
		future.queue = append(future.queue, &copied)
	}
	waiting := slices.Clone(future.queue)
	for len(future.runs) > 0 && len(future.queue) > 0 {
		future.endNext()
		if err := future.startAll(ctx, c); err != nil {
			return err
		}
	}
	h.forecast = make(map[spec.JobID]*referenceJob, len(waiting))
	for _, j := range waiting {
		h.forecast[j.job.ID] = j
	}
	return nil
}

// endNext ends all jobs with the earliest end.
func (h *reference) endNext() {
	h.now = h.runs[0].end
	n := 0
	for n < len(h.runs) && h.runs[n].end == h.now {
		h.free.Give(h.runs[n].slots)
		n++
	}
	h.runs = h.runs[n:]
}

// startAll starts the jobs that fit, in order.
func (h *reference) startAll(ctx context.Context, c spec.Cluster) error {
	left := make([]*referenceJob, 0, len(h.queue))
	noRoom := map[*candidate.Set]bool{}
	for _, j := range h.queue {
		w, err := h.finder.Refresh(ctx, c, j.job, j.submitted)
		if err != nil {
			return err
		}
		j.submitted = w
		if noRoom[w] || !h.startOne(c, j, w) {
			noRoom[w] = true
			left = append(left, j)
		}
	}
	h.queue = left
	h.sort()
	return nil
}

func (h *reference) sort() {
	slices.SortStableFunc(h.runs, func(a, b *referenceJob) int { return cmp.Compare(a.end, b.end) })
}

func (h *reference) startOne(c spec.Cluster, j *referenceJob, w *candidate.Set) bool {
	g := h.finder.Place(h.free, c, j.job, w)
	if g == nil {
		return false
	}
	h.free.Take(g.Slots)
	j.slots, j.config = g.Slots, w.Of(g, h.free.Group[g.Slots[0].Node])
	j.run = h.runTime(j)
	j.end = h.now + j.start + j.run
	h.runs = append(h.runs, j)
	return true
}

// unknownDuration is the duration of a job without a prediction: it runs until it really
// ends.
const unknownDuration = time.Duration(1e9) * time.Second

// runTime returns the run time of j without its start.
func (h *reference) runTime(j *referenceJob) time.Duration {
	switch {
	case j.config != nil:
		run := j.steps / j.config.Rate
		if h.slowdown != nil {
			run *= h.slowdown(j.job, j.config)
		}
		return time.Duration(min(run, unknownDuration.Seconds()) * float64(time.Second))
	case j.job.Duration > 0:
		return j.job.Duration
	case j.ended > 0:
		return j.ended - j.arrived
	}
	return unknownDuration
}
