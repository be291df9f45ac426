package policy

import (
	"cmp"
	"context"
	"math"
	"slices"
	"time"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/scheduler"
)

// shadow runs the same jobs under fifo-backfill, each at its own plan and size
// and for as long as is believed: what a guaranteed job was promised is the time
// at which it ends there.
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
	slots []scheduler.Slot
	end   time.Duration // meaningful with slots, those it has or had
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
	for _, j := range s.Jobs() {
		if h.jobs[j.Job.ID] == nil {
			n := &shadowJob{job: j.Job, steps: j.Done + j.Remaining, start: j.StartCost}
			h.jobs[j.Job.ID] = n
			h.queue = append(h.queue, n)
		}
	}
	return h.startAll(ctx, s.Cluster)
}

// due returns in how many seconds a job that has entered ends, or ended, should no
// other come; +Inf if it never starts. ahead is what look returned.
func (h *shadow) due(id spec.JobID, ahead map[spec.JobID]time.Duration) float64 {
	j := h.jobs[id]
	end, waits := ahead[id]
	switch {
	case waits:
		return (end - h.now).Seconds()
	case j.slots == nil:
		return math.Inf(1)
	}
	return (j.end - h.now).Seconds()
}

// look returns when those end that wait, should no other come.
func (h *shadow) look(ctx context.Context, c spec.Cluster) (map[spec.JobID]time.Duration, error) {
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
	out := make(map[spec.JobID]time.Duration, len(twins))
	for _, j := range twins {
		if j.slots != nil {
			out[j.job.ID] = j.end
		}
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
	j.slots, j.end = g.Slots, h.now+j.start+h.takes(j, w, g)
	h.runs = append(h.runs, j)
	return true
}

// takes returns how long j is believed to run on g.
func (h *shadow) takes(j *shadowJob, w *ways, g *scheduler.Grant) time.Duration {
	group := h.free.Group[g.Slots[0].Node]
	for i := range w.options {
		if o := &w.options[i]; o.group == group && o.plan == g.Plan && o.shape.Devices == g.Shape.Devices {
			return time.Duration(min(j.steps/o.rate, 1e9) * float64(time.Second))
		}
	}
	return j.job.Duration
}
