package pollux

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/pacer-ml/pacer/perfmodel"
	"github.com/pacer-ml/pacer/perfmodel/internal/lbfgsb"
	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// row is the mean of the measurements of one point.
type row struct {
	point
	// seconds is Tstep if the gradient time was measured, else the whole T.
	seconds float64
	extra   int     // number of micro-batches before the last that seconds includes
	grad    float64 // Tgrad in seconds, 0 = not measured
}

// averageRows averages measurements of the same point; those with and without a gradient time stay separate. The
// gradient time is the step time minus PhaseSec["sync"], the time of gradient synchronization per step. On one
// replica it is the whole step.
func averageRows(ms []spec.Measurement) []row {
	type group struct {
		point
		split bool
	}
	sums, count := map[group]row{}, map[group]float64{}
	for i := range ms {
		r := newRow(&ms[i])
		g := group{r.point, r.grad > 0}
		sum := sums[g]
		sum.point, sum.extra = r.point, r.extra
		sum.seconds, sum.grad = sum.seconds+r.seconds, sum.grad+r.grad
		sums[g], count[g] = sum, count[g]+1
	}
	rows := make([]row, 0, len(sums))
	for g, r := range sums {
		r.seconds, r.grad = r.seconds/count[g], r.grad/count[g]
		rows = append(rows, r)
	}
	slices.SortFunc(rows, func(a, b row) int {
		return cmp.Or(cmp.Compare(a.Nodes, b.Nodes), cmp.Compare(a.Replicas, b.Replicas), cmp.Compare(a.Micro, b.Micro),
			cmp.Compare(a.Accum, b.Accum), cmp.Compare(a.extra, b.extra))
	})
	return rows
}

func newRow(m *spec.Measurement) row {
	p := m.Config.Plan.Normal()
	r := row{point: newPoint(&m.Config, &p), seconds: m.MedianStepSec(), extra: p.AccumSteps - 1}
	sync, known := m.PhaseSec["sync"]
	if grad := (r.seconds - sync) / float64(p.AccumSteps); (known || r.Replicas == 1) && grad > 0 && sync >= 0 {
		r.grad, r.seconds, r.extra = grad, r.seconds-float64(r.extra)*grad, 0
	}
	return r
}

// sizeRange is the range of the fitted rows of a job.
type sizeRange struct {
	LeastMicro   int  `json:"least_micro"`
	MostMicro    int  `json:"most_micro"`
	MostReplicas int  `json:"most_replicas"`
	MostNodes    int  `json:"most_nodes"`
	OneNode      bool `json:"one_node"` // some row has several replicas on one node
}

func newSizeRange(rows []row) sizeRange {
	s := sizeRange{LeastMicro: rows[0].Micro}
	for _, r := range rows {
		s.LeastMicro, s.MostMicro = min(s.LeastMicro, r.Micro), max(s.MostMicro, r.Micro)
		s.MostReplicas, s.MostNodes = max(s.MostReplicas, r.Replicas), max(s.MostNodes, r.Nodes)
		s.OneNode = s.OneNode || r.Nodes == 1 && r.Replicas > 1
	}
	return s
}

// paramBounds returns the bounds of the parameters and the start of the fit. Parameters without rows are pinned
// to no cost, as in Pollux: its scheduler then explores such configurations.
func paramBounds(rows []row) (lower, upper, start vec) {
	for i := range plOverlap {
		lower[i], upper[i] = leastParam, math.Inf(1)
		start[i] = [...]float64{0.1, 0.01}[i%2]
	}
	lower[plOverlap], upper[plOverlap], start[plOverlap] = 1, 10, 1.001
	pin := func(v float64, params ...int) {
		for _, i := range params {
			lower[i], upper[i], start[i] = v, v, v
		}
	}
	seen := newSizeRange(rows)
	if seen.LeastMicro == seen.MostMicro { // half of the micro-batch's time is assumed to be fixed
		pin(meanGrad(rows)/2, plComputeFixed)
	}
	if seen.MostNodes == 1 {
		pin(leastParam, plNetFixed, plNetReplica)
	}
	if !seen.OneNode {
		pin(leastParam, plNodeFixed, plNodeReplica)
	}
	if seen.MostReplicas <= 2 {
		pin(leastParam, plNetReplica, plNodeReplica)
	}
	return lower, upper, start
}

