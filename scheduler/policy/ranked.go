package policy

import (
	"cmp"
	"context"
	"math"
	"slices"
	"time"

	"github.com/pacer-ml/pacer/scheduler"
	"github.com/pacer-ml/pacer/scheduler/compat"
)

// Ranking is a queue order in which running jobs make way for those before them.
type Ranking struct {
	// Key is who goes first: the least. Ties go to who arrived first; NaN is last.
	Key func(ctx context.Context, s *scheduler.Snapshot, j *scheduler.JobState) (float64, error)
	// Wake is when the order may change although nothing happens, or never; nil =
	// never. It gets the jobs in order and who of them is to run.
	Wake func(s *scheduler.Snapshot, order []Ranked) time.Duration
	// Quantum is how long a job makes progress before it has to make way.
	Quantum time.Duration
}

// Ranked is a job in its place in the order.
type Ranked struct {
	Job   *scheduler.JobState
	Key   float64
	Grant *scheduler.Grant // what it is to hold, nil = nothing

	at     int           // index into the snapshot's jobs
	urgent bool          // goes before all who are not
	ready  time.Duration // when it begins to make progress, meaningful with a Grant
}

// never is a time that does not come.
const never = time.Duration(math.MaxInt64)

// preemption are the options of every policy made by Preemptive.
var preemption = []Option{
	{Name: "backfill", Default: "true", Doc: "pass over who does not fit; false: all behind wait"},
}

// Preemptive returns a policy that goes through the jobs in the order of r, each
// at its own plan and device count. Who runs stays; for one that waits and does
// not fit, jobs are stopped from the end of the order until it does. If it never
// does they run on, and the next job has its turn. Who was stopped and still
// fits where it was when its turn comes stays there.
func Preemptive(d Deps, r Ranking) (scheduler.Policy, error) {
	p, err := newRanked(d, r)
	if err != nil {
		return nil, err
	}
	return p, nil
}

func newRanked(d Deps, r Ranking) (*ranked, error) {
	backfill, err := d.flag("backfill", true)
	if err != nil {
		return nil, err
	}
	return &ranked{Ranking: r, belief: newBelief(d), backfill: backfill && !d.Quirks.StopAtMisfit,
		restore: !d.Quirks.EvictAnyway, stay: !d.Quirks.Anew, urgent: d.Quirks.Urgent}, nil
}

type ranked struct {
	Ranking
	belief   *belief
	backfill bool // go on behind who does not fit
	restore  bool // jobs stopped in vain run on
	stay     bool // who was stopped tries its old place first
	urgent   bool // who has waited compat.UrgentAfter goes first

	keys  []rankKey // scratch
	order []Ranked  // of the present decision, scratch
}

func (p *ranked) Decide(ctx context.Context, s *scheduler.Snapshot) (scheduler.Decision, error) {
	if len(s.Waiting) == 0 {
		return scheduler.Decision{Keep: true}, nil
	}
	if err := p.rank(ctx, s); err != nil {
		return scheduler.Decision{}, err
	}
	w := walk{ranked: p, s: s, free: s.Free(), full: map[*ways]bool{}}
	d, err := w.run(ctx)
	if err != nil {
		return d, err
	}
	if at := p.wake(s); at < never {
		d.Wake = max(at, s.Now+leastWake)
	}
	return d, nil
}

// waitsSince returns when a job that is to hold nothing began to.
func waitsSince(s *scheduler.Snapshot, j *scheduler.JobState) time.Duration {
	if j.Grant != nil {
		return s.Now
	}
	return j.Since
}

// leastWake is the least time between two decisions that nothing but the order
// is the reason for.
const leastWake = time.Second

// wake returns when the target may be another although nothing happens.
func (p *ranked) wake(s *scheduler.Snapshot) time.Duration {
	at := never
	if p.Wake != nil {
		at = p.Wake(s, p.order)
	}
	waiting := false
	for i := range p.order {
		r := &p.order[i]
		switch {
		case r.Grant == nil:
			waiting = true
			if p.urgent && !r.urgent {
				at = min(at, waitsSince(s, r.Job)+compat.UrgentAfter)
			}
		case waiting && r.ready+p.Quantum > s.Now: // who waits before it may have its devices then
			at = min(at, r.ready+p.Quantum)
		}
	}
	return at
}

