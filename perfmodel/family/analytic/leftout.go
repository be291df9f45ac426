package analytic

import (
	"slices"

	"github.com/pacer-ml/pacer/perfmodel/internal/bayes"
)

// LeftOut holds the errors of a source's rows if none of them is fitted: logarithms of measured over predicted time, and
// their covariance due to the uncertainty of the constants (lower triangle, row by row).
type LeftOut struct {
	Rows   []int
	Errors []float64
	Trend  []float64
}

// leftOut returns the errors of every source, in order of their names. Its stacks and devices count as new ones.
func (c *Calibration) leftOut(post *bayes.Posterior) (out []LeftOut) {
	by := map[string][]int{}
	var names []string
	for i := range c.Rows {
		s := c.Rows[i].Source
		if by[s] == nil {
			names = append(names, s)
		}
		by[s] = append(by[s], i)
	}
	slices.Sort(names)
	p := len(params)
	for _, name := range names {
		rows := by[name]
		n := len(rows)
		l := LeftOut{Rows: rows, Errors: post.LeftOutTogether(rows), Trend: make([]float64, n*n)}
		for a, i := range rows {
			g := post.Gradient(i)
			spread := make([]float64, len(g))
			for k := range g {
				if k >= p {
					sd := effects[(k-p)%len(effects)].sd * effectShare
					spread[k] = g[k] * sd * sd
					continue
				}
				for m := range p {
					spread[k] += g[m] * post.Cov.At(m, k)
				}
			}
			for b, j := range rows[:a+1] {
				h, sum := post.Gradient(j), 0.0
				for k, v := range spread {
					sum += v * h[k]
				}
				l.Trend[a*n+b] = sum
			}
		}
		out = append(out, l)
	}
	return out
}
