package order

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/scheduler"
	"github.com/pacer-ml/pacer/scheduler/internal/candidate"
	"github.com/pacer-ml/pacer/scheduler/internal/heap"
	"github.com/pacer-ml/pacer/scheduler/policy"
)

// preemption lists the options of every policy made by Preemptive.
var preemption = []policy.Option{
	{Name: "backfill", Default: "true", Doc: "skip jobs that do not fit; false: a job that does not fit blocks all behind it"},
}

// Preemptive returns a policy that places jobs in the order of r, each at its own plan
// and device count. Running jobs keep their devices until a waiting job before them does
// not fit: then jobs are preempted from the end of the order until it does. If the job still does not fit, the
// preemptions are undone. A preempted job that can keep its old slots does.
func Preemptive(d policy.Deps, r Ranking) (scheduler.Policy, error) {
	v := d.Values(preemption)
	backfill := v.Bool("backfill")
	if err := v.Err(); err != nil {
		return nil, err
	}
	p, err := newPreemptive(d, r, backfill)
	if err != nil {
		return nil, err
	}
	return p, nil
}

// ArrivalOrder returns a policy that starts waiting jobs in order of arrival, each at its own
// plan and device count, and never stops a running job. With backfill a job that does
// not fit is skipped; without, it blocks all jobs behind it. Among the allowed groups and
// layouts with room a job takes the one where it is predicted fastest.
func ArrivalOrder(d policy.Deps, backfill bool) scheduler.Policy {
	b := candidate.NewFinder(d)
	r := Ranking{Key: bySubmission, Steady: true}
	return &preemptive{Ranking: r, finder: b, audit: newAudit(d, r), backfill: backfill, queue: newQueue(r, b, 0)}
}

func newPreemptive(d policy.Deps, r Ranking, backfill bool) (*preemptive, error) {
	if r.Steady && r.Wake != nil {
		return nil, errors.New("a Ranking with Steady has a Wake: leave out Steady if keys change without an event, else Wake")
	}
	rules := policy.VariantOf[Variant](d)
	if _, learns := d.Oracle.(scheduler.Learner); learns || rules.UrgentAfter > 0 { // keys change, or waiting jobs become urgent with time
		r.Steady = false
	}
	p := &preemptive{Ranking: r, finder: candidate.NewFinder(d), backfill: backfill && !rules.StopAtMisfit, preempts: true,
		audit: newAudit(d, r), undo: !rules.EvictAnyway, keepSlots: !rules.PlaceAnew, urgentAfter: rules.UrgentAfter}
	p.queue = newQueue(r, p.finder, p.urgentAfter)
	return p, nil
}

type preemptive struct {
	Ranking
	finder      *candidate.Finder
	queue       *queue
	audit       *audit        // nil = none
	backfill    bool          // skip jobs that do not fit
	preempts    bool          // preempt running jobs for jobs of higher priority
	undo        bool          // undo preemptions if the job still does not fit
	keepSlots   bool          // a preempted job that still fits on its old devices keeps them
	urgentAfter time.Duration // a job that has waited this long goes first, 0 = never
}

// Settled implements policy.Settled.
func (p *preemptive) Settled() {}

func (p *preemptive) Decide(ctx context.Context, s *scheduler.Snapshot) (scheduler.Decision, error) {
	d := scheduler.Decision{Keep: true}
	if len(s.Waiting) == 0 {
		return d, nil
	}
	if err := cmp.Or(p.audit.check(ctx, s), p.queue.update(ctx, s)); err != nil {
		return d, err
	}
	w := pass{preemptive: p, s: s, d: &d, free: s.Free(), noRoom: map[*candidate.Set]bool{}, toPlace: heap.Heap[*Entry]{Less: func(a, b *Entry) bool { return a.compare(b) < 0 }}}
	err := w.run(ctx)
	if err == nil {
		err = w.decide(ctx)
	}
	w.explain()
	p.queue.restore(w.waiting, w.tail)
	return d, err
}

// wake returns the next time at which the decision may change without an event, 0 =
// never. first is the first job in order that waits, nil = none; started are the jobs
// that get devices in this decision.
func (p *preemptive) wake(ctx context.Context, s *scheduler.Snapshot, first *Entry, started []*Entry) (time.Duration, error) {
	if first == nil || !p.preempts {
		return 0, nil
	}
	if err := p.queue.load(ctx, s); err != nil {
		return 0, err
	}
	at, err := p.queue.nextPreemptible(ctx, s, first, started)
	if err != nil {
		return 0, err
	}
	if p.Wake != nil {
		at = min(at, p.Wake(s, p.queue.all))
	}
	for r := range p.queue.all {
		if p.urgentAfter > 0 && !r.urgent && r.Grant == nil {
			at = min(at, r.WaitsSince(s)+p.urgentAfter)
		}
	}
	if at == policy.Never {
		return 0, nil
	}
	return max(at, s.Now+policy.MinWake), nil
}

// pass is one decision of a preemptive policy.
type pass struct {
	*preemptive
	s    *scheduler.Snapshot
	d    *scheduler.Decision
	free *scheduler.Inventory
	// noRoom has the sets of configurations without room. Later there is less room.
	noRoom map[*candidate.Set]bool

	toPlace heap.Heap[*Entry] // the first job of every waitQueue, and preempted jobs
	waiting []*Entry          // removed from the wait queues
	tail    []*Entry          // removed from the running jobs, lowest priority first
	blocked *Entry            // the first job that did not fit
}

