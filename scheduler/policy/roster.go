package policy

import (
	"context"
	"math"
	"slices"
	"time"

	"github.com/pacer-ml/pacer/scheduler"
	"github.com/pacer-ml/pacer/scheduler/compat"
)

// roster is who waits and who runs, so that the next of either is found without
// sorting everybody. Of a steady Ranking it is kept from decision to decision by
// what changed. Of any other it is made anew, and who runs is looked at only when
// somebody finds no room.
type roster struct {
	ranking Ranking
	belief  *belief
	urgent  bool // who has waited compat.UrgentAfter goes first

	turn    uint64 // counts decisions
	lines   map[*ways]*line
	running binaryHeap[*Ranked] // the last in the order first

	// Of a steady ranking:
	stale  int       // at most so many of running hold something else by now
	fresh  []*Ranked // who may not be stopped yet, or might not when last looked at
	cursor scheduler.Cursor

	// Of others, in no order:
	waits, runs []Ranked
	loaded      bool // runs and running are those of this decision
}

// line is the jobs that wait for devices in the same ways, first come first in
// the order. Those who got some are passed over. Of a ranking that is not steady
// there is one line of everybody, whose ways are nil.
type line struct {
	ways  *ways
	turns binaryHeap[*Ranked]
}

func newRoster(r Ranking, b *belief, urgent bool) *roster {
	return &roster{ranking: r, belief: b, urgent: urgent, running: binaryHeap[*Ranked]{less: runsBehind}}
}

// update brings the roster up to s.
func (o *roster) update(ctx context.Context, s *scheduler.Snapshot) error {
	o.turn++
	jobs, all := s.Waiting, true
	if !o.ranking.Steady {
		o.loaded, o.waits = false, slices.Grow(o.waits[:0], len(jobs))
	} else if jobs, all = s.Changed(&o.cursor); !all {
		jobs = once(jobs)
	}
	if all {
		o.lines, o.running.items, o.fresh, o.stale = map[*ways]*line{}, o.running.items[:0], o.fresh[:0], 0
	}
	for _, j := range jobs {
		if err := o.add(ctx, s, j, all); err != nil {
			return err
		}
	}
	if all {
		o.running.init()
		for _, l := range o.lines {
			l.turns.init()
		}
	}
	o.sweep()
	return nil
}

// load looks at who runs, if that was not done yet.
func (o *roster) load(ctx context.Context, s *scheduler.Snapshot) error {
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
	o.running.init()
	return nil
}

// everybody is who waits and who runs, in no order, of a ranking that is not
// steady, once loaded.
func (o *roster) everybody(yield func(*Ranked) bool) {
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
func (o *roster) add(ctx context.Context, s *scheduler.Snapshot, j *scheduler.JobState, later bool) error {
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
		h.items = append(h.items, r)
	} else {
		h.push(r)
	}
	return nil
}

// rank returns a job in its place.
func (o *roster) rank(ctx context.Context, s *scheduler.Snapshot, j *scheduler.JobState) (*Ranked, error) {
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
		urgent: o.urgent && j.LongestWait(s.Now) >= compat.UrgentAfter}
	return r, o.refresh(ctx, s, r)
}

// refresh brings the key of r up to s.
func (o *roster) refresh(ctx context.Context, s *scheduler.Snapshot, r *Ranked) (err error) {
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
func (o *roster) line(ctx context.Context, s *scheduler.Snapshot, j *scheduler.JobState) (*line, error) {
	var w *ways
	if o.ranking.Steady {
		var err error
		if w, err = o.belief.asSubmitted(ctx, s.Cluster, j.Job); err != nil {
			return nil, err
		}
	}
	l := o.lines[w]
	if l == nil {
		l = &line{ways: w, turns: binaryHeap[*Ranked]{less: func(a, b *Ranked) bool { return a.compare(b) < 0 }}}
		o.lines[w] = l
	}
	return l, nil
}

// next takes the first of the line out, nil if nobody is left.
func (l *line) next() *Ranked {
	for len(l.turns.items) > 0 {
		if r := l.turns.pop(); r.Job.Grant == nil && r.Job.Phase == scheduler.Waiting && r.Job.Since == r.since {
			return r
		}
	}
	return nil
}

// last takes the last of the running jobs out, nil if nobody is left. What is
// known of a key is how large it may be at most; the first of the heap is the last
// of all once its key is that of now.
func (o *roster) last(ctx context.Context, s *scheduler.Snapshot) (*Ranked, error) {
	if err := o.load(ctx, s); err != nil {
		return nil, err
	}
	h := &o.running
	for len(h.items) > 0 {
		switch r := h.items[0]; {
		case r.held != r.Job.Grant:
			h.pop()
		case r.turn != o.turn:
			if err := o.refresh(ctx, s, r); err != nil {
				return nil, err
			}
			h.down(0)
		default:
			return h.pop(), nil
		}
	}
	return nil, nil
}

// back puts in again who was taken out by next and last, as they were.
func (o *roster) back(waiting, running []*Ranked) {
	if !o.ranking.Steady {
		return
	}
	for _, r := range waiting {
		r.Grant = nil
		r.line.turns.push(r)
	}
	for _, r := range running {
		r.Grant = r.held
		o.running.push(r)
	}
}

// sweep drops running jobs that hold something else by now once they are half of
// all.
func (o *roster) sweep() {
	if 2*o.stale > len(o.running.items) {
		o.running.items = slices.DeleteFunc(o.running.items, func(r *Ranked) bool { return r.held != r.Job.Grant })
		o.running.init()
		o.stale = 0
	}
}

// spared returns when the first of those who are to run behind first may be
// stopped, of those who may not be now; never if there is none. started are those
// who get devices now.
func (o *roster) spared(ctx context.Context, s *scheduler.Snapshot, first *Ranked, started []*Ranked) (time.Duration, error) {
	at := never
	look := func(r *Ranked) {
		if t := r.ready + o.ranking.Quantum; r.Grant != nil && t > s.Now && first.compare(r) < 0 {
			at = min(at, t)
		}
	}
	if !o.ranking.Steady {
		o.everybody(func(r *Ranked) bool { look(r); return true })
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
