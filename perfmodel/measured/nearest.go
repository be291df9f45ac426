package measured

import (
	"context"
	"math"
	"sync/atomic"

	"github.com/pacer-ml/pacer/perfmodel"
	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// Nearest predicts from a Table, by interpolation or with a fallback, and counts how often it used each:
//
//   - exact: the configuration was measured;
//   - interpolated: rows of the same group (see group) were measured at the same device count, or at a smaller
//     and a larger one. Between device counts n1 < n < n2, the logarithm of the time is linear in log n. Among
//     several rows of one device count, the one with the closest layout over nodes counts, then the one with the
//     closest micro-batch;
//   - modelled: the fallback's prediction.
//
// It is safe for concurrent use.
type Nearest struct {
	table    *Table
	fallback perfmodel.Predictor
	groups   map[group][]entry

	exact, interpolated, modelled atomic.Int64
}

// group is the set of rows to interpolate between: one model, accelerator, global batch, and plan except for
// DP, micro-batch and accumulation.
type group struct {
	spec.Key
	seq, batch int
	plan       spec.Plan // DP, MicroBatch and AccumSteps zeroed
}

func groupOf(c spec.Config) group {
	p := c.Plan.Normal()
	g := group{Key: c.Key(), seq: c.Seq(), batch: p.GlobalBatch()}
	p.DP, p.MicroBatch, p.AccumSteps = 0, 0, 0
	g.plan = p
	return g
}

// NewNearest returns a Nearest over t. fallback predicts configurations that t can neither look up nor
// interpolate; if it is nil, their error wraps ErrNotMeasured.
func NewNearest(t *Table, fallback perfmodel.Predictor) *Nearest {
	n := &Nearest{table: t, fallback: fallback, groups: map[group][]entry{}}
	for _, e := range t.entries {
		g := groupOf(e.config)
		n.groups[g] = append(n.groups[g], e)
	}
	return n
}

// Lookups returns the numbers of exact, interpolated and modelled predictions.
func (n *Nearest) Lookups() (exact, interpolated, modelled int) {
	return int(n.exact.Load()), int(n.interpolated.Load()), int(n.modelled.Load())
}

// Predict implements perfmodel.Predictor. Errors are those of the fallback, or wrap ErrNotMeasured without one.
func (n *Nearest) Predict(ctx context.Context, c spec.Config) (spec.Prediction, error) {
	if p, err := n.table.Predict(ctx, c); err == nil {
		n.exact.Add(1)
		return p, nil
	}
	if t, ok := n.interpolate(c); ok && !c.Alone() {
		n.interpolated.Add(1)
		return spec.Prediction{Throughput: float64(c.Plan.GlobalBatch()) / t, By: "interpolated"}, nil
	}
	if n.fallback == nil {
		return spec.Prediction{}, notMeasured(c)
	}
	p, err := n.fallback.Predict(ctx, c)
	if err == nil {
		n.modelled.Add(1)
	}
	return p, err
}

// interpolate returns a step time from the measured rows of c's group. ok is false if they do not enclose c's
// device count.
func (n *Nearest) interpolate(c spec.Config) (sec float64, ok bool) {
	devices := c.Shape.Total()
	below, above := 0, 0 // nearest measured device counts
	rows := n.groups[groupOf(c)]
	for _, e := range rows {
		d := e.config.Shape.Total()
		if d <= devices && d > below {
			below = d
		}
		if d >= devices && (above == 0 || d < above) {
			above = d
		}
	}
	if below == 0 || above == 0 {
		return 0, false
	}
	t1, t2 := closest(rows, below, &c), closest(rows, above, &c)
	if below == above {
		return t1, true
	}
	w := math.Log(float64(devices)/float64(below)) / math.Log(float64(above)/float64(below))
	return math.Exp((1-w)*math.Log(t1) + w*math.Log(t2)), true
}

// closest returns the step time of the row with the given device count that is closest to want: by layout over
// nodes, then by micro-batch, then by table order. rows must contain that device count.
func closest(rows []entry, devices int, want *spec.Config) float64 {
	best, dist, batchDist := 0.0, math.Inf(1), math.Inf(1)
	for _, e := range rows {
		if e.config.Shape.Total() != devices {
			continue
		}
		d := layoutDistance(e.config.Shape, want.Shape)
		b := math.Abs(math.Log2(float64(max(e.config.Plan.MicroBatch, 1)) / float64(max(want.Plan.MicroBatch, 1))))
		if d < dist || d == dist && b < batchDist {
			best, dist, batchDist = e.stepSec, d, b
		}
	}
	return best
}

// layoutDistance is the distance, in octaves, between the devices per node of two shapes: of the mean plus of
// the smallest node. One node versus several adds 8, more than any other difference.
func layoutDistance(a, b spec.Shape) float64 {
	perNode := func(s spec.Shape) float64 { return float64(s.Total()) / float64(max(s.Nodes(), 1)) }
	d := math.Abs(math.Log2(perNode(a)/perNode(b))) +
		math.Abs(math.Log2(float64(max(a.Least(), 1))/float64(max(b.Least(), 1))))
	if (a.Nodes() > 1) != (b.Nodes() > 1) {
		d += 8
	}
	return d
}
