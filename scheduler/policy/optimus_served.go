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

// servedOptimus is the allocation of Optimus as published, for jobs with parameter
// servers (sections 4.1 and 4.2): everybody gets one replica and one server, by arrival,
// and then more of them goes to whom it is worth most, as long as it is worth something
// and there is room:
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
// Of equal gains servers go first, then who arrived first. Jobs of which nothing is
// believed stay with one of each. With convergence the numbers of running jobs are
// decided on once in an interval, as in optimus. A job whose new numbers save less than
// a restart costs keeps the old ones.
type servedOptimus struct {
	*servedBelief
	interval    time.Duration
	convergence *convergence // nil = what is left is known
	young       float64
	raw         bool // compat.Quirks.RawGain
	leastLoaded bool // compat.Quirks.LeastLoaded
	next        bool // compat.Quirks.NextReplica
	last        time.Duration
}

// newServedOptimus returns what p is for jobs with parameter servers.
func newServedOptimus(d Deps, p *optimus) scheduler.Policy {
	return newServed(d, p.interval, func(b *servedBelief) servedRule {
		o := &servedOptimus{b, p.interval, p.convergence, p.young, d.Quirks.RawGain, d.Quirks.LeastLoaded, d.Quirks.NextReplica, -never}
		return o.fill
	})
}

// saver is a job that may be given more.
type saver struct {
	*trainee
	left  float64 // steps it is taken to have left
	worth float64 // of a second saved
	keeps bool
	most  int // it can be given at once: more found no room; 0 = any number
	gain  float64
	more  numbers // that is worth gain
}

func (p *servedOptimus) fill(ctx context.Context, s *scheduler.Snapshot, f *filling) error {
	savers, err := p.begin(ctx, s, f)
	if err != nil {
		return err
	}
	h := binaryHeap[*saver]{less: bySaved}
	for _, t := range savers {
		if t.keeps || t.has.replicas == 0 || t.has.servers == 0 {
			continue
		}
		if err := p.look(ctx, f, t); err != nil {
			return err
		}
		if t.gain > 0 {
			h.items = append(h.items, t)
		}
	}
	h.init()
	for len(h.items) > 0 && !f.ended {
		t := h.items[0]
		if p.give(f, t.trainee, t.more) {
			t.why = "each of which saves it more time than it would others"
		} else {
			t.most = t.more.tasks() - 1
			if t.most == 0 {
				h.pop()
				continue
			}
		}
		if err := p.look(ctx, f, t); err != nil {
			return err
		}
		if t.gain > 0 {
			h.again()
		} else {
			h.pop()
		}
	}
	return p.relent(ctx, f, savers)
}

// begin gives everybody one replica and one server, those that keep their numbers what
// they hold.
func (p *servedOptimus) begin(ctx context.Context, s *scheduler.Snapshot, f *filling) ([]*saver, error) {
	settled := p.convergence != nil && s.Now != p.last && s.Now < p.last+p.interval
	if p.convergence != nil {
		p.convergence.look(s)
	}
	if !settled {
		p.last = s.Now
	}
	out := make([]*saver, len(f.jobs))
	for i, t := range f.jobs {
		out[i] = &saver{trainee: t, left: t.Remaining, worth: 1}
		out[i].keeps = settled && f.keep(t)
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
		t.why = "what everybody gets"
		if !p.leastLoaded {
			f.give(t.trainee, oneOfEach)
			continue
		}
		for _, one := range []numbers{oneReplica, oneServer} { // who gets one without the other holds it for nothing
			f.giveLeast(t.trainee, one)
			f.ended = false
		}
	}
	return out, nil
}

func (p *servedOptimus) give(f *filling, t *trainee, more numbers) bool {
	if p.leastLoaded {
		return f.giveLeast(t, more)
	}
	return f.give(t, more)
}

// look works out what is worth most to t of one more of either.
func (p *servedOptimus) look(ctx context.Context, f *filling, t *saver) error {
	t.gain = 0
	g := f.groupOf(t.trainee)
	now, err := p.rate(ctx, t.Job, g, t.has)
	if err != nil || now == 0 {
		return err
	}
	candidates := []numbers{oneServer, oneReplica}
	if !p.next {
		if candidates, err = p.larger(ctx, g, t); err != nil {
			return err
		}
	}
	for _, more := range candidates {
		rate, err := p.rate(ctx, t.Job, g, t.has.plus(more))
		if err != nil {
			return err
		}
		if rate == 0 || t.most > 0 && more.tasks() > t.most {
			continue
		}
		gain := t.worth * (t.left/now - t.left/rate)
		if share := f.shareOf(t.trainee, more); !p.raw && share > 0 {
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
func (p *servedOptimus) larger(ctx context.Context, g *spec.NodeGroup, t *saver) ([]numbers, error) {
	all, err := p.order(ctx, t.Job, g)
	if err != nil {
		return nil, err
	}
	var out []numbers
	for _, n := range all {
		if more := (numbers{n.replicas - t.has.replicas, n.servers - t.has.servers}); more.replicas >= 0 && more.servers >= 0 && more.tasks() > 0 {
			out = append(out, more)
		}
	}
	slices.SortFunc(out, func(a, b numbers) int {
		return cmp.Or(cmp.Compare(a.tasks(), b.tasks()), cmp.Compare(b.servers, a.servers))
	})
	return out, nil
}

// relent lets jobs keep the numbers they hold where others save no more than a restart
// costs: first who would get more, then, as far as there is room, who would get less.
func (p *servedOptimus) relent(ctx context.Context, f *filling, savers []*saver) error {
	back := slices.Clone(savers)
	slices.SortStableFunc(back, func(a, b *saver) int { return cmp.Compare(b.grown(), a.grown()) })
	for _, t := range back {
		if t.Grant == nil || t.keeps || t.StartCost == 0 || t.group != f.groupHeld(t.trainee) || numbersOf(t.Grant) == t.has {
			continue
		}
		saves, err := p.saves(ctx, f, t)
		if err != nil {
			return err
		}
		if saves > t.StartCost.Seconds() {
			continue
		}
		meant, held, group := t.has, numbersOf(t.Grant), t.group
		f.takeBack(t.trainee, 0)
		if t.group = group; !f.give(t.trainee, held) {
			f.give(t.trainee, meant)
		}
	}
	return nil
}

// grown returns how many more t would have than it holds.
func (t *saver) grown() int {
	if t.Grant == nil {
		return 0
	}
	return t.has.tasks() - numbersOf(t.Grant).tasks()
}

// saves returns the seconds that what t would have saves it over what it holds; without
// end where that is not known.
func (p *servedOptimus) saves(ctx context.Context, f *filling, t *saver) (float64, error) {
	g := f.groupOf(t.trainee)
	held, err := p.rate(ctx, t.Job, g, numbersOf(t.Grant))
	if err != nil {
		return 0, err
	}
	meant, err := p.rate(ctx, t.Job, g, t.has)
	if err != nil || held == 0 || meant == 0 {
		return math.Inf(1), err
	}
	return t.left/held - t.left/meant, nil
}

// bySaved has the one with the largest gain first, of equal ones that which arrived
// first.
func bySaved(a, b *saver) bool {
	return cmp.Or(cmp.Compare(b.gain, a.gain), cmp.Compare(a.arrival, b.arrival)) < 0
}
