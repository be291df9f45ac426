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
// between decisions and is updated by the jobs that changed. Otherwise every decision
// builds it, and adds the running jobs only when a waiting job does not fit.
type queue struct {
	ranking     Ranking
	finder      *candidate.Finder
	urgentAfter time.Duration // a job that has waited this long goes first, 0 = never

	decision uint64 // counts decisions
	waiting  map[*candidate.Set]*waitQueue
	running  heap.Heap[*Entry] // lowest priority first

	// Only with a steady ranking:
	stale     int      // upper bound on the number of outdated entries in running
	inQuantum []*Entry // running jobs that were within their quantum when last checked
	cursor    scheduler.Cursor

	// Only without one, unordered:
	waits, runs []Entry
	loaded      bool // runs and running are those of this decision
}

// waitQueue is a heap of the waiting jobs with the same candidate configurations. Entries
// of jobs that no longer wait are skipped. If the ranking is not steady there is one
// waitQueue for all jobs, with nil candidates.
type waitQueue struct {
	candidates *candidate.Set
	jobs       heap.Heap[*Entry]
}

func newQueue(r Ranking, b *candidate.Finder, urgentAfter time.Duration) *queue {
	return &queue{ranking: r, finder: b, urgentAfter: urgentAfter, running: heap.Heap[*Entry]{Less: runsBehind}}
}

// update applies the changes up to s.
func (o *queue) update(ctx context.Context, s *scheduler.Snapshot) error {
	o.decision++
	jobs, all := s.Waiting, true
	if !o.ranking.Steady {
		o.loaded, o.waits = false, slices.Grow(o.waits[:0], len(jobs))
	} else if jobs, all = s.Changed(&o.cursor); !all {
		jobs = dedupe(jobs)
	}
	if all {
		o.waiting, o.running.Items, o.inQuantum, o.stale = map[*candidate.Set]*waitQueue{}, o.running.Items[:0], o.inQuantum[:0], 0
	}
	for _, j := range jobs {
		if err := o.add(ctx, s, j, all); err != nil {
			return err
		}
	}
	if all {
		o.running.Init()
		for _, l := range o.waiting {
			l.jobs.Init()
		}
	}
	o.compact()
	return nil
}

// load adds the running jobs, once per decision.
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

// all yields waiting and running jobs, unordered. It needs a ranking that is not steady,
// and load.
func (o *queue) all(yield func(*Entry) bool) {
	for _, jobs := range [][]Entry{o.waits, o.runs} {
		for i := range jobs {
			if !yield(&jobs[i]) {
				return
			}
		}
	}
}

// dedupe returns jobs by arrival, each once.
func dedupe(jobs []*scheduler.JobState) []*scheduler.JobState {
	jobs = slices.SortedFunc(slices.Values(jobs), func(a, b *scheduler.JobState) int { return a.Order - b.Order })
	return slices.Compact(jobs)
}

// add puts a job into its heap. With bulk, the caller initialises the heaps afterwards.
func (o *queue) add(ctx context.Context, s *scheduler.Snapshot, j *scheduler.JobState, bulk bool) error {
	if j.Grant == nil {
		o.stale++
	}
	if j.Phase == scheduler.Finished {
		return nil
	}
	r, err := o.entryOf(ctx, s, j)
	if err != nil {
		return err
	}
	h := &o.running
	if j.Grant == nil {
		l, err := o.waitQueueOf(ctx, s, j)
		if err != nil {
			return err
		}
		r.waitQueue, h = l, &l.jobs
	} else if o.ranking.Steady && r.ready+o.ranking.Quantum > s.Now {
		o.inQuantum = append(o.inQuantum, r)
	}
	if bulk {
		h.Items = append(h.Items, r)
	} else {
		h.Push(r)
	}
	return nil
}

// entryOf returns j with its key.
func (o *queue) entryOf(ctx context.Context, s *scheduler.Snapshot, j *scheduler.JobState) (*Entry, error) {
	r := &Entry{}
	if !o.ranking.Steady { // the capacity was reserved, so pointers stay valid
		kept := &o.waits
		if j.Grant != nil {
			kept = &o.runs
		}
		*kept = append(*kept, Entry{})
		r = &(*kept)[len(*kept)-1]
	}
	*r = Entry{Job: j, Grant: j.Grant, held: j.Grant, since: j.Since, ready: j.Ready,
		urgent: o.urgentAfter > 0 && j.LongestWait(s.Now) >= o.urgentAfter}
	return r, o.refresh(ctx, s, r)
}

