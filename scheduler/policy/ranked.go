package policy

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/scheduler"
	"github.com/pacer-ml/pacer/scheduler/compat"
)

// Ranking is a queue order in which running jobs make way for those before them.
type Ranking struct {
	// Key is who goes first: the least. Ties go to who arrived first; NaN is last.
	Key func(ctx context.Context, s *scheduler.Snapshot, j *scheduler.JobState) (float64, error)
	// Steady says that the Key of a job stays as it is while the job waits, and does
	// not rise while it holds devices. The order is then kept from decision to
	// decision instead of being made anew. Not with Wake.
	Steady bool
	// Wake is when the order may change although nothing happens, or never; nil =
	// never. It gets all jobs, in no order, and who of them is to run. It is asked
	// while somebody is to wait.
	Wake func(s *scheduler.Snapshot, jobs iter.Seq[*Ranked]) time.Duration
	// Quantum is how long a job makes progress before it has to make way.
	Quantum time.Duration
}

// Ranked is a job in its place in the order.
type Ranked struct {
	Job   *scheduler.JobState
	Key   float64
	Grant *scheduler.Grant // what it is to hold, nil = nothing

	urgent bool          // goes before all who are not
	ready  time.Duration // when it begins to make progress, meaningful with a Grant

	// Of a roster:
	line  *line            // where it waits, nil = it runs
	held  *scheduler.Grant // what it held when it was put in
	since time.Duration    // JobState.Since then
	turn  uint64           // the decision Key was found in
	bound float64          // Key is no more than this
}

// compare is negative when a goes before b.
func (a *Ranked) compare(b *Ranked) int {
	switch {
	case a.urgent != b.urgent && a.urgent:
		return -1
	case a.urgent != b.urgent:
		return 1
	case a.Key < b.Key:
		return -1
	case a.Key > b.Key:
		return 1
	}
	return a.Job.Order - b.Job.Order
}