// meanGrad returns the mean measured gradient time, 0 if there is none.
func meanGrad(rows []row) float64 {
	sum, n := 0.0, 0
	for _, r := range rows {
		if r.grad > 0 {
			sum, n = sum+r.grad, n+1
		}
	}
	return sum / float64(max(n, 1))
}

// fitRows returns the parameters that minimise lossOf.
func fitRows(ctx context.Context, rows []row, stop lbfgsb.Settings) (vec, error) {
	if meanGrad(rows) == 0 {
		return vec{}, fmt.Errorf("alpha_c and beta_c cannot be separated from synchronization: no row has one replica or a"+
			" time of phase \"sync\", measure one: %w", perfmodel.ErrTooFewPoints)
	}
	lower, upper, start := paramBounds(rows)
	loss := func(x, grad []float64) float64 {
		f, g := lossOf(rows, (*vec)(x))
		copy(grad, g[:])
		return f
	}
	r, err := lbfgsb.Minimize(lbfgsb.Objective{Func: loss, Lower: lower[:], Upper: upper[:], Stop: ctx.Err}, start[:], stop)
	switch {
	case errors.Is(err, lbfgsb.ErrNotFinite):
		return vec{}, fmt.Errorf("%w: %w", perfmodel.ErrNotFinite, err)
	case err != nil:
		return vec{}, err
	}
	v := vec(r.X)
	if newSizeRange(rows).MostNodes == 1 { // traffic between nodes is at least as slow as inside a node
		v[plNetFixed] = max(v[plNetFixed], 1.1*v[plNodeFixed])
		v[plNetReplica] = max(v[plNetReplica], 1.1*v[plNodeReplica])
	}
	return v, nil
}

// lossOf returns the sum of the root mean squared errors of ln Tgrad and of ln Tstep, plus penalties that keep
// γ near 1 and β small relative to α, and the gradient. Rows without a measured Tgrad use T for Tstep. This is
// an extension: the published fit has rows with both.
func lossOf(rows []row, v *vec) (loss float64, grad vec) {
	var step, compute logErrors
	for i := range rows {
		t, c := rows[i].step(v, rows[i].extra)
		step.add(&t, rows[i].seconds)
		if rows[i].grad > 0 {
			compute.add(&c, rows[i].grad)
		}
	}
	loss = step.root(&grad) + compute.root(&grad)
	const keepGamma, keepBeta = 1e-3, 1e-2
	over := v[plOverlap] - 1
	loss += keepGamma * over * over
	grad[plOverlap] += 2 * keepGamma * over
	for _, i := range []int{plNetFixed, plNodeFixed} {
		ratio := v[i+1] / v[i]
		loss += keepBeta * ratio * ratio
		grad[i] -= 2 * keepBeta * ratio * ratio / v[i]
		grad[i+1] += 2 * keepBeta * ratio / v[i]
	}
	return loss, grad
}

// logErrors sums squared errors of ln seconds, and their gradients.
type logErrors struct {
	n    int
	sum  float64
	grad vec // gradient of sum/2
}

func (e *logErrors) add(t *term, measured float64) {
	d := math.Log(t.sec / measured)
	e.n++
	e.sum += d * d
	for i := range e.grad {
		e.grad[i] += d * t.grad[i]
	}
}

// root returns the root of the mean squared error and adds its gradient to grad.
func (e *logErrors) root(grad *vec) float64 {
	if e.sum == 0 {
		return 0
	}
	r := math.Sqrt(e.sum / float64(e.n))
	for i := range grad {
		grad[i] += e.grad[i] / (float64(e.n) * r)
	}
	return r
}
