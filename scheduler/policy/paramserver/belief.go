package paramserver

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/pacer-ml/pacer/perfmodel"
	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/scheduler"
	"github.com/pacer-ml/pacer/scheduler/internal/candidate"
	"github.com/pacer-ml/pacer/scheduler/policy"
)

// Counts are how many replicas and parameter servers a job has.
type Counts struct{ Replicas, Servers int }

func (n Counts) Plus(o Counts) Counts {
	return Counts{n.Replicas + o.Replicas, n.Servers + o.Servers}
}

func (n Counts) Minus(o Counts) Counts {
	return Counts{n.Replicas - o.Replicas, n.Servers - o.Servers}
}

func (n Counts) String() string {
	return spec.Count(n.Replicas, "replica") + " and " + spec.Count(n.Servers, "parameter server")
}

func (n Counts) Tasks() int { return n.Replicas + n.Servers }

// What a job can be given more of.
var (
	OneOfEach  = Counts{1, 1}
	OneReplica = Counts{1, 0}
	OneServer  = Counts{0, 1}
)

// Belief is what the oracle says of jobs with parameter servers, within what
// they may be granted. It is asked once for each kind of job and numbers, and again
// when it has learnt something.
type Belief struct {
	oracle scheduler.Oracle  // may be nil
	learns scheduler.Learner // the oracle, nil if its answers do not change
	space  scheduler.ServerSpace
	most   int // replicas, and servers, of a job; 0 = as many as the space allows
	rates  map[beliefKey]float64
	orders map[beliefKey][]Counts
}

// beliefKey is what an answer is about. Those about all numbers have none.
type beliefKey struct {
	candidate.Kind
	accelerator string
	at          Counts
	revision    int
}

func NewBelief(d policy.Deps) *Belief {
	b := &Belief{oracle: d.Oracle, space: d.Servers, rates: map[beliefKey]float64{}, orders: map[beliefKey][]Counts{}}
	b.learns, _ = d.Oracle.(scheduler.Learner)
	return b
}

func (b *Belief) key(j *spec.Job, g *spec.NodeGroup, at Counts) beliefKey {
	k := beliefKey{Kind: candidate.KindOf(j), accelerator: g.Accelerator.Name, at: at}
	if b.learns != nil {
		k.revision = b.learns.Revision(spec.Key{Model: j.Model.Name, Accelerator: g.Accelerator.Name})
	}
	return k
}

func config(j *spec.Job, g *spec.NodeGroup, at Counts) spec.Config {
	return spec.Config{Model: j.Model, SeqLen: j.SeqLen, Plan: j.ParamServerPlan(at.Replicas, at.Servers), Accelerator: g.Accelerator, Link: g.Link}
}

// Allows reports whether j may have so many in g.
func (b *Belief) Allows(j *spec.Job, g *spec.NodeGroup, at Counts) bool {
	if at.Replicas < 1 || at.Servers < 1 || b.most > 0 && max(at.Replicas, at.Servers) > b.most {
		return false
	}
	return b.space.Allows(config(j, g, at))
}

// begins reports whether j may have one of each in g.
func (b *Belief) begins(j *spec.Job, g *spec.NodeGroup) bool { return b.Allows(j, g, OneOfEach) }

// Rate returns the steps/s that are believed of j with so many in g: 0 where it may
// not have them or nothing is believed.
func (b *Belief) Rate(ctx context.Context, j *spec.Job, g *spec.NodeGroup, at Counts) (float64, error) {
	if b.oracle == nil || !b.Allows(j, g, at) {
		return 0, nil
	}
	key := b.key(j, g, at)
	if rate, ok := b.rates[key]; ok {
		return rate, nil
	}
	c := config(j, g, at)
	p, err := b.oracle.Predict(ctx, c)
	rate := p.Throughput / float64(c.Plan.GlobalBatch())
	switch {
	case errors.Is(err, perfmodel.ErrNotCovered) || err == nil && !(rate > 0 && !math.IsInf(rate, 0)):
		rate = 0
	case err != nil:
		return 0, fmt.Errorf("policy: %s with %v: %w", j.Model.Name, at, err)
	}
	b.rates[key] = rate
	return rate, nil
}

// Order returns all that j may have in g, what is believed fastest first, of equals
// the fewer; what nothing is believed of comes last. It is one of each and whatever is
// reached from it one by one.
func (b *Belief) Order(ctx context.Context, j *spec.Job, g *spec.NodeGroup) ([]Counts, error) {
	key := b.key(j, g, Counts{})
	if out, ok := b.orders[key]; ok {
		return out, nil
	}
	rates := map[Counts]float64{}
	var out []Counts
	for next := []Counts{OneOfEach}; len(next) > 0; next = next[1:] {
		at := next[0]
		if _, seen := rates[at]; seen || !b.Allows(j, g, at) {
			continue
		}
		rate, err := b.Rate(ctx, j, g, at)
		if err != nil {
			return nil, err
		}
		rates[at] = rate
		out = append(out, at)
		next = append(next, at.Plus(OneReplica), at.Plus(OneServer))
	}
	slices.SortStableFunc(out, func(x, y Counts) int {
		return cmp.Or(cmp.Compare(rates[y], rates[x]), cmp.Compare(x.Tasks(), y.Tasks()), cmp.Compare(x.Replicas, y.Replicas))
	})
	b.orders[key] = out
	return out, nil
}
