package accuracy

import (
	"cmp"
	"math"
	"slices"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/stat"
)

// rival is a textbook regression of residuals, the logarithms of measured over predicted time of the model without
// rows. predict returns those at other features; there is at least one row.
type rival struct {
	name    string
	predict func(at [][]float64, y []float64, of [][]float64) []float64
}

// rivals are what the learning curves compare with.
var rivals = []rival{{"k-NN", nearestNeighbours}, {"ridge", ridge}, {"trees", boostedTrees}}

// nearestNeighbours returns the mean of the 3 nearest rows, weighted by the inverse distance.
func nearestNeighbours(at [][]float64, y []float64, of [][]float64) []float64 {
	const k, least = 3, 1e-3
	out := make([]float64, len(of))
	for i := range of {
		order := make([]int, len(at))
		far := make([]float64, len(at))
		for j := range at {
			order[j], far[j] = j, floats.Distance(of[i], at[j], 2)
		}
		slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(far[a], far[b]) })
		weight := 0.0
		for _, j := range order[:min(k, len(order))] {
			w := 1 / (far[j] + least)
			out[i], weight = out[i]+w*y[j], weight+w
		}
		out[i] /= weight
	}
	return out
}

// ridge returns linear regression with an intercept. Its penalty has the least left-out error. Source: Golub, Heath
// and Wahba, "Generalized Cross-Validation as a Method for Choosing a Good Ridge Parameter", Technometrics 1979.
func ridge(at [][]float64, y []float64, of [][]float64) []float64 {
	n := len(at)
	mean := stat.Mean(y, nil)
	out := make([]float64, len(of))
	for i := range out {
		out[i] = mean
	}
	if n < 2 {
		return out
	}
	gram := func(a, b [][]float64) *mat.Dense {
		k := mat.NewDense(len(a), len(b), nil)
		for i := range a {
			for j := range b {
				k.Set(i, j, floats.Dot(a[i], b[j]))
			}
		}
		return k
	}
	between, across := gram(at, at), gram(of, at)
	centered := slices.Clone(y)
	floats.AddConst(-mean, centered)
	best := math.Inf(1)
	for power := -2; power <= 4; power++ {
		a := mat.DenseCopyOf(between)
		for i := range n {
			a.Set(i, i, a.At(i, i)+math.Pow(10, float64(power)))
		}
		var inverse mat.Dense
		if inverse.Inverse(a) != nil {
			continue
		}
		var alpha mat.VecDense
		alpha.MulVec(&inverse, mat.NewVecDense(n, centered))
		square := 0.0
		for i := range n {
			e := alpha.AtVec(i) / inverse.At(i, i)
			square += e * e
		}
		if square >= best {
			continue
		}
		best = square
		var moved mat.VecDense
		moved.MulVec(across, &alpha)
		for i := range out {
			out[i] = mean + moved.AtVec(i)
		}
	}
	return out
}

// boostedTrees returns gradient boosting: each of 100 trees with at most 3 splits in a row corrects a tenth of what the
// trees before it leave. Source: Friedman, "Greedy Function Approximation: A Gradient Boosting Machine", Annals of
// Statistics 2001, section 4.3.
func boostedTrees(at [][]float64, y []float64, of [][]float64) []float64 {
	const trees, depth, rate = 100, 3, 0.1
	mean := stat.Mean(y, nil)
	rest := slices.Clone(y)
	floats.AddConst(-mean, rest)
	out := make([]float64, len(of))
	floats.AddConst(mean, out)
	rows, asked := indices(len(at)), indices(len(of))
	for range trees {
		g := growth{at: at, of: of, rest: slices.Clone(rest), add: func(rows, asked []int, value float64) {
			for _, i := range rows {
				rest[i] -= rate * value
			}
			for _, i := range asked {
				out[i] += rate * value
			}
		}}
		g.grow(rows, asked, depth)
	}
	return out
}

func indices(n int) []int {
	out := make([]int, n)
	for i := range out {
		out[i] = i
	}
	return out
}

// growth grows one tree on the residuals rest of rows.
type growth struct {
	at, of [][]float64
	rest   []float64
	add    func(rows, asked []int, value float64) // a leaf
}

func (g *growth) grow(rows, asked []int, depth int) {
	feature, cut, ok := 0, 0.0, false
	if depth > 0 {
		feature, cut, ok = g.split(rows)
	}
	if !ok {
		sum := 0.0
		for _, i := range rows {
			sum += g.rest[i]
		}
		g.add(rows, asked, sum/float64(len(rows)))
		return
	}
	side := func(some []int, at [][]float64) (below, above []int) {
		for _, i := range some {
			if at[i][feature] < cut {
				below = append(below, i)
			} else {
				above = append(above, i)
			}
		}
		return below, above
	}
	low, high := side(rows, g.at)
	lowAsked, highAsked := side(asked, g.of)
	g.grow(low, lowAsked, depth-1)
	g.grow(high, highAsked, depth-1)
}

// split returns the feature and value that divide rows with the least sum of squares; ok is false if none does.
func (g *growth) split(rows []int) (feature int, cut float64, ok bool) {
	total := 0.0
	for _, i := range rows {
		total += g.rest[i]
	}
	n := float64(len(rows))
	best := total*total/n + 1e-12
	order := slices.Clone(rows)
	for f := range g.at[rows[0]] {
		slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(g.at[a][f], g.at[b][f]) })
		sum := 0.0
		for k, i := range order[:len(order)-1] {
			sum += g.rest[i]
			here, next := g.at[i][f], g.at[order[k+1]][f]
			if here == next {
				continue
			}
			below := float64(k + 1)
			if score := sum*sum/below + (total-sum)*(total-sum)/(n-below); score > best {
				best, feature, cut, ok = score, f, (here+next)/2, true
			}
		}
	}
	return feature, cut, ok
}
