package family

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/pacer-ml/pacer/perfmodel"
	"github.com/pacer-ml/pacer/perfmodel/internal/lbfgsb"
	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// polluxRow is the mean of the rows of one point.
type polluxRow struct {
	polluxPoint
	// seconds is Tstep if the gradient time was measured, else the whole T.
	seconds float64
	extra   int     // micro-batches before the last that seconds holds
	grad    float64 // Tgrad in seconds, 0 = not measured
}

// polluxRows averages ms by point, those with and without a gradient time
// apart. The gradient time is what PhaseSec["sync"], the time per step spent in
// gradient synchronization, leaves of a step, and on one replica all of it.
func polluxRows(ms []spec.Measurement) []polluxRow {
	type group struct {
		polluxPoint
		split bool
	}
	sums, count := map[group]polluxRow{}, map[group]float64{}
	for i := range ms {
		r := newPolluxRow(&ms[i])
		g := group{r.polluxPoint, r.grad > 0}
		sum := sums[g]
		sum.polluxPoint, sum.extra = r.polluxPoint, r.extra
		sum.seconds, sum.grad = sum.seconds+r.seconds, sum.grad+r.grad
		sums[g], count[g] = sum, count[g]+1
	}
	rows := make([]polluxRow, 0, len(sums))
	for g, r := range sums {
		r.seconds, r.grad = r.seconds/count[g], r.grad/count[g]
		rows = append(rows, r)
	}
	slices.SortFunc(rows, func(a, b polluxRow) int {
		return cmp.Or(cmp.Compare(a.Nodes, b.Nodes), cmp.Compare(a.Replicas, b.Replicas), cmp.Compare(a.Micro, b.Micro),
			cmp.Compare(a.Accum, b.Accum), cmp.Compare(a.extra, b.extra))
	})
	return rows
}

func newPolluxRow(m *spec.Measurement) polluxRow {
	p := m.Config.Plan.Normal()
	r := polluxRow{polluxPoint: newPolluxPoint(&m.Config, &p), seconds: m.MedianStepSec(), extra: p.AccumSteps - 1}
	sync, known := m.PhaseSec["sync"]
	if grad := (r.seconds - sync) / float64(p.AccumSteps); (known || r.Replicas == 1) && grad > 0 && sync >= 0 {
		r.grad, r.seconds, r.extra = grad, r.seconds-float64(r.extra)*grad, 0
	}
	return r
}

// polluxRange is what some rows have shown of a job.
type polluxRange struct {
	LeastMicro   int  `json:"least_micro"`
	MostMicro    int  `json:"most_micro"`
	MostReplicas int  `json:"most_replicas"`
	MostNodes    int  `json:"most_nodes"`
	OneNode      bool `json:"one_node"` // several replicas on one node
}

func newPolluxRange(rows []polluxRow) polluxRange {
	s := polluxRange{LeastMicro: rows[0].Micro}
	for _, r := range rows {
		s.LeastMicro, s.MostMicro = min(s.LeastMicro, r.Micro), max(s.MostMicro, r.Micro)
		s.MostReplicas, s.MostNodes = max(s.MostReplicas, r.Replicas), max(s.MostNodes, r.Nodes)
		s.OneNode = s.OneNode || r.Nodes == 1 && r.Replicas > 1
	}
	return s
}

// polluxBounds returns the bounds of the parameters and where to start. What was
// not seen is taken to cost nothing: the scheduler this was made for explores
// what looks good.
func polluxBounds(rows []polluxRow) (lower, upper, start polluxVec) {
	for i := range plOverlap {
		lower[i], upper[i] = polluxLeast, math.Inf(1)
		start[i] = [...]float64{0.1, 0.01}[i%2]
	}
	lower[plOverlap], upper[plOverlap], start[plOverlap] = 1, 10, 1.001
	pin := func(v float64, params ...int) {
		for _, i := range params {
			lower[i], upper[i], start[i] = v, v, v
		}
	}
	seen := newPolluxRange(rows)
	if seen.LeastMicro == seen.MostMicro { // as much of a micro-batch's time is taken to be fixed as is not
		pin(meanGrad(rows)/2, plComputeFixed)
	}
	if seen.MostNodes == 1 {
		pin(polluxLeast, plNetFixed, plNetReplica)
	}
	if !seen.OneNode {
		pin(polluxLeast, plNodeFixed, plNodeReplica)
	}
	if seen.MostReplicas <= 2 {
		pin(polluxLeast, plNetReplica, plNodeReplica)
	}
	return lower, upper, start
}

// meanGrad returns the mean measured gradient time, 0 if there is none.
func meanGrad(rows []polluxRow) float64 {
	sum, n := 0.0, 0
	for _, r := range rows {
		if r.grad > 0 {
			sum, n = sum+r.grad, n+1
		}
	}
	return sum / float64(max(n, 1))
}

// fitPolluxRows returns the parameters that minimise polluxLoss.
func fitPolluxRows(rows []polluxRow, stop lbfgsb.Settings) (polluxVec, error) {
	if meanGrad(rows) == 0 {
		return polluxVec{}, fmt.Errorf("alpha_c and beta_c cannot be told from synchronization: no row is of one replica or says"+
			" how long that takes (phase \"sync\"), measure one: %w", perfmodel.ErrTooFewPoints)
	}
	lower, upper, start := polluxBounds(rows)
	loss := func(x, grad []float64) float64 {
		f, g := polluxLoss(rows, (*polluxVec)(x))
		copy(grad, g[:])
		return f
	}
	r, err := lbfgsb.Minimize(lbfgsb.Problem{Func: loss, Lower: lower[:], Upper: upper[:]}, start[:], stop)
	if err != nil {
		return polluxVec{}, fmt.Errorf("%w: %w", errNotFinite, err)
	}
	v := polluxVec(r.X)
	if newPolluxRange(rows).MostNodes == 1 { // traffic between nodes is no faster than inside one
		v[plNetFixed] = max(v[plNetFixed], 1.1*v[plNodeFixed])
		v[plNetReplica] = max(v[plNetReplica], 1.1*v[plNodeReplica])
	}
	return v, nil
}

// polluxLoss returns the root mean squared error of the logarithms of Tgrad and
// that of Tstep, added, with penalties that keep γ near 1 and β small beside α,
// and the gradient. Tgrad counts where it was measured; elsewhere T stands for
// Tstep, which is our extension: the published fit has rows with both.
func polluxLoss(rows []polluxRow, v *polluxVec) (loss float64, grad polluxVec) {
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

// logErrors sums squares of errors of ln seconds, and their gradients.
type logErrors struct {
	n    int
	sum  float64
	grad polluxVec // of sum/2
}

func (e *logErrors) add(t *polluxTerm, measured float64) {
	d := math.Log(t.sec / measured)
	e.n++
	e.sum += d * d
	for i := range e.grad {
		e.grad[i] += d * t.grad[i]
	}
}

// root returns the root of the mean and adds its gradient to grad.
func (e *logErrors) root(grad *polluxVec) float64 {
	if e.sum == 0 {
		return 0
	}
	r := math.Sqrt(e.sum / float64(e.n))
	for i := range grad {
		grad[i] += e.grad[i] / (float64(e.n) * r)
	}
	return r
}