// refresh computes the key of r at s.
func (o *queue) refresh(ctx context.Context, s *scheduler.Snapshot, r *Entry) (err error) {
	r.decision = o.decision
	r.Key, err = o.ranking.Key(ctx, s, s.Current(r.Job))
	if math.IsNaN(r.Key) {
		r.Key = math.Inf(1)
	}
	r.bound = r.Key
	if o.ranking.Steady {
		r.bound += keyMargin(r.Key)
	}
	return err
}

// keyMargin is how much a key that does not rise may rise by rounding.
func keyMargin(key float64) float64 { return math.Abs(key) * 1e-9 }

// waitQueueOf returns the waitQueue of j.
func (o *queue) waitQueueOf(ctx context.Context, s *scheduler.Snapshot, j *scheduler.JobState) (*waitQueue, error) {
	var w *candidate.Set
	if o.ranking.Steady {
		var err error
		if w, err = o.finder.AsSubmitted(ctx, s.Cluster, j.Job); err != nil {
			return nil, err
		}
	}
	l := o.waiting[w]
	if l == nil {
		l = &waitQueue{candidates: w, jobs: heap.Heap[*Entry]{Less: func(a, b *Entry) bool { return a.compare(b) < 0 }}}
		o.waiting[w] = l
	}
	return l, nil
}

// pop removes and returns the first job that still waits, nil if there is none.
func (l *waitQueue) pop() *Entry {
	for len(l.jobs.Items) > 0 {
		if r := l.jobs.Pop(); r.Job.Grant == nil && r.Job.Phase == scheduler.Waiting && r.Job.Since == r.since {
			return r
		}
	}
	return nil
}

// popLast removes and returns the running job of lowest priority, nil if there is none.
// The heap is ordered by upper bounds of keys. So its top is the job of lowest priority
// once the top's key is up to date.
func (o *queue) popLast(ctx context.Context, s *scheduler.Snapshot) (*Entry, error) {
	if err := o.load(ctx, s); err != nil {
		return nil, err
	}
	h := &o.running
	for len(h.Items) > 0 {
		switch r := h.Items[0]; {
		case r.held != r.Job.Grant:
			h.Pop()
		case r.decision != o.decision:
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

// restore adds the jobs removed by pop and popLast again, with the grants they held.
func (o *queue) restore(waiting, running []*Entry) {
	if !o.ranking.Steady {
		return
	}
	for _, r := range waiting {
		r.Grant = nil
		r.waitQueue.jobs.Push(r)
	}
	for _, r := range running {
		r.Grant = r.held
		o.running.Push(r)
	}
}

// compact drops outdated entries of running once they are more than half.
func (o *queue) compact() {
	if 2*o.stale > len(o.running.Items) {
		o.running.Items = slices.DeleteFunc(o.running.Items, func(r *Entry) bool { return r.held != r.Job.Grant })
		o.running.Init()
		o.stale = 0
	}
}

// nextPreemptible returns the earliest end of a quantum among running jobs of lower
// priority than first, policy.Never if there is none. started are the jobs that get
// devices in this decision.
func (o *queue) nextPreemptible(ctx context.Context, s *scheduler.Snapshot, first *Entry, started []*Entry) (time.Duration, error) {
	at := policy.Never
	look := func(r *Entry) {
		if t := r.ready + o.ranking.Quantum; r.Grant != nil && t > s.Now && first.compare(r) < 0 {
			at = min(at, t)
		}
	}
	if !o.ranking.Steady {
		o.all(func(r *Entry) bool { look(r); return true })
		return at, nil
	}
	o.inQuantum = slices.DeleteFunc(o.inQuantum, func(r *Entry) bool {
		return r.held != r.Job.Grant || r.ready+o.ranking.Quantum <= s.Now
	})
	for _, r := range o.inQuantum {
		now := *r // a copy: the heap needs the old key
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
