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

// servedOptimus is the allocation of Optimus as published, for jobs with parameter
// servers (sections 4.1 and 4.2): each job gets one replica and one server, by arrival.
// Then more go to the job with the highest gain, while it is above 0 and there is room:
//
//	gain = y * Q * (1 / f(n) - 1 / f(m)) / D
//
//	f  the oracle's belief with so many replicas and servers, steps/s
//	m  more of them than n; published is one more of either, which ends at the first
//	   dent where f is as it was measured
//	Q  convergence.left; of the oracle variant JobState.Remaining
//	D  the dominant share of m - n
//	y  young, while what is left is a guess; else 1
//
// Ties go to servers, then to the job that arrived first. Jobs without a prediction keep
// one of each. With convergence the numbers of running jobs change once in an interval,
// as in Sizing. A job whose new numbers save less than a restart costs keeps the old ones.
type servedOptimus struct {
	*paramserver.Belief
	interval    time.Duration
	convergence *convergence // nil = what is left is known
	young       float64
	raw         bool // Variant.RawGain
	leastLoaded bool // paramserver.Variant.LeastLoaded
	next        bool // Variant.NextOnly
	last        time.Duration
}

// newServedOptimus returns what p is for jobs with parameter servers.
func newServedOptimus(d policy.Deps, p *Sizing) scheduler.Policy {
	rules, packing := policy.VariantOf[Variant](d), policy.VariantOf[paramserver.Variant](d)
	return paramserver.New(d, p.interval, func(b *paramserver.Belief) paramserver.Rule {
		o := &servedOptimus{b, p.interval, p.convergence, p.young, rules.RawGain, packing.LeastLoaded, rules.NextOnly, -policy.Never}
		return o.fill
	})
}

// psJob is a job that may be given more.
type psJob struct {
	*paramserver.PackedJob
	left  float64 // steps it is taken to have left
	worth float64 // of a second saved
	keeps bool
	most  int // it can be given at once: more found no room; 0 = any number
	gain  float64
	more  paramserver.Counts // that is worth gain
}

func (p *servedOptimus) fill(ctx context.Context, s *scheduler.Snapshot, f *paramserver.Packing) error {
	psJobs, err := p.begin(ctx, s, f)
	if err != nil {
		return err
	}
	h := heap.Heap[*psJob]{Less: bySaved}
	for _, t := range psJobs {
		if t.keeps || t.Has.Replicas == 0 || t.Has.Servers == 0 {
			continue
		}
		if err := p.look(ctx, f, t); err != nil {
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
			t.Why = "each of which saves it more time than it would others"
		} else {
			t.most = t.more.Tasks() - 1
			if t.most == 0 {
				h.Pop()
				continue
			}
		}
		if err := p.look(ctx, f, t); err != nil {
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

// begin gives each job one replica and one server, and jobs that keep their numbers what
// they hold.
func (p *servedOptimus) begin(ctx context.Context, s *scheduler.Snapshot, f *paramserver.Packing) ([]*psJob, error) {
	settled := p.convergence != nil && s.Now != p.last && s.Now < p.last+p.interval
	if p.convergence != nil {
		p.convergence.look(s)
	}
	if !settled {
		p.last = s.Now
	}
	out := make([]*psJob, len(f.Jobs))
	for i, t := range f.Jobs {
		out[i] = &psJob{PackedJob: t, left: t.Remaining, worth: 1}
		out[i].keeps = settled && f.Keep(t)
	}
	for _, t := range out {
		if t.keeps {
			continue
		}
		if p.convergence != nil {
			young := false
			if t.left, young = p.convergence.left(ctx, t.JobState); young {
				t.worth = p.young
			}
		}
		t.Why = "what every job gets"
		if !p.leastLoaded {
			f.Give(t.PackedJob, paramserver.OneOfEach)
			continue
		}
		for _, one := range []paramserver.Counts{paramserver.OneReplica, paramserver.OneServer} { // a job with one of the two holds it and does not run
			f.GiveLeast(t.PackedJob, one)
			f.Ended = false
		}
	}
	return out, nil
}

func (p *servedOptimus) give(f *paramserver.Packing, t *paramserver.PackedJob, more paramserver.Counts) bool {
	if p.leastLoaded {
		return f.GiveLeast(t, more)
	}
	return f.Give(t, more)
}

// look works out what is worth most to t of one more of either.
func (p *servedOptimus) look(ctx context.Context, f *paramserver.Packing, t *psJob) error {
	t.gain = 0
	g := f.GroupOf(t.PackedJob)
	now, err := p.Rate(ctx, t.Job, g, t.Has)
	if err != nil || now == 0 {
		return err
	}
	candidates := []paramserver.Counts{paramserver.OneServer, paramserver.OneReplica}
	if !p.next {
		if candidates, err = p.larger(ctx, g, t); err != nil {
			return err
		}
	}
	for _, more := range candidates {
		rate, err := p.Rate(ctx, t.Job, g, t.Has.Plus(more))
		if err != nil {
			return err
		}
		if rate == 0 || t.most > 0 && more.Tasks() > t.most {
			continue
		}
		gain := t.worth * (t.left/now - t.left/rate)
		if share := f.ShareOf(t.PackedJob, more); !p.raw && share > 0 {
			gain /= share
		}
		if gain > t.gain {
			t.gain, t.more = gain, more
		}
	}
	return nil
}

// larger returns what can be added to what t has, the fewest first, of as many more
// servers first.
func (p *servedOptimus) larger(ctx context.Context, g *spec.NodeGroup, t *psJob) ([]paramserver.Counts, error) {
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

// keepSizes lets jobs keep the numbers they hold where other numbers save less than a
// restart costs: first jobs that would get more, then, if there is room, those that would
// get less.
func (p *servedOptimus) keepSizes(ctx context.Context, f *paramserver.Packing, psJobs []*psJob) error {
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
		meant, held, group := t.Has, paramserver.CountsOf(t.Grant), t.Group
		f.TakeBack(t.PackedJob, 0)
		if t.Group = group; !f.Give(t.PackedJob, held) {
			f.Give(t.PackedJob, meant)
		}
	}
	return nil
}

// grown returns how many more t would have than it holds.
func (t *psJob) grown() int {
	if t.Grant == nil {
		return 0
	}
	return t.Has.Tasks() - paramserver.CountsOf(t.Grant).Tasks()
}

// saves returns the seconds that what t would have saves it over what it holds; without
// end where that is not known.
func (p *servedOptimus) saves(ctx context.Context, f *paramserver.Packing, t *psJob) (float64, error) {
	g := f.GroupOf(t.PackedJob)
	held, err := p.Rate(ctx, t.Job, g, paramserver.CountsOf(t.Grant))
	if err != nil {
		return 0, err
	}
	meant, err := p.Rate(ctx, t.Job, g, t.Has)
	if err != nil || held == 0 || meant == 0 {
		return math.Inf(1), err
	}
	return t.left/held - t.left/meant, nil
}

// bySaved has the one with the largest gain first, of equal ones that which arrived
// first.
func bySaved(a, b *psJob) bool {
	return cmp.Or(cmp.Compare(b.gain, a.gain), cmp.Compare(a.Arrival, b.Arrival)) < 0
}
