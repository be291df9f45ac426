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

// reference is a run of the same jobs under fifo-backfill, each at its own plan and size
// and for as long as is believed in one case.
type reference struct {
	belief *candidate.Finder
	slower func(*spec.Job, *candidate.Config) float64 // than believed; nil = as believed
	now    time.Duration
	free   *scheduler.Inventory
	jobs   map[spec.JobID]*referenceJob // that are inside in truth
	queue  []*referenceJob              // waiting jobs, in order of arrival
	runs   []*referenceJob              // running jobs, next to end first
	ahead  map[spec.JobID]*referenceJob // those of queue as they will run should no other come, nil = not known
}

// arrival is how a job came and left, in truth.
type arrival struct {
	job   *spec.Job
	steps float64
	start time.Duration // cost of its start
	came  time.Duration
	gone  time.Duration // 0 = not yet
}

type referenceJob struct {
	*arrival
	slots []scheduler.Slot
	// Meaningful with slots, those it has or had:
	way *candidate.Config // nil if nothing is believed of it
	run time.Duration     // after its start
	end time.Duration
}

func newReference(b *candidate.Finder, c spec.Cluster) *reference {
	return &reference{belief: b, free: scheduler.NewInventory(c), jobs: map[spec.JobID]*referenceJob{}}
}

// advance ends the jobs that end by then, and starts those that fit.
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

// enter adds the jobs that have come by now.
func (h *reference) enter(ctx context.Context, c spec.Cluster, came []*arrival) error {
	if len(came) == 0 {
		return nil
	}
	for _, a := range came {
		j := &referenceJob{arrival: a}
		h.jobs[a.job.ID] = j
		h.queue = append(h.queue, j)
	}
	h.ahead = nil
	return h.startAll(ctx, c)
}

// leave removes jobs that have really ended, once they have ended here. A job with unknown
// end ends now.
func (h *reference) leave(ctx context.Context, c spec.Cluster, gone []*arrival) error {
	ends := false
	for _, a := range gone {
		j := h.jobs[a.job.ID]
		delete(h.jobs, a.job.ID)
		if j == nil || j.slots != nil && j.run != unknownDuration {
			continue
		}
		if j.slots != nil {
			j.end, ends = h.now, true
		}
		h.ahead = nil
	}
	if !ends {
		return nil
	}
	h.sort()
	return h.advance(ctx, c, h.now)
}

// idle reports whether no job is left.
func (h *reference) idle() bool { return len(h.runs) == 0 && len(h.queue) == 0 }

// of returns how a job inside runs, or ran, or will, should no other come; without
// slots if it never does.
func (h *reference) of(id spec.JobID) *referenceJob {
	if j := h.ahead[id]; j != nil {
		return j
	}
	return h.jobs[id]
}

// look computes when waiting jobs start and end if no other job comes. The result holds
// until a job comes, or one with unknown end leaves.
func (h *reference) look(ctx context.Context, c spec.Cluster) error {
	if h.ahead != nil {
		return nil
	}
	ahead := reference{belief: h.belief, slower: h.slower, now: h.now, free: h.free, runs: slices.Clone(h.runs)}
	if len(h.queue) > 0 {
		ahead.free = h.free.Clone()
	}
	for _, j := range h.queue {
		twin := *j
		ahead.queue = append(ahead.queue, &twin)
	}
	twins := slices.Clone(ahead.queue)
	for len(ahead.runs) > 0 && len(ahead.queue) > 0 {
		ahead.endNext()
		if err := ahead.startAll(ctx, c); err != nil {
			return err
		}
	}
	h.ahead = make(map[spec.JobID]*referenceJob, len(twins))
	for _, j := range twins {
		h.ahead[j.job.ID] = j
	}
	return nil
}

// endNext ends all jobs that end next.
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
	full := map[*candidate.Set]bool{}
	for _, j := range h.queue {
		w, err := h.belief.AsSubmitted(ctx, c, j.job)
		if err != nil {
			return err
		}
		if full[w] || !h.startOne(c, j, w) {
			full[w] = true
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
	g := h.belief.Place(h.free, c, j.job, w)
	if g == nil {
		return false
	}
	h.free.Take(g.Slots)
	j.slots, j.way = g.Slots, w.Of(g, h.free.Group[g.Slots[0].Node])
	j.run = h.takes(j)
	j.end = h.now + j.start + j.run
	h.runs = append(h.runs, j)
	return true
}

// unknownDuration is the duration of a job without a prediction: it runs until it really
// ends.
const unknownDuration = time.Duration(1e9) * time.Second

// takes returns how long j runs, its start not counted.
func (h *reference) takes(j *referenceJob) time.Duration {
	switch {
	case j.way != nil:
		run := j.steps / j.way.Rate
		if h.slower != nil {
			run *= h.slower(j.job, j.way)
		}
		return time.Duration(min(run, unknownDuration.Seconds()) * float64(time.Second))
	case j.job.Duration > 0:
		return j.job.Duration
	case j.gone > 0:
		return j.gone - j.came
	}
	return unknownDuration
}