func (w *pass) run(ctx context.Context) error {
	for _, l := range w.queue.waiting {
		w.pushNext(l)
	}
	for len(w.toPlace.Items) > 0 {
		r := w.toPlace.Pop()
		fits, err := w.take(ctx, r)
		if err != nil {
			return err
		}
		if !fits && w.blocked == nil {
			w.blocked = r
		}
		if !fits && !w.backfill {
			return nil
		}
		if l := r.waitQueue; l != nil && !w.noRoom[l.candidates] {
			w.pushNext(l)
		}
	}
	return nil
}

// pushNext adds the next job of a waitQueue to the jobs to place.
func (w *pass) pushNext(l *waitQueue) {
	if r := l.pop(); r != nil {
		w.toPlace.Push(r)
		w.waiting = append(w.waiting, r)
	}
}

// decide adds the changes to the decision, its grants in order of arrival.
func (w *pass) decide(ctx context.Context) error {
	var started []*Entry
	for _, jobs := range [][]*Entry{w.waiting, w.tail} {
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
	slices.SortFunc(started, func(a, b *Entry) int { return cmp.Compare(a.Job.Order, b.Job.Order) })
	for _, r := range started {
		w.d.Grants = append(w.d.Grants, r.Grant)
	}
	var err error
	w.d.Wake, err = w.wake(ctx, w.s, w.blocked, started)
	return err
}

// started explains why r gets devices.
func (w *pass) started(r *Entry, stopped []*Entry) {
	if !w.s.Reasons {
		return
	}
	why := "next in order"
	if w.blocked != nil {
		why = fmt.Sprintf("backfilled: job %s before it does not fit", w.blocked.Job.Job.ID)
	}
	if w.preempts {
		why += fmt.Sprintf(", key %.6g", r.Key)
	}
	if len(stopped) > 0 {
		why += ": preempts " + idsOf(stopped)
	}
	if r.held != nil {
		why = "moved off nodes that are down: " + why
	}
	w.d.Because(w.s, r.Job.Job.ID, "%s", why)
}

func idsOf(jobs []*Entry) string {
	var ids []string
	for _, r := range jobs {
		ids = append(ids, string(r.Job.Job.ID))
	}
	return strings.Join(ids, ", ")
}

// explain adds the reasons why jobs wait.
func (w *pass) explain() {
	for j := range w.d.Unexplained(w.s) {
		switch first := w.blocked; {
		case j.Grant != nil || first == nil:
		case !w.backfill && first.Job != j:
			w.d.Because(w.s, j.Job.ID, "behind job %s, which needs %s and does not fit", first.Job.Job.ID, spec.Count(first.Job.Job.Devices, "device"))
		case w.preempts:
			w.d.Because(w.s, j.Job.ID, "needs %s: too few are free or held by jobs that it may preempt", spec.Count(j.Job.Devices, "device"))
		}
	}
}

// take places r, preempting other jobs if needed, and reports whether r fits.
func (w *pass) take(ctx context.Context, r *Entry) (fits bool, err error) {
	if r.held != nil && w.keepSlots && w.free.Take(r.held.Slots) {
		r.Grant = r.held
		delete(w.d.Why, r.Job.Job.ID)
		return true, nil
	}
	candidates, err := w.finder.AsSubmitted(ctx, w.s.Cluster, r.Job.Job)
	if err != nil || w.noRoom[candidates] {
		return false, err
	}
	var stopped []*Entry
	if r.Grant = w.place(candidates, r); r.Grant == nil && w.preempts {
		if r.Grant, stopped, err = w.evictFor(ctx, candidates, r); err != nil {
			return false, err
		}
	}
	if r.Grant == nil {
		w.noRoom[candidates] = true
		return false, nil
	}
	w.free.Take(r.Grant.Slots)
	r.ready = w.s.Now + r.Job.StartCost
	w.started(r, stopped)
	if candidates.Warning != "" {
		w.d.Warnings = append(w.d.Warnings, candidates.Warning)
	}
	return true, nil
}

func (w *pass) place(candidates *candidate.Set, r *Entry) *scheduler.Grant {
	return w.finder.Place(w.free, w.s.Cluster, r.Job.Job, candidates)
}

// evictFor preempts jobs from the end of the order until r fits, and returns its grant
// and the preempted jobs, which are placed later. It returns nil if r never fits.
func (w *pass) evictFor(ctx context.Context, candidates *candidate.Set, r *Entry) (g *scheduler.Grant, stopped []*Entry, err error) {
	for k := 0; g == nil; k++ {
		last, err := w.victim(ctx, k)
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
		g = w.place(candidates, r)
	}
	for _, k := range stopped {
		if g == nil && w.undo {
			k.Grant = k.held
			w.free.Take(k.Grant.Slots)
		} else {
			w.toPlace.Push(k)
			if w.s.Reasons {
				w.d.Because(w.s, k.Job.Job.ID, "preempted for job %s, which has priority: key %.6g against %.6g", r.Job.Job.ID, r.Key, k.Key)
			}
		}
	}
	return g, stopped, nil
}

// victim returns the job that ran with the k-th lowest priority, nil if fewer ran.
func (w *pass) victim(ctx context.Context, k int) (*Entry, error) {
	if k == len(w.tail) {
		r, err := w.queue.popLast(ctx, w.s)
		if r == nil || err != nil {
			return nil, err
		}
		w.tail = append(w.tail, r)
	}
	return w.tail[k], nil
}

// mayStop reports whether r can be preempted for j: its quantum is over, and it holds
// devices that j accepts. r held them before this decision, since jobs are placed in
// order and r comes after j.
func (w *pass) mayStop(r *Entry, j *scheduler.JobState) bool {
	if w.s.Now < r.Job.Ready+w.Quantum {
		return false
	}
	return j.Job.Accepts(&w.s.Cluster.Groups[w.free.Group[r.Grant.Slots[0].Node]])
}
