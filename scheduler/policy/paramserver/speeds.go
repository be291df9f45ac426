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

// Counts are numbers of replicas and parameter servers.
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

// The units in which jobs grow.
var (
	OneOfEach  = Counts{1, 1}
	OneReplica = Counts{1, 0}
	OneServer  = Counts{0, 1}
)

// Speeds caches the predicted speeds of jobs with parameter servers by Counts, within the
// ServerSpace. It queries the oracle once per kind of job and Counts, and again after the
// oracle has learnt.
type Speeds struct {
	oracle scheduler.Oracle  // may be nil
	learns scheduler.Learner // the oracle, nil if its answers do not change
	space  scheduler.ServerSpace
	limit  int // bound on the replicas and on the servers of a job; 0 = none but the space
	rates  map[speedKey]float64
	orders map[speedKey][]Counts
}

// speedKey is the key of a prediction, or of an order, which has zero Counts.
type speedKey struct {
	candidate.Kind
	accelerator string
	at          Counts
	revision    int
}

// NewSpeeds returns the predictions of d's oracle for the configurations of d.Servers.
func NewSpeeds(d policy.Deps) *Speeds {
	b := &Speeds{oracle: d.Oracle, space: d.Servers, rates: map[speedKey]float64{}, orders: map[speedKey][]Counts{}}
	b.learns, _ = d.Oracle.(scheduler.Learner)
	return b
}

func (b *Speeds) key(j *spec.Job, g *spec.NodeGroup, at Counts) speedKey {
	k := speedKey{Kind: candidate.KindOf(j), accelerator: g.Accelerator.Name, at: at}
	if b.learns != nil {
		k.revision = b.learns.Revision(spec.Key{Model: j.Model.Name, Accelerator: g.Accelerator.Name})
	}
	return k
}

func config(j *spec.Job, g *spec.NodeGroup, at Counts) spec.Config {
	return spec.Config{Model: j.Model, SeqLen: j.SeqLen, Plan: j.ParamServerPlan(at.Replicas, at.Servers), Accelerator: g.Accelerator, Link: g.Link}
}

// Allows reports whether j may run with these Counts in g.
func (b *Speeds) Allows(j *spec.Job, g *spec.NodeGroup, at Counts) bool {
	if at.Replicas < 1 || at.Servers < 1 || b.limit > 0 && max(at.Replicas, at.Servers) > b.limit {
		return false
	}
	return b.space.Allows(config(j, g, at))
}

// canStart reports whether j may run with one replica and one server in g.
func (b *Speeds) canStart(j *spec.Job, g *spec.NodeGroup) bool { return b.Allows(j, g, OneOfEach) }

// Rate returns the predicted steps/s of j with these Counts in g: 0 if they are not allowed
// or not predicted.
func (b *Speeds) Rate(ctx context.Context, j *spec.Job, g *spec.NodeGroup, at Counts) (float64, error) {
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

// Order returns the Counts that j may have in g in descending order of speed; ties go to
// fewer tasks, Counts without a prediction come last. It has the Counts that can be reached
// from one of each by adding one task at a time.
func (b *Speeds) Order(ctx context.Context, j *spec.Job, g *spec.NodeGroup) ([]Counts, error) {
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
