package order

import (
	"context"
	"math"
	"slices"
	"time"

	"github.com/pacer-ml/pacer/scheduler"
	"github.com/pacer-ml/pacer/scheduler/internal/candidate"
	"github.com/pacer-ml/pacer/scheduler/internal/heap"
	"github.com/pacer-ml/pacer/scheduler/policy"
)

// queue is a pair of heaps, waiting and running jobs. With a steady Ranking it survives
// between decisions and is updated by what changed. Else it is built anew, and running
// jobs are added only once a job finds no room.
type queue struct {
	ranking     Ranking
	belief      *candidate.Belief
	urgentAfter time.Duration // a job that has waited so long goes first, 0 = none does

	turn    uint64 // counts decisions
	lines   map[*candidate.Set]*line
	running heap.Heap[*Ranked] // the last in the order first

	// With a steady ranking:
	stale  int       // upper bound of entries in running that are out of date
	fresh  []*Ranked // jobs that could not be stopped when last checked
	cursor scheduler.Cursor

	// With others, in no order:
	waits, runs []Ranked
	loaded      bool // runs and running are those of this decision
}

// line is the waiting jobs with the same configurations, in order. Jobs that got devices
// are skipped. Of a ranking that is not steady there is one line of all jobs, whose set is
// nil.
type line struct {
	ways  *candidate.Set
	turns heap.Heap[*Ranked]
}

func newQueue(r Ranking, b *candidate.Belief, urgentAfter time.Duration) *queue {
	return &queue{ranking: r, belief: b, urgentAfter: urgentAfter, running: heap.Heap[*Ranked]{Less: runsBehind}}
}

// update brings the queue up to s.
func (o *queue) update(ctx context.Context, s *scheduler.Snapshot) error {
	o.turn++
	jobs, all := s.Waiting, true
	if !o.ranking.Steady {
		o.loaded, o.waits = false, slices.Grow(o.waits[:0], len(jobs))
	} else if jobs, all = s.Changed(&o.cursor); !all {
		jobs = once(jobs)
	}
	if all {
		o.lines, o.running.Items, o.fresh, o.stale = map[*candidate.Set]*line{}, o.running.Items[:0], o.fresh[:0], 0
	}
	for _, j := range jobs {
		if err := o.add(ctx, s, j, all); err != nil {
			return err
		}
	}
	if all {
		o.running.Init()
		for _, l := range o.lines {
			l.turns.Init()
		}
	}
	o.sweep()
	return nil
}

// load adds the running jobs, unless they are there already.
func (o *queue) load(ctx context.Context, s *scheduler.Snapshot) error {
	if o.ranking.Steady || o.loaded {
		return nil
	}
	o.loaded, o.runs = true, slices.Grow(o.runs[:0], len(s.Jobs()))
	for _, j := range s.Jobs() {
		if j.Grant == nil {
			continue
		}
		if err := o.add(ctx, s, j, true); err != nil {
			return err
		}
	}
	o.running.Init()
	return nil
}

// all yields waiting and running jobs in no order. The ranking is not steady, and load
// was called.
func (o *queue) all(yield func(*Ranked) bool) {
	for _, jobs := range [][]Ranked{o.waits, o.runs} {
		for i := range jobs {
			if !yield(&jobs[i]) {
				return
			}
		}
	}
}

// once returns every job that is there, once, by arrival.
func once(jobs []*scheduler.JobState) []*scheduler.JobState {
	jobs = slices.SortedFunc(slices.Values(jobs), func(a, b *scheduler.JobState) int { return a.Order - b.Order })
	return slices.Compact(jobs)
}

// add puts a job where it belongs; with later the heaps are put in order when all
// are in.
func (o *queue) add(ctx context.Context, s *scheduler.Snapshot, j *scheduler.JobState, later bool) error {
	if j.Grant == nil {
		o.stale++
	}
	if j.Phase == scheduler.Finished {
		return nil
	}
	r, err := o.rank(ctx, s, j)
	if err != nil {
		return err
	}
	h := &o.running
	if j.Grant == nil {
		l, err := o.line(ctx, s, j)
		if err != nil {
			return err
		}
		r.line, h = l, &l.turns
	} else if o.ranking.Steady && r.ready+o.ranking.Quantum > s.Now {
		o.fresh = append(o.fresh, r)
	}
	if later {
		h.Items = append(h.Items, r)
	} else {
		h.Push(r)
	}
	return nil
}

