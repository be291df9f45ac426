package family

import (
	"context"
	"math"
	"sort"
)

// Of more than residualRows rows each question is answered by the process of the
// residualNear nearest to it alone: what solves all of them at once takes time
// with the cube of their number, and with an exponential kernel the near rows
// screen off the far ones. Mean and variance are those of a process that was
// shown only these rows, so that an interval is wider than that of all rows,
// never narrower.
//
// Source: Vecchia, "Estimation and Model Identification for Continuous Spatial
// Processes", JRSS B 1988; Gramacy and Apley, "Local Gaussian Process
// Approximation for Large Computer Experiments", JCGS 2015, section 2 (nearest
// neighbours).
const residualRows, residualNear = 1000, 64

func (r *residual) many() bool { return len(r.at) > residualRows }

// around returns the process of the rows nearest to p, but for row without.
func (r *residual) around(p *point, without int) *residual {
	some := &residual{kernel: r.kernel}
	for _, i := range r.nearest(p, without) {
		some.at, some.e, some.sd = append(some.at, r.at[i]), append(some.e, r.e[i]), append(some.sd, r.sd[i])
	}
	if _, ok := some.fit(correlations(some.at)(r.kernel.Steep)); !ok {
		return &residual{kernel: r.kernel} // knows nothing
	}
	return some
}

// nearest returns the residualNear rows nearest to p, the nearest first, of
// equally near ones the earlier; row without is left out.
func (r *residual) nearest(p *point, without int) []int {
	rows, far := make([]int, 0, residualNear+1), make([]float64, 0, residualNear+1)
	for i := range r.at {
		d := p.distance(&r.at[i])
		if i == without || len(far) == residualNear && d >= far[residualNear-1] {
			continue
		}
		k := sort.Search(len(far), func(k int) bool { return far[k] > d })
		rows, far = append(rows, 0), append(far, 0)
		copy(rows[k+1:], rows[k:])
		copy(far[k+1:], far[k:])
		rows[k], far[k] = i, d
		if len(far) > residualNear {
			rows, far = rows[:residualNear], far[:residualNear]
		}
	}
	return rows
}

// leftOutNear is leftOut with each row predicted from those near it.
func (r *residual) leftOutNear(ctx context.Context) (e, sd []float64, err error) {
	for i := range r.at {
		if err := ctx.Err(); err != nil {
			return nil, nil, err
		}
		mean, variance := r.around(&r.at[i], i).predict(&r.at[i])
		e = append(e, r.e[i]-mean)
		sd = append(sd, math.Sqrt(variance+residualNoise*residualNoise+r.sd[i]*r.sd[i]))
	}
	return e, sd, nil
}
