package policy

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/scheduler"
)

// shadow runs the same jobs under fifo-backfill, each at its own plan and size
// and for as long as is believed in one case.
type shadow struct {
	belief *belief
	slower func(*spec.Job, *option) float64 // than believed; nil = as believed
	now    time.Duration
	free   *scheduler.Inventory
	jobs   map[spec.JobID]*shadowJob // that are inside in truth
	queue  []*shadowJob              // who waits, in order of arrival
	runs   []*shadowJob              // who runs, next to end first
	ahead  map[spec.JobID]*shadowJob // those of queue as they will run should no other come, nil = not known
}

// arrival is how a job came and left, in truth.
type arrival struct {
	job   *spec.Job
	steps float64
	start time.Duration // cost of its start
	came  time.Duration
	gone  time.Duration // 0 = not yet
}

type shadowJob struct {
	*arrival
	slots []scheduler.Slot
	// Meaningful with slots, those it has or had:
	way *option       // nil if nothing is believed of it
	run time.Duration // after its start
	end time.Duration
}

func newShadow(b *belief, c spec.Cluster) *shadow {
	return &shadow{belief: b, free: scheduler.NewInventory(c), jobs: map[spec.JobID]*shadowJob{}}
}

// advance ends those who end by then, and starts who fits.
func (h *shadow) advance(ctx context.Context, c spec.Cluster, to time.Duration) error {
	for len(h.runs) > 0 && h.runs[0].end <= to {
		h.endNext()
		if err := h.startAll(ctx, c); err != nil {
			return err
		}
	}
	h.now = to
	return nil
}

// enter takes in who has come by now.
func (h *shadow) enter(ctx context.Context, c spec.Cluster, came []*arrival) error {
	if len(came) == 0 {
		return nil
	}
	for _, a := range came {
		j := &shadowJob{arrival: a}
		h.jobs[a.job.ID] = j
		h.queue = append(h.queue, j)
	}
	h.ahead = nil
	return h.startAll(ctx, c)
}

// leave lets go of those who have left in truth, once they have here. Who ends nobody
// knows when ends now.
func (h *shadow) leave(ctx context.Context, c spec.Cluster, gone []*arrival) error {
	ends := false
	for _, a := range gone {
		j := h.jobs[a.job.ID]
		delete(h.jobs, a.job.ID)
		if j == nil || j.slots != nil && j.run != endless {
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

// idle reports whether nobody is left.
func (h *shadow) idle() bool { return len(h.runs) == 0 && len(h.queue) == 0 }

// of returns how a job inside runs, or ran, or will, should no other come; without
// slots if it never does.
func (h *shadow) of(id spec.JobID) *shadowJob {
	if j := h.ahead[id]; j != nil {
		return j
	}
	return h.jobs[id]
}

// look finds how those run that wait, should no other come. That stays so until
// another comes, or one leaves of whom nobody knew when.
func (h *shadow) look(ctx context.Context, c spec.Cluster) error {
	if h.ahead != nil {
		return nil
	}
	ahead := shadow{belief: h.belief, slower: h.slower, now: h.now, free: h.free, runs: slices.Clone(h.runs)}
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
	h.ahead = make(map[spec.JobID]*shadowJob, len(twins))
	for _, j := range twins {
		h.ahead[j.job.ID] = j
	}
	return nil
}

// endNext ends all jobs that end next.
func (h *shadow) endNext() {
	h.now = h.runs[0].end
	n := 0
	for n < len(h.runs) && h.runs[n].end == h.now {
		h.free.Give(h.runs[n].slots)
		n++
	}
	h.runs = h.runs[n:]
}

// startAll starts who fits, in order.
func (h *shadow) startAll(ctx context.Context, c spec.Cluster) error {
	left := make([]*shadowJob, 0, len(h.queue))
	full := map[*ways]bool{}
	for _, j := range h.queue {
		w, err := h.belief.asSubmitted(ctx, c, j.job)
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

func (h *shadow) sort() {
	slices.SortStableFunc(h.runs, func(a, b *shadowJob) int { return cmp.Compare(a.end, b.end) })
}

func (h *shadow) startOne(c spec.Cluster, j *shadowJob, w *ways) bool {
	g := h.belief.place(h.free, c, j.job, w)
	if g == nil {
		return false
	}
	h.free.Take(g.Slots)
	j.slots, j.way = g.Slots, w.of(g, h.free.Group[g.Slots[0].Node])
	j.run = h.takes(j)
	j.end = h.now + j.start + j.run
	h.runs = append(h.runs, j)
	return true
}

// endless is how long those run of whom nothing is known: until they have left in
// truth.
const endless = time.Duration(1e9) * time.Second

// takes returns how long j runs, its start not counted.
func (h *shadow) takes(j *shadowJob) time.Duration {
	switch {
	case j.way != nil:
		run := j.steps / j.way.rate
		if h.slower != nil {
			run *= h.slower(j.job, j.way)
		}
		return time.Duration(min(run, endless.Seconds()) * float64(time.Second))
	case j.job.Duration > 0:
		return j.job.Duration
	case j.gone > 0:
		return j.gone - j.came
	}
	return endless
}
