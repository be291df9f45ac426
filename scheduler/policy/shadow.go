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
// and for as long as is believed: what a guaranteed job was promised
// is the time at which it ends there.
type shadow struct {
	belief *belief
	now    time.Duration
	free   *scheduler.Inventory
	jobs   map[spec.JobID]*shadowJob
	queue  []*shadowJob // who waits, in order of arrival
	runs   []*shadowJob // who runs, next to end first
}

type shadowJob struct {
	job   *spec.Job
	steps float64
	start time.Duration // cost of its start
	came  time.Duration
	gone  time.Duration // when it had left in truth, 0 = not yet
	slots []scheduler.Slot
	// Meaningful with slots, those it has or had:
	way *option       // nil if nothing is believed of it
	run time.Duration // after its start
	end time.Duration
}

func newShadow(b *belief) *shadow {
	return &shadow{belief: b, jobs: map[spec.JobID]*shadowJob{}}
}

// follow brings the shadow to s: jobs that end by then do, and those that are new
// enter.
func (h *shadow) follow(ctx context.Context, s *scheduler.Snapshot) error {
	if h.free == nil {
		h.free = scheduler.NewInventory(s.Cluster)
	}
	for len(h.runs) > 0 && h.runs[0].end <= s.Now {
		h.endNext()
		if err := h.startAll(ctx, s.Cluster); err != nil {
			return err
		}
	}
	h.now = s.Now
	h.forget(s)
	for _, j := range s.Jobs() {
		if h.jobs[j.Job.ID] == nil {
			n := &shadowJob{job: j.Job, steps: j.Done + j.Remaining, start: j.StartCost, came: s.Now}
			h.jobs[j.Job.ID] = n
			h.queue = append(h.queue, n)
		}
	}
	return h.startAll(ctx, s.Cluster)
}

// forget lets go of those who have left in truth, once they have here. Who ends
// nobody knows when ends then.
func (h *shadow) forget(s *scheduler.Snapshot) {
	if len(h.jobs) == 0 {
		return
	}
	inside := make(map[spec.JobID]bool, len(h.jobs))
	for _, j := range s.Jobs() {
		inside[j.Job.ID] = true
	}
	for id, j := range h.jobs {
		if inside[id] {
			continue
		}
		delete(h.jobs, id)
		j.gone = s.Now
		if j.slots != nil && j.run == endless {
			j.end = s.Now
		}
	}
	slices.SortStableFunc(h.runs, func(a, b *shadowJob) int { return cmp.Compare(a.end, b.end) })
	for len(h.runs) > 0 && h.runs[0].end <= s.Now {
		h.endNext()
	}
}

// of returns how a job that has entered runs, or ran, or will, should no other
// come; without slots if it never does. ahead is what look returned.
func (h *shadow) of(id spec.JobID, ahead map[spec.JobID]*shadowJob) *shadowJob {
	if j := ahead[id]; j != nil {
		return j
	}
	return h.jobs[id]
}

// look returns how those run that wait, should no other come.
func (h *shadow) look(ctx context.Context, c spec.Cluster) (map[spec.JobID]*shadowJob, error) {
	ahead := shadow{belief: h.belief, now: h.now, free: h.free.Clone(), runs: slices.Clone(h.runs)}
	for _, j := range h.queue {
		twin := *j
		ahead.queue = append(ahead.queue, &twin)
	}
	twins := slices.Clone(ahead.queue)
	for len(ahead.runs) > 0 && len(ahead.queue) > 0 {
		ahead.endNext()
		if err := ahead.startAll(ctx, c); err != nil {
			return nil, err
		}
	}
	out := make(map[spec.JobID]*shadowJob, len(twins))
	for _, j := range twins {
		out[j.job.ID] = j
	}
	return out, nil
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
	slices.SortStableFunc(h.runs, func(a, b *shadowJob) int { return cmp.Compare(a.end, b.end) })
	return nil
}

func (h *shadow) startOne(c spec.Cluster, j *shadowJob, w *ways) bool {
	g := h.belief.place(h.free, c, j.job, w)
	if g == nil {
		return false
	}
	h.free.Take(g.Slots)
	j.slots, j.way = g.Slots, w.of(g, h.free.Group[g.Slots[0].Node])
	j.run = j.takes()
	j.end = h.now + j.start + j.run
	h.runs = append(h.runs, j)
	return true
}

// endless is how long those run of whom nothing is known: until they have left in
// truth.
const endless = time.Duration(1e9) * time.Second

// takes returns how long j is believed to run, its start not counted.
func (j *shadowJob) takes() time.Duration {
	switch {
	case j.way != nil:
		return min(time.Duration(min(j.steps/j.way.rate, 1e9)*float64(time.Second)), endless)
	case j.job.Duration > 0:
		return j.job.Duration
	case j.gone > 0:
		return j.gone - j.came
	}
	return endless
}
