package optimus

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"

	"github.com/pacer-ml/pacer/perfmodel"
	"github.com/pacer-ml/pacer/perfmodel/internal/nnls"
	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// row is one point with the mean step time of its measurements.
type row struct {
	point
	seconds float64
}

// averageRows averages measurements of the same point, as Optimus does for jobs of one type.
func averageRows(ms []spec.Measurement) []row {
	sum, count := map[point]float64{}, map[point]float64{}
	for i := range ms {
		x := newPoint(&ms[i].Config)
		sum[x] += ms[i].MedianStepSec()
		count[x]++
	}
	rows := make([]row, 0, len(sum))
	for x, s := range sum {
		rows = append(rows, row{x, s / count[x]})
	}
	slices.SortFunc(rows, func(a, b row) int {
		spread := 0
		if a.Spread != b.Spread {
			spread = 1
			if b.Spread {
				spread = -1
			}
		}
		return cmp.Or(cmp.Compare(a.Workers, b.Workers), cmp.Compare(a.Servers, b.Servers), cmp.Compare(a.Samples, b.Samples), spread)
	})
	return rows
}

// estimate is the result of a fit.
type estimate struct {
	Theta []float64 `json:"theta"` // one per term
	// Blind spans the changes of Theta that change the time of no fitted row.
	Blind [][]float64 `json:"blind,omitempty"`
}

// fit computes the parameters with the smallest sum of squared relative errors of T: each row is divided by its
// time. It needs at least as many points as there are terms that differ from 0 in some row.
func (f *form) fit(rows []row) (estimate, error) {
	k := len(f.terms)
	a, ones := mat.NewDense(len(rows), k, nil), make([]float64, len(rows))
	for i, r := range rows {
		x := f.values(r.point)
		floats.Scale(1/r.seconds, x)
		a.SetRow(i, x)
		ones[i] = 1
	}
	blind, used, err := nullSpace(a)
	if err != nil {
		return estimate{}, err
	}
	if len(rows) < used {
		return estimate{}, fmt.Errorf("%d points, want %d: %s cannot be identified: %w",
			len(rows), used, strings.Join(f.named(blind), ", "), perfmodel.ErrTooFewPoints)
	}
	theta, err := nnls.Solve(a, ones)
	if err != nil {
		return estimate{}, fmt.Errorf("%w: %w", perfmodel.ErrNotFinite, err)
	}
	return estimate{Theta: theta, Blind: blind}, nil
}

// nullSpace returns vectors that span the solutions of a·x = 0, and the number of columns of a that are not all
// zero.
func nullSpace(a *mat.Dense) (null [][]float64, used int, err error) {
	const dependent = 1e-9
	rows, k := a.Dims()
	scaled, length := mat.NewDense(max(rows, k), k, nil), make([]float64, k)
	for j := range k {
		col := mat.Col(nil, j, a)
		if length[j] = floats.Norm(col, 2); length[j] == 0 {
			length[j] = 1
			continue
		}
		used++
		for i, v := range col {
			scaled.Set(i, j, v/length[j])
		}
	}
	var svd mat.SVD
	if !svd.Factorize(scaled, mat.SVDThin) {
		return nil, 0, perfmodel.ErrNotFinite
	}
	var v mat.Dense
	svd.VTo(&v)
	for i, s := range svd.Values(nil) {
		if s > dependent {
			continue
		}
		x := mat.Col(nil, i, &v)
		floats.Div(x, length)
		null = append(null, x)
	}
	return null, used, nil
}

// named returns the names of the terms that change in any vector of blind.
func (f *form) named(blind [][]float64) (out []string) {
	const nothing = 1e-6
	for j, term := range f.terms {
		involved := slices.ContainsFunc(blind, func(x []float64) bool {
			return math.Abs(x[j]) > nothing*floats.Norm(x, math.Inf(1))
		})
		if involved {
			out = append(out, term.name)
		}
	}
	return out
}

// unseen returns the names of the terms that the fitted rows do not identify and that affect the time at x.
func (f *form) unseen(x point, blind [][]float64) []string {
	const nothing = 1e-6
	var matter [][]float64
	v := f.values(x)
	for _, b := range blind {
		size := 0.0
		for j := range v {
			size += math.Abs(v[j] * b[j])
		}
		if math.Abs(floats.Dot(v, b)) > nothing*size {
			matter = append(matter, b)
		}
	}
	return f.named(matter)
}
