package family

import (
	"math"

	"gonum.org/v1/gonum/mat"
)

// residual is a Gaussian process over what the physics leaves unexplained in
// log time. Near measured configurations it corrects the prediction; far from
// all of them it returns to the physics:
//
//	k(a, b) = A²·exp(-d(a, b))     d = Σ w·|difference of log2| + Σ w·[differs]
//
// Source: Rasmussen and Williams, "Gaussian Processes for Machine Learning",
// 2006, section 2.2 and equation 4.18 (exponential kernel).
type residual struct {
	at    []point
	e, sd []float64
	alpha []float64 // (K + noise)⁻¹ · residuals
	chol  mat.Cholesky
}

const (
	residualSD    = 0.10 // A: what the physics leaves unexplained
	residualNoise = 0.04 // and what differs between repeats
)

// numWeights are the distances of a factor of two in each of numNames.
var numWeights = [numDims]float64{0.1, 0.1, 0.15, 0.25, 0.2, 0.3, 0.2, 0.15, 0.25, 0.1, 0.3, 0.3, 0.2, 0.3}

// catWeights are the distances of another of catNames.
var catWeights = [catDims]float64{0.4, 0.5, 2, 0.5, 0.5, 1}

func (a *point) near(b *point) float64 {
	d := 0.0
	for i, w := range numWeights {
		d += w * math.Abs(a.num[i]-b.num[i])
	}
	for i, w := range catWeights {
		if a.cat[i] != b.cat[i] {
			d += w
		}
	}
	return residualSD * residualSD * math.Exp(-d)
}

// newResidual fits the process to residuals e, log measured minus log physics;
// sd is the standard deviation of each beyond that of repeats, 0 for rows as
// good as others.
func newResidual(at []point, e, sd []float64) *residual {
	r := &residual{at: at, e: e, sd: sd}
	k := mat.NewSymDense(len(e), nil)
	for i := range r.at {
		for j := range r.at[:i+1] {
			k.SetSym(i, j, r.at[i].near(&r.at[j]))
		}
		k.SetSym(i, i, residualSD*residualSD+residualNoise*residualNoise+sd[i]*sd[i])
	}
	if !r.chol.Factorize(k) {
		return nil // cannot be: the diagonal is larger than what it is made of
	}
	alpha := mat.NewVecDense(len(e), nil)
	if r.chol.SolveVecTo(alpha, mat.NewVecDense(len(e), append([]float64(nil), e...))) != nil {
		return nil
	}
	r.alpha = alpha.RawVector().Data
	return r
}

// predict returns the mean and the variance of the residual at p.
func (r *residual) predict(p *point) (mean, variance float64) {
	k := make([]float64, len(r.at))
	for i := range r.at {
		k[i] = p.near(&r.at[i])
		mean += k[i] * r.alpha[i]
	}
	v := mat.NewVecDense(len(k), k)
	var u mat.VecDense
	if r.chol.SolveVecTo(&u, v) != nil {
		return mean, residualSD * residualSD
	}
	return mean, max(residualSD*residualSD-mat.Dot(v, &u), 0)
}

// leftOut returns what each row's residual would be predicted wrong by without
// it, and the standard deviation of that (equations 5.10 to 5.12 there).
func (r *residual) leftOut() (e, sd []float64) {
	n := len(r.at)
	inv := mat.NewSymDense(n, nil)
	if r.chol.InverseTo(inv) != nil {
		return nil, nil
	}
	for i := range n {
		e = append(e, r.alpha[i]/inv.At(i, i))
		sd = append(sd, math.Sqrt(1/inv.At(i, i)))
	}
	return e, sd
}