// rank puts the jobs of s, which are in the order of arrival, in order.
func (p *ranked) rank(ctx context.Context, s *scheduler.Snapshot) error {
	p.keys = p.keys[:0]
	jobs := s.Jobs()
	for i, j := range jobs {
		key, err := p.Key(ctx, s, j)
		if err != nil {
			return err
		}
		if math.IsNaN(key) {
			key = math.Inf(1)
		}
		p.keys = append(p.keys, rankKey{p.urgent && j.LongestWait(s.Now) >= compat.UrgentAfter, key, i})
	}
	slices.SortFunc(p.keys, rankKey.compare)
	p.order = p.order[:0]
	for _, k := range p.keys {
		j := jobs[k.at]
		p.order = append(p.order, Ranked{Job: j, Key: k.key, Grant: j.Grant, at: k.at, urgent: k.urgent, ready: j.Ready})
	}
	return nil
}

// rankKey is what the order goes by. It holds no pointers: sorting is what most
// of the time goes into.
type rankKey struct {
	urgent bool
	key    float64
	at     int // index into the snapshot's jobs
}

func (a rankKey) compare(b rankKey) int {
	switch {
	case a.urgent != b.urgent && a.urgent:
		return -1
	case a.urgent != b.urgent:
		return 1
	case a.key < b.key:
		return -1
	case a.key > b.key:
		return 1
	}
	return a.at - b.at
}

// walk is one decision of a ranked policy.
type walk struct {
	*ranked
	s    *scheduler.Snapshot
	free *scheduler.Inventory
	// full are the ways that found no room. The room that is left for those
	// further behind only shrinks.
	full map[*ways]bool
}

func (w *walk) run(ctx context.Context) (scheduler.Decision, error) {
	d := scheduler.Decision{Keep: true}
	for i := range w.order {
		if w.order[i].Grant != nil {
			continue
		}
		fits, warning, err := w.turn(ctx, i)
		if err != nil {
			return d, err
		}
		if warning != "" {
			d.Warnings = append(d.Warnings, warning)
		}
		if !fits && !w.backfill {
			break
		}
	}
	w.changes(&d)
	return d, nil
}

// changes writes down who holds something else than before, by arrival.
func (w *walk) changes(d *scheduler.Decision) {
	var started []*Ranked
	for i := range w.order {
		r := &w.order[i]
		switch r.Grant {
		case r.Job.Grant:
		case nil:
			d.Stops = append(d.Stops, r.Job.Job.ID)
		default:
			started = append(started, r)
		}
	}
	slices.SortFunc(started, func(a, b *Ranked) int { return cmp.Compare(a.Job.Order, b.Job.Order) })
	for _, r := range started {
		d.Grants = append(d.Grants, r.Grant)
	}
}

// turn finds devices for the job at i, which has none.
func (w *walk) turn(ctx context.Context, i int) (fits bool, warning string, err error) {
	r := &w.order[i]
	if old := r.Job.Grant; old != nil && w.stay && w.free.Take(old.Slots) {
		r.Grant = old
		return true, "", nil
	}
	ways, err := w.belief.asSubmitted(ctx, w.s.Cluster, r.Job.Job)
	if err != nil || w.full[ways] {
		return false, "", err
	}
	if r.Grant = w.place(ways, r); r.Grant == nil {
		r.Grant = w.evictFor(ways, i)
	}
	if r.Grant == nil {
		w.full[ways] = true
		return false, "", nil
	}
	w.free.Take(r.Grant.Slots)
	r.ready = w.s.Now + r.Job.StartCost
	return true, ways.warning, nil
}

func (w *walk) place(ways *ways, r *Ranked) *scheduler.Grant {
	return w.belief.place(w.free, w.s.Cluster, r.Job.Job, ways)
}

// evictFor stops jobs from the end of the order until the one at i fits, and
// returns its grant. If it never does, it returns nil.
func (w *walk) evictFor(ways *ways, i int) *scheduler.Grant {
	var stopped []int
	for k := len(w.order) - 1; k > i; k-- {
		r := &w.order[k]
		if r.Grant == nil || !w.mayStop(r, w.order[i].Job) {
			continue
		}
		w.free.Give(r.Grant.Slots)
		r.Grant = nil
		stopped = append(stopped, k)
		if g := w.place(ways, &w.order[i]); g != nil {
			return g
		}
	}
	if w.restore {
		for _, k := range stopped {
			w.order[k].Grant = w.order[k].Job.Grant
			w.free.Take(w.order[k].Grant.Slots)
		}
	}
	return nil
}

// mayStop reports whether r can make way for j: it has had its quantum and holds
// devices that j can use. Who holds devices here held them before, for jobs
// behind the one whose turn it is have not had theirs.
func (w *walk) mayStop(r *Ranked, j *scheduler.JobState) bool {
	if w.s.Now < r.Job.Ready+w.Quantum {
		return false
	}
	return accepts(j.Job, &w.s.Cluster.Groups[w.free.Group[r.Grant.Slots[0].Node]])
}
