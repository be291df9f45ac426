package optimus

import (
	"cmp"
	"context"
	"math"
	"slices"
	"time"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/scheduler"
	"github.com/pacer-ml/pacer/scheduler/internal/heap"
	"github.com/pacer-ml/pacer/scheduler/policy"
	"github.com/pacer-ml/pacer/scheduler/policy/paramserver"
)

// paramServerOptimus is the allocation of Optimus as published, for jobs with parameter
// servers (sections 4.1 and 4.2): each job gets one replica and one server, by arrival.
// Then more go to the job with the highest gain, while it is above 0 and there is room:
//
//	gain = y * Q * (1 / f(n) - 1 / f(m)) / D
//
//	f  predicted steps/s with n replicas and servers
//	m  larger Counts than n; the paper has one more of either only, which stops at the
//	   first local maximum of a measured f
//	Q  remaining steps: convergence.left, or JobState.Remaining for optimus-oracle
//	D  dominant share of m - n
//	y  option young for young jobs, else 1
//
// Ties go to servers, then to the job that arrived first. Jobs without a prediction keep
// one of each. With convergence the Counts of running jobs change once per interval, as in
// Sizing. A job keeps its Counts if new ones save less than a restart costs.
type paramServerOptimus struct {
	*paramserver.Speeds
	interval    time.Duration
	convergence *convergence // nil = use the true remaining steps
	young       float64
	raw         bool // Variant.RawGain
	leastLoaded bool // paramserver.Variant.LeastLoaded
	nextOnly    bool // Variant.NextOnly
	last        time.Duration
}

// newParamServerOptimus returns the policy of p for jobs with parameter servers.
func newParamServerOptimus(d policy.Deps, p *Sizing) scheduler.Policy {
	rules, packing := policy.VariantOf[Variant](d), policy.VariantOf[paramserver.Variant](d)
	return paramserver.New(d, p.interval, func(b *paramserver.Speeds) paramserver.Rule {
		o := &paramServerOptimus{b, p.interval, p.convergence, p.young, rules.RawGain, packing.LeastLoaded, rules.NextOnly, -policy.Never}
		return o.fill
	})
}

// psJob is a job that may grow.
type psJob struct {
	*paramserver.PackedJob
	left   float64 // estimated remaining steps
	weight float64 // of its gain
	keeps  bool
	bound  int // on additional tasks, since more did not fit; 0 = none
	gain   float64
	more   paramserver.Counts // additional tasks with that gain
}

func (p *paramServerOptimus) fill(ctx context.Context, s *scheduler.Snapshot, f *paramserver.Packing) error {
	psJobs := p.start(ctx, s, f)
	h := heap.Heap[*psJob]{Less: byJobGain}
	for _, t := range psJobs {
		if t.keeps || t.Has.Replicas == 0 || t.Has.Servers == 0 {
			continue
		}
		if err := p.updateGain(ctx, f, t); err != nil {
			return err
		}
		if t.gain > 0 {
			h.Items = append(h.Items, t)
		}
	}
	h.Init()
	for len(h.Items) > 0 && !f.Ended {
		t := h.Items[0]
		if p.give(f, t.PackedJob, t.more) {
			t.Why = "by marginal gain"
		} else {
			t.bound = t.more.Tasks() - 1
			if t.bound == 0 {
				h.Pop()
				continue
			}
		}
		if err := p.updateGain(ctx, f, t); err != nil {
			return err
		}
		if t.gain > 0 {
			h.FixFirst()
		} else {
			h.Pop()
		}
	}
	return p.keepSizes(ctx, f, psJobs)
}

// start gives each job one replica and one server, or its present Counts if it keeps them.
func (p *paramServerOptimus) start(ctx context.Context, s *scheduler.Snapshot, f *paramserver.Packing) []*psJob {
	settled := p.convergence != nil && s.Now != p.last && s.Now < p.last+p.interval
	if p.convergence != nil {
		p.convergence.observe(s)
	}
	if !settled {
		p.last = s.Now
	}
	out := make([]*psJob, len(f.Jobs))
	for i, t := range f.Jobs {
		out[i] = &psJob{PackedJob: t, left: t.Remaining, weight: 1}
		out[i].keeps = settled && f.Keep(t)
	}
	for _, t := range out {
		if t.keeps {
			continue
		}
		if p.convergence != nil {
			young := false
			if t.left, young = p.convergence.left(ctx, t.JobState); young {
				t.weight = p.young
			}
		}
		t.Why = "the first of each that every job gets"
		if !p.leastLoaded {
			f.Give(t.PackedJob, paramserver.OneOfEach)
			continue
		}
		for _, one := range []paramserver.Counts{paramserver.OneReplica, paramserver.OneServer} { // a job with one of the two holds it and does not run
			f.GiveLeast(t.PackedJob, one)
			f.Ended = false
		}
	}
	return out
}

