package policy

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
)

// numbers are how many replicas and parameter servers a job has.
type numbers struct{ replicas, servers int }

func (n numbers) plus(o numbers) numbers {
	return numbers{n.replicas + o.replicas, n.servers + o.servers}
}

func (n numbers) String() string {
	return spec.Count(n.replicas, "replica") + " and " + spec.Count(n.servers, "parameter server")
}

func (n numbers) tasks() int { return n.replicas + n.servers }

// What a job can be given more of.
var (
	oneOfEach  = numbers{1, 1}
	oneReplica = numbers{1, 0}
	oneServer  = numbers{0, 1}
)

// servedBelief is what the oracle says of jobs with parameter servers, within what
// they may be granted. It is asked once for each kind of job and numbers, and again
// when it has learnt something.
type servedBelief struct {
	oracle scheduler.Oracle  // may be nil
	learns scheduler.Learner // the oracle, nil if its answers do not change
	space  scheduler.ServerSpace
	most   int // replicas, and servers, of a job; 0 = as many as the space allows
	rates  map[servedKey]float64
	orders map[servedKey][]numbers
}

// servedKey is what an answer is about. Those about all numbers have none.
type servedKey struct {
	kindOf
	accelerator string
	at          numbers
	revision    int
}

func newServedBelief(d Deps) *servedBelief {
	b := &servedBelief{oracle: d.Oracle, space: d.Servers, rates: map[servedKey]float64{}, orders: map[servedKey][]numbers{}}
	b.learns, _ = d.Oracle.(scheduler.Learner)
	return b
}

func (b *servedBelief) key(j *spec.Job, g *spec.NodeGroup, at numbers) servedKey {
	k := servedKey{kindOf: kind(j), accelerator: g.Accelerator.Name, at: at}
	if b.learns != nil {
		k.revision = b.learns.Revision(spec.Key{Model: j.Model.Name, Accelerator: g.Accelerator.Name})
	}
	return k
}

func servedConfig(j *spec.Job, g *spec.NodeGroup, at numbers) spec.Config {
	return spec.Config{Model: j.Model, SeqLen: j.SeqLen, Plan: j.ServedPlan(at.replicas, at.servers), Accelerator: g.Accelerator, Link: g.Link}
}

// allows reports whether j may have so many in g.
func (b *servedBelief) allows(j *spec.Job, g *spec.NodeGroup, at numbers) bool {
	if at.replicas < 1 || at.servers < 1 || b.most > 0 && max(at.replicas, at.servers) > b.most {
		return false
	}
	return b.space.Allows(servedConfig(j, g, at))
}

// begins reports whether j may have one of each in g.
func (b *servedBelief) begins(j *spec.Job, g *spec.NodeGroup) bool { return b.allows(j, g, oneOfEach) }

// rate returns the steps/s that are believed of j with so many in g: 0 where it may
// not have them or nothing is believed.
func (b *servedBelief) rate(ctx context.Context, j *spec.Job, g *spec.NodeGroup, at numbers) (float64, error) {
	if b.oracle == nil || !b.allows(j, g, at) {
		return 0, nil
	}
	key := b.key(j, g, at)
	if rate, ok := b.rates[key]; ok {
		return rate, nil
	}
	c := servedConfig(j, g, at)
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

// order returns all that j may have in g, what is believed fastest first, of equals
// the fewer; what nothing is believed of comes last. It is one of each and whatever is
// reached from it one by one.
func (b *servedBelief) order(ctx context.Context, j *spec.Job, g *spec.NodeGroup) ([]numbers, error) {
	key := b.key(j, g, numbers{})
	if out, ok := b.orders[key]; ok {
		return out, nil
	}
	rates := map[numbers]float64{}
	var out []numbers
	for next := []numbers{oneOfEach}; len(next) > 0; next = next[1:] {
		at := next[0]
		if _, seen := rates[at]; seen || !b.allows(j, g, at) {
			continue
		}
		rate, err := b.rate(ctx, j, g, at)
		if err != nil {
			return nil, err
		}
		rates[at] = rate
		out = append(out, at)
		next = append(next, at.plus(oneReplica), at.plus(oneServer))
	}
	slices.SortStableFunc(out, func(x, y numbers) int {
		return cmp.Or(cmp.Compare(rates[y], rates[x]), cmp.Compare(x.tasks(), y.tasks()), cmp.Compare(x.replicas, y.replicas))
	})
	b.orders[key] = out
	return out, nil
}