// rank returns a job in its place.
func (o *queue) rank(ctx context.Context, s *scheduler.Snapshot, j *scheduler.JobState) (*Ranked, error) {
	r := &Ranked{}
	if !o.ranking.Steady { // there is room for all
		kept := &o.waits
		if j.Grant != nil {
			kept = &o.runs
		}
		*kept = append(*kept, Ranked{})
		r = &(*kept)[len(*kept)-1]
	}
	*r = Ranked{Job: j, Grant: j.Grant, held: j.Grant, since: j.Since, ready: j.Ready,
		urgent: o.urgentAfter > 0 && j.LongestWait(s.Now) >= o.urgentAfter}
	return r, o.refresh(ctx, s, r)
}

// refresh brings the key of r up to s.
func (o *queue) refresh(ctx context.Context, s *scheduler.Snapshot, r *Ranked) (err error) {
	r.turn = o.turn
	r.Key, err = o.ranking.Key(ctx, s, s.Current(r.Job))
	if math.IsNaN(r.Key) {
		r.Key = math.Inf(1)
	}
	r.bound = r.Key
	if o.ranking.Steady { // more than rounding may make of a key that does not rise
		r.bound += math.Abs(r.Key) * 1e-9
	}
	return err
}

// line returns the line that j stands in.
func (o *queue) line(ctx context.Context, s *scheduler.Snapshot, j *scheduler.JobState) (*line, error) {
	var w *candidate.Set
	if o.ranking.Steady {
		var err error
		if w, err = o.belief.AsSubmitted(ctx, s.Cluster, j.Job); err != nil {
			return nil, err
		}
	}
	l := o.lines[w]
	if l == nil {
		l = &line{ways: w, turns: heap.Heap[*Ranked]{Less: func(a, b *Ranked) bool { return a.compare(b) < 0 }}}
		o.lines[w] = l
	}
	return l, nil
}

// next removes and returns the first job of the line, nil if none is left.
func (l *line) next() *Ranked {
	for len(l.turns.Items) > 0 {
		if r := l.turns.Pop(); r.Job.Grant == nil && r.Job.Phase == scheduler.Waiting && r.Job.Since == r.since {
			return r
		}
	}
	return nil
}

// last removes and returns the last of the running jobs, nil if none is left. The heap
// is ordered by upper bounds of keys: its first job is the last of all once its key is
// up to date.
func (o *queue) last(ctx context.Context, s *scheduler.Snapshot) (*Ranked, error) {
	if err := o.load(ctx, s); err != nil {
		return nil, err
	}
	h := &o.running
	for len(h.Items) > 0 {
		switch r := h.Items[0]; {
		case r.held != r.Job.Grant:
			h.Pop()
		case r.turn != o.turn:
			if err := o.refresh(ctx, s, r); err != nil {
				return nil, err
			}
			h.FixFirst()
		default:
			return h.Pop(), nil
		}
	}
	return nil, nil
}

// back puts the jobs removed by next and last in again, as they were.
func (o *queue) back(waiting, running []*Ranked) {
	if !o.ranking.Steady {
		return
	}
	for _, r := range waiting {
		r.Grant = nil
		r.line.turns.Push(r)
	}
	for _, r := range running {
		r.Grant = r.held
		o.running.Push(r)
	}
}

// sweep drops running jobs that hold something else by now once they are half of
// all.
func (o *queue) sweep() {
	if 2*o.stale > len(o.running.Items) {
		o.running.Items = slices.DeleteFunc(o.running.Items, func(r *Ranked) bool { return r.held != r.Job.Grant })
		o.running.Init()
		o.stale = 0
	}
}

// spared returns when the first job that runs behind first, and cannot be stopped now,
// may be stopped; policy.Never if there is none. started are the jobs that get devices
// now.
func (o *queue) spared(ctx context.Context, s *scheduler.Snapshot, first *Ranked, started []*Ranked) (time.Duration, error) {
	at := policy.Never
	look := func(r *Ranked) {
		if t := r.ready + o.ranking.Quantum; r.Grant != nil && t > s.Now && first.compare(r) < 0 {
			at = min(at, t)
		}
	}
	if !o.ranking.Steady {
		o.all(func(r *Ranked) bool { look(r); return true })
		return at, nil
	}
	o.fresh = slices.DeleteFunc(o.fresh, func(r *Ranked) bool {
		return r.held != r.Job.Grant || r.ready+o.ranking.Quantum <= s.Now
	})
	for _, r := range o.fresh {
		now := *r // the heap goes by what it knows
		if err := o.refresh(ctx, s, &now); err != nil {
			return 0, err
		}
		look(&now)
	}
	for _, r := range started {
		look(r)
	}
	return at, nil
}