func (p *paramServerOptimus) give(f *paramserver.Packing, t *paramserver.PackedJob, more paramserver.Counts) bool {
	if p.leastLoaded {
		return f.GiveLeast(t, more)
	}
	return f.Give(t, more)
}

// updateGain sets the highest gain of t, and its additional tasks.
func (p *paramServerOptimus) updateGain(ctx context.Context, f *paramserver.Packing, t *psJob) error {
	t.gain = 0
	g := f.GroupOf(t.PackedJob)
	now, err := p.Rate(ctx, t.Job, g, t.Has)
	if err != nil || now == 0 {
		return err
	}
	candidates := []paramserver.Counts{paramserver.OneServer, paramserver.OneReplica}
	if !p.nextOnly {
		if candidates, err = p.larger(ctx, g, t); err != nil {
			return err
		}
	}
	for _, more := range candidates {
		rate, err := p.Rate(ctx, t.Job, g, t.Has.Plus(more))
		if err != nil {
			return err
		}
		if rate == 0 || t.bound > 0 && more.Tasks() > t.bound {
			continue
		}
		gain := t.weight * (t.left/now - t.left/rate)
		if share := f.ShareOf(t.PackedJob, more); !p.raw && share > 0 {
			gain /= share
		}
		if gain > t.gain {
			t.gain, t.more = gain, more
		}
	}
	return nil
}

// larger returns the additional tasks that lead to larger Counts of t, fewest first; ties
// go to servers.
func (p *paramServerOptimus) larger(ctx context.Context, g *spec.NodeGroup, t *psJob) ([]paramserver.Counts, error) {
	all, err := p.Order(ctx, t.Job, g)
	if err != nil {
		return nil, err
	}
	var out []paramserver.Counts
	for _, n := range all {
		if more := n.Minus(t.Has); more.Replicas >= 0 && more.Servers >= 0 && more.Tasks() > 0 {
			out = append(out, more)
		}
	}
	slices.SortFunc(out, func(a, b paramserver.Counts) int {
		return cmp.Or(cmp.Compare(a.Tasks(), b.Tasks()), cmp.Compare(b.Servers, a.Servers))
	})
	return out, nil
}

// keepSizes restores the present Counts of jobs that save less than a restart costs: first
// of jobs that would grow, then, if they fit, of jobs that would shrink.
func (p *paramServerOptimus) keepSizes(ctx context.Context, f *paramserver.Packing, psJobs []*psJob) error {
	back := slices.Clone(psJobs)
	slices.SortStableFunc(back, func(a, b *psJob) int { return cmp.Compare(b.grown(), a.grown()) })
	for _, t := range back {
		if t.Grant == nil || t.keeps || t.StartCost == 0 || t.Group != f.GroupHeld(t.PackedJob) || paramserver.CountsOf(t.Grant) == t.Has {
			continue
		}
		saves, err := p.saves(ctx, f, t)
		if err != nil {
			return err
		}
		if saves > t.StartCost.Seconds() {
			continue
		}
		next, held, group := t.Has, paramserver.CountsOf(t.Grant), t.Group
		f.TakeBack(t.PackedJob, 0)
		if t.Group = group; !f.Give(t.PackedJob, held) {
			f.Give(t.PackedJob, next)
		}
	}
	return nil
}

// grown returns the number of tasks by which t would grow.
func (t *psJob) grown() int {
	if t.Grant == nil {
		return 0
	}
	return t.Has.Tasks() - paramserver.CountsOf(t.Grant).Tasks()
}

// saves returns the seconds that the new Counts of t save; infinite without a prediction.
func (p *paramServerOptimus) saves(ctx context.Context, f *paramserver.Packing, t *psJob) (float64, error) {
	g := f.GroupOf(t.PackedJob)
	held, err := p.Rate(ctx, t.Job, g, paramserver.CountsOf(t.Grant))
	if err != nil {
		return 0, err
	}
	next, err := p.Rate(ctx, t.Job, g, t.Has)
	if err != nil || held == 0 || next == 0 {
		return math.Inf(1), err
	}
	return t.left/held - t.left/next, nil
}

// byJobGain orders by descending gain, then arrival.
func byJobGain(a, b *psJob) bool {
	return cmp.Or(cmp.Compare(b.gain, a.gain), cmp.Compare(a.Arrival, b.Arrival)) < 0
}