// runsBehind reports whether a is behind b in the order as far as is known.
func runsBehind(a, b *Ranked) bool {
	if a.urgent == b.urgent && a.bound != b.bound {
		return a.bound > b.bound
	}
	return a.compare(b) > 0
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

// Ordered returns a policy that starts waiting jobs in the order of arrival, each
// at its own plan and device count, and never stops one that runs. With backfill
// a job that does not fit is passed over; without it, everything behind waits. Of
// the layouts allowed, and the groups where the job asks for none, a job takes the
// one it is believed fastest on among those with room.
func Ordered(d Deps, backfill bool) scheduler.Policy {
	b := newBelief(d)
	return &ranked{Ranking: Ranking{Key: bySubmission, Steady: true}, belief: b, backfill: backfill,
		roster: newRoster(Ranking{Key: bySubmission, Steady: true}, b, false)}
}

func newRanked(d Deps, r Ranking) (*ranked, error) {
	backfill, err := d.flag("backfill", true)
	if err != nil {
		return nil, err
	}
	if _, learns := d.Oracle.(scheduler.Learner); learns || d.Quirks.Urgent { // keys change, or who waits becomes urgent with time
		r.Steady = false
	}
	p := &ranked{Ranking: r, belief: newBelief(d), backfill: backfill && !d.Quirks.StopAtMisfit, preempts: true,
		restore: !d.Quirks.EvictAnyway, stay: !d.Quirks.Anew, urgent: d.Quirks.Urgent}
	p.roster = newRoster(r, p.belief, p.urgent)
	return p, nil
}

type ranked struct {
	Ranking
	belief   *belief
	roster   *roster
	backfill bool // go on behind who does not fit
	preempts bool // stop jobs for those before them
	restore  bool // jobs stopped in vain run on
	stay     bool // who was stopped tries its old place first
	urgent   bool // who has waited compat.UrgentAfter goes first
}

func (p *ranked) Decide(ctx context.Context, s *scheduler.Snapshot) (scheduler.Decision, error) {
	d := scheduler.Decision{Keep: true}
	if len(s.Waiting) == 0 {
		return d, nil
	}
	if err := p.roster.update(ctx, s); err != nil {
		return d, err
	}
	w := walk{ranked: p, s: s, d: &d, free: s.Free(), full: map[*ways]bool{}, turns: binaryHeap[*Ranked]{less: func(a, b *Ranked) bool { return a.compare(b) < 0 }}}
	err := w.run(ctx)
	if err == nil {
		err = w.decide(ctx)
	}
	w.explain()
	p.roster.back(w.waiting, w.tail)
	return d, err
}

// leastWake is the least time between two decisions that nothing but the order
// is the reason for.
const leastWake = time.Second

// wake returns when the target may be another although nothing happens, 0 = never.
// first is the first in the order who is to wait, nil if nobody is, started are
// those who get devices now.
func (p *ranked) wake(ctx context.Context, s *scheduler.Snapshot, first *Ranked, started []*Ranked) (time.Duration, error) {
	if first == nil || !p.preempts {
		return 0, nil
	}
	if err := p.roster.load(ctx, s); err != nil {
		return 0, err
	}
	at, err := p.roster.spared(ctx, s, first, started) // who waits may have devices once others may be stopped
	if err != nil {
		return 0, err
	}
	if p.Wake != nil {
		at = min(at, p.Wake(s, p.roster.everybody))
	}
	for r := range p.roster.everybody {
		if p.urgent && !r.urgent && r.Grant == nil {
			at = min(at, waitsSince(s, r.Job)+compat.UrgentAfter)
		}
	}
	if at == never {
		return 0, nil
	}
	return max(at, s.Now+leastWake), nil
}

// waitsSince returns when a job that is to hold nothing began to.
func waitsSince(s *scheduler.Snapshot, j *scheduler.JobState) time.Duration {
	if j.Grant != nil {
		return s.Now
	}
	return j.Since
}

// walk is one decision of a ranked policy.
type walk struct {
	*ranked
	s    *scheduler.Snapshot
	d    *scheduler.Decision
	free *scheduler.Inventory
	// full are the ways that found no room. The room that is left for those
	// further behind only shrinks.
	full map[*ways]bool

	turns   binaryHeap[*Ranked] // whose turn is to come: the first of every line, and who was stopped
	waiting []*Ranked           // who was taken out of the lines
	tail    []*Ranked           // who was taken out of the running jobs, the last first
	first   *Ranked             // the first who found no room
}

func (w *walk) run(ctx context.Context) error {
	for _, l := range w.roster.lines {
		w.come(l)
	}
	for len(w.turns.items) > 0 {
		r := w.turns.pop()
		fits, err := w.take(ctx, r)
		if err != nil {
			return err
		}
		if !fits && w.first == nil {
			w.first = r
		}
		if !fits && !w.backfill {
			return nil
		}
		if l := r.line; l != nil && !w.full[l.ways] {
			w.come(l)
		}
	}
	return nil
}

// come lets the next of a line have a turn.
func (w *walk) come(l *line) {
	if r := l.next(); r != nil {
		w.turns.push(r)
		w.waiting = append(w.waiting, r)
	}
}

// decide writes down what is to change, by arrival.
func (w *walk) decide(ctx context.Context) error {
	var started []*Ranked
	for _, jobs := range [][]*Ranked{w.waiting, w.tail} {
		for _, r := range jobs {
			switch r.Grant {
			case r.held:
			case nil:
				w.d.Stops = append(w.d.Stops, r.Job.Job.ID)
			default:
				started = append(started, r)
			}
		}
	}
	slices.SortFunc(started, func(a, b *Ranked) int { return cmp.Compare(a.Job.Order, b.Job.Order) })
	for _, r := range started {
		w.d.Grants = append(w.d.Grants, r.Grant)
	}
	var err error
	w.d.Wake, err = w.wake(ctx, w.s, w.first, started)
	return err
}

// started says why r, whose turn it is, has devices now.
func (w *walk) started(r *Ranked, stopped []*Ranked) {
	if !w.s.Reasons {
		return
	}
	why := "next in the order"
	if w.first != nil {
		why = fmt.Sprintf("fits, as job %s before it does not", w.first.Job.Job.ID)
	}
	if w.preempts {
		why += fmt.Sprintf(", by %.6g", r.Key)
	}
	if len(stopped) > 0 {
		why += ": stopped for it " + idsOf(stopped)
	}
	if r.held != nil {
		why = "its devices are gone, " + why
	}
	w.d.Because(w.s, r.Job.Job.ID, "%s", why)
}

func idsOf(jobs []*Ranked) string {
	var ids []string
	for _, r := range jobs {
		ids = append(ids, string(r.Job.Job.ID))
	}
	return strings.Join(ids, ", ")
}

// explain says of those who wait what for.
func (w *walk) explain() {
	for j := range w.d.Unexplained(w.s) {
		switch first := w.first; {
		case j.Grant != nil || first == nil:
		case !w.backfill && first.Job != j:
			w.d.Because(w.s, j.Job.ID, "behind job %s, which asks for %s and does not fit", first.Job.Job.ID, spec.Count(first.Job.Job.Devices, "device"))
		case w.preempts:
			w.d.Because(w.s, j.Job.ID, "asks for %s: too few are free or held by jobs that have to make way for it", spec.Count(j.Job.Devices, "device"))
		}
	}
}

// take finds devices for r, whose turn it is and who has none, and reports whether
// there were some.
func (w *walk) take(ctx context.Context, r *Ranked) (fits bool, err error) {
	if r.held != nil && w.stay && w.free.Take(r.held.Slots) {
		r.Grant = r.held
		delete(w.d.Why, r.Job.Job.ID)
		return true, nil
	}
	ways, err := w.belief.asSubmitted(ctx, w.s.Cluster, r.Job.Job)
	if err != nil || w.full[ways] {
		return false, err
	}
	var stopped []*Ranked
	if r.Grant = w.place(ways, r); r.Grant == nil && w.preempts {
		if r.Grant, stopped, err = w.evictFor(ctx, ways, r); err != nil {
			return false, err
		}
	}
	if r.Grant == nil {
		w.full[ways] = true
		return false, nil
	}
	w.free.Take(r.Grant.Slots)
	r.ready = w.s.Now + r.Job.StartCost
	w.started(r, stopped)
	if ways.warning != "" {
		w.d.Warnings = append(w.d.Warnings, ways.warning)
	}
	return true, nil
}

func (w *walk) place(ways *ways, r *Ranked) *scheduler.Grant {
	return w.belief.place(w.free, w.s.Cluster, r.Job.Job, ways)
}

// evictFor stops jobs from the end of the order until r fits, and returns its
// grant and them. If it never does, it returns nil. Who was stopped has a turn later.
func (w *walk) evictFor(ctx context.Context, ways *ways, r *Ranked) (g *scheduler.Grant, stopped []*Ranked, err error) {
	for k := 0; g == nil; k++ {
		last, err := w.fromEnd(ctx, k)
		if err != nil {
			return nil, nil, err
		}
		if last == nil || last.compare(r) <= 0 {
			break
		}
		if last.Grant == nil || !w.mayStop(last, r.Job) {
			continue
		}
		w.free.Give(last.Grant.Slots)
		last.Grant = nil
		stopped = append(stopped, last)
		g = w.place(ways, r)
	}
	for _, k := range stopped {
		if g == nil && w.restore {
			k.Grant = k.held
			w.free.Take(k.Grant.Slots)
		} else {
			w.turns.push(k)
			if w.s.Reasons {
				w.d.Because(w.s, k.Job.Job.ID, "makes way for job %s, which goes first: %.6g against %.6g", r.Job.Job.ID, r.Key, k.Key)
			}
		}
	}
	return g, stopped, nil
}

// fromEnd returns the k-th of the jobs that ran, counted from the end of the
// order, nil if there are not as many.
func (w *walk) fromEnd(ctx context.Context, k int) (*Ranked, error) {
	if k == len(w.tail) {
		r, err := w.roster.last(ctx, w.s)
		if r == nil || err != nil {
			return nil, err
		}
		w.tail = append(w.tail, r)
	}
	return w.tail[k], nil
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
