package gp

import (
	"context"
	"math"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/pacer-ml/pacer/perfmodel/internal/bayes"
)

// line returns the fit of y = x0 + x1·t with known derivatives, at the prior's mean, to rows at the points of
// wavy.
func line(t *testing.T, n int, y func(i int) float64) (prior bayes.Gaussian, post bayes.Posterior, at []Point) {
	t.Helper()
	at, _, _ = wavy(n)
	prior = bayes.Independent([]float64{0, 0}, []float64{0.3, 0.1})
	p := bayes.Regression{Prior: prior, Tail: 100}
	for i := range n {
		p.Y, p.Noise = append(p.Y, y(i)), append(p.Noise, 0.06)
	}
	p.Predict = func(x, out []float64) error {
		for i := range out {
			out[i] = x[0] + x[1]*float64(i%5)
		}
		return nil
	}
	post, err := p.Fit()
	if err != nil {
		t.Fatal(err)
	}
	return prior, post, at
}

func jointOf(t *testing.T, prior bayes.Gaussian, post *bayes.Posterior, at []Point) (*Joint, bayes.Gaussian) {
	t.Helper()
	j, err := NewJoint(context.Background(), prior, post, at, nil, nil, Untaught())
	if err != nil {
		t.Fatal(err)
	}
	g, err := j.Constants()
	if err != nil {
		t.Fatal(err)
	}
	return j, g
}

// TestJoint compares constants and left-out errors with those of the normal equations, (Jᵀ(K+noise)⁻¹J +
// Σ⁻¹)⁻¹, which are computed independently.
func TestJoint(t *testing.T) {
	const n = 25
	prior, post, at := line(t, n, func(i int) float64 { return 0.2 + 0.1*float64(i%5) + 0.05*math.Sin(float64(i*i)) })
	j, g := jointOf(t, prior, &post, at)
	normal := func(without int) (x, y *mat.VecDense, jac *mat.Dense, kept []int) {
		for i := range n {
			if i != without {
				kept = append(kept, i)
			}
		}
		m := len(kept)
		k, jac, y := mat.NewSymDense(m, nil), mat.NewDense(m, 2, nil), mat.NewVecDense(m, nil)
		for a, ra := range kept {
			jac.SetRow(a, post.Gradient(ra))
			y.SetVec(a, post.Residual[ra]+Dot(post.Gradient(ra), post.Mean))
			for b, rb := range kept[:a+1] {
				k.SetSym(a, b, j.Process.Kernel.Covariance(&at[ra], &at[rb]))
			}
			k.SetSym(a, a, k.At(a, a)+j.Process.Kernel.Noise*j.Process.Kernel.Noise+j.Process.ExtraSD[ra]*j.Process.ExtraSD[ra])
		}
		var inv, kj, a mat.Dense
		if err := inv.Inverse(k); err != nil {
			t.Fatal(err)
		}
		kj.Mul(&inv, jac)
		a.Mul(jac.T(), &kj)
		for i := range 2 {
			a.Set(i, i, a.At(i, i)+1/prior.Cov.At(i, i))
		}
		var b mat.VecDense
		b.MulVec(kj.T(), y)
		x = mat.NewVecDense(2, nil)
		if err := x.SolveVec(&a, &b); err != nil {
			t.Fatal(err)
		}
		if without < 0 {
			var cov mat.Dense
			if err := cov.Inverse(&a); err != nil || !mat.EqualApprox(&cov, g.Cov, 1e-9) {
				t.Errorf("covariance %v, want %v, %v", mat.Formatted(g.Cov), mat.Formatted(&cov), err)
			}
		}
		return x, y, jac, kept
	}
	x, _, _, _ := normal(-1)
	for i, v := range g.Mean {
		if math.Abs(v-x.AtVec(i)) > 1e-9 {
			t.Errorf("constant %d is %g, want %g", i, v, x.AtVec(i))
		}
	}
	e, _, err := j.Process.LeftOut(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	for _, i := range []int{0, 7, 24} {
		x, y, jac, kept := normal(i)
		var left []float64
		var places []Point
		var sd []float64
		for a, row := range kept {
			left = append(left, y.AtVec(a)-jac.At(a, 0)*x.AtVec(0)-jac.At(a, 1)*x.AtVec(1))
			places, sd = append(places, at[row]), append(sd, j.Process.ExtraSD[row])
		}
		rest, err := NewProcess(places, left, sd, j.Process.Kernel)
		if err != nil {
			t.Fatal(err)
		}
		mean, _ := rest.Predict(&at[i])
		want := post.Residual[i] + Dot(post.Gradient(i), post.Mean) - post.Gradient(i)[0]*x.AtVec(0) - post.Gradient(i)[1]*x.AtVec(1) - mean
		if math.Abs(e[i]-want) > 1e-8 {
			t.Errorf("row %d is off %g left out, want %g", i, e[i], want)
		}
	}
}

// TestJointOfRowsAlike: similar rows with a common error affect the constants less than as many independent rows
// would.
func TestJointOfRowsAlike(t *testing.T) {
	prior, post, at := line(t, 40, func(i int) float64 {
		if i < 20 {
			return 0.3
		}
		return 0
	})
	for i := range at {
		at[i] = at[0]
		if i >= 20 { // each far from all others
			at[i].Num[0] += 40 * float64(i)
		}
	}
	_, g := jointOf(t, prior, &post, at)
	off := func(x []float64) float64 { return x[0] + 2*x[1] }
	if joint, alone := off(g.Mean), off(post.Mean); joint > alone/2 {
		t.Errorf("20 rows of 40, all alike and off 0.30, move constants by %.3f, as many independent ones by %.3f", joint, alone)
	}
}

func TestJointRefuses(t *testing.T) {
	prior, post, at := line(t, 5, func(int) float64 { return 0 })
	post.Residual[2] = math.NaN()
	if j, err := NewJoint(context.Background(), prior, &post, at, nil, nil, Untaught()); err == nil {
		if _, err = j.Constants(); err == nil {
			t.Error("a row that is no number is fitted")
		}
	}
}
