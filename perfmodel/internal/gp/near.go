package gp

import (
	"context"
	"math"
	"sort"
)

// With more than ExactRows rows, each prediction uses only the nearestRows nearest rows. Solving with all rows
// takes cubic time, and with an exponential kernel near rows screen off far ones. Mean and variance are those
// given these rows, so an interval is never narrower than with all rows.
//
// Source: Vecchia, "Estimation and Model Identification for Continuous Spatial
// Processes", JRSS B 1988; Gramacy and Apley, "Local Gaussian Process
// Approximation for Large Computer Experiments", JCGS 2015, section 2 (nearest
// neighbours).
const ExactRows, nearestRows = 1000, 64

// Large reports whether r has more than ExactRows rows.
func (r *Process) Large() bool { return len(r.At) > ExactRows }

// around returns the process of the rows nearest to p, except row without.
func (r *Process) around(p *Point, without int) *Process { return r.of(r.nearest(p, without)) }

// of returns the process of some rows.
func (r *Process) of(rows []int) *Process {
	n := len(rows)
	some := &Process{Kernel: r.Kernel, At: make([]Point, 0, n), Off: make([]float64, 0, n), ExtraSD: make([]float64, 0, n)}
	for _, i := range rows {
		some.At, some.Off, some.ExtraSD = append(some.At, r.At[i]), append(some.Off, r.Off[i]), append(some.ExtraSD, r.ExtraSD[i])
	}
	if some.fit() != nil {
		return &Process{Kernel: r.Kernel} // without rows
	}
	return some
}

// nearest returns the nearestRows rows nearest to p, nearest first; ties go to the earlier row. It skips row
// without.
func (r *Process) nearest(p *Point, without int) []int {
	rows, far := make([]int, 0, nearestRows+1), make([]float64, 0, nearestRows+1)
	for i := range r.At {
		d := r.apart(p, &r.At[i])
		if i == without || len(far) == nearestRows && d >= far[nearestRows-1] {
			continue
		}
		k := sort.Search(len(far), func(k int) bool { return far[k] > d })
		rows, far = append(rows, 0), append(far, 0)
		copy(rows[k+1:], rows[k:])
		copy(far[k+1:], far[k:])
		rows[k], far[k] = i, d
		if len(far) > nearestRows {
			rows, far = rows[:nearestRows], far[:nearestRows]
		}
	}
	return rows
}

// apart returns the distance of p and a row in the dimensions in which rows differ. The others add the same to all rows.
func (r *Process) apart(p, row *Point) (d float64) {
	w := &r.Kernel.Weights
	for _, i := range r.vary {
		if i < NumDims {
			d += w[i] * math.Abs(p.Num[i]-row.Num[i])
		} else if p.Cat[i-NumDims] != row.Cat[i-NumDims] {
			d += w[i]
		}
	}
	return d
}

// leftOutNear is LeftOut with each row predicted from the nearest other rows.
func (r *Process) leftOutNear(ctx context.Context) (e, sd []float64, err error) {
	for i := range r.At {
		if err := ctx.Err(); err != nil {
			return nil, nil, err
		}
		mean, variance := r.around(&r.At[i], i).Predict(&r.At[i])
		e = append(e, r.Off[i]-mean)
		sd = append(sd, math.Sqrt(variance+r.Kernel.Noise*r.Kernel.Noise+r.ExtraSD[i]*r.ExtraSD[i]))
	}
	return e, sd, nil
}
