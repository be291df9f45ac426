package bayes

import (
	"errors"
	"math"
	"math/rand/v2"
	"testing"
)

// line predicts y = ln(exp(x0) + exp(x1)·t).
func line(t []float64) func(x, out []float64) error {
	return func(x, out []float64) error {
		for i := range out {
			out[i] = math.Log(math.Exp(x[0]) + math.Exp(x[1])*t[i])
		}
		return nil
	}
}

func problem(noise float64, wild int) *Regression {
	rng := rand.New(rand.NewPCG(1, 2))
	t := make([]float64, 40)
	for i := range t {
		t[i] = float64(1 + i%10)
	}
	p := &Regression{Prior: Independent([]float64{0, 0}, []float64{2, 2}), Predict: line(t)}
	p.Y, p.Noise = make([]float64, len(t)), make([]float64, len(t))
	if err := p.Predict([]float64{0.7, -1.2}, p.Y); err != nil {
		panic(err) // line returns no error
	}
	for i := range p.Y {
		p.Y[i] += noise * rng.NormFloat64()
		p.Noise[i] = 0.05
	}
	for i := range wild {
		p.Y[i*7] += 2
	}
	return p
}

func TestRecovers(t *testing.T) {
	for _, c := range []struct {
		name  string
		noise float64
		wild  int
		tol   float64
	}{{"exact", 0, 0, 0.01}, {"noise", 0.05, 0, 0.1}, {"noise and wild rows", 0.05, 3, 0.15}} {
		post, err := problem(c.noise, c.wild).Fit()
		if err != nil {
			t.Fatal(err)
		}
		if math.Abs(post.Mean[0]-0.7) > c.tol || math.Abs(post.Mean[1]+1.2) > c.tol {
			t.Errorf("%s: %v, want [0.7 -1.2] within %g", c.name, post.Mean, c.tol)
		}
	}
}

// TestLeftOut compares the approximation with fits without the row.
func TestLeftOut(t *testing.T) {
	p := problem(0.05, 0)
	post, err := p.Fit()
	if err != nil {
		t.Fatal(err)
	}
	for _, i := range []int{0, 9, 21} {
		q := *p
		q.Weight = make([]float64, len(p.Y))
		for j := range q.Weight {
			q.Weight[j] = 1
		}
		q.Weight[i] = 0
		without, err := q.Fit()
		if err != nil {
			t.Fatal(err)
		}
		if d := math.Abs(without.Residual[i] - post.LeftOut[i]); d > 0.003 {
			t.Errorf("row %d: %g, left out %g", i, post.LeftOut[i], without.Residual[i])
		}
	}
}

func TestNoRowsIsThePrior(t *testing.T) {
	post, err := (&Regression{Prior: Independent([]float64{3}, []float64{2})}).Fit()
	if err != nil || post.Mean[0] != 3 || post.Variance([]float64{1}) != 4 {
		t.Errorf("%v, %v", post, err)
	}
}

func TestNotFinite(t *testing.T) {
	p := problem(0, 0)
	p.Y[3] = math.NaN()
	if _, err := p.Fit(); !errors.Is(err, ErrNotFinite) {
		t.Errorf("%v, want ErrNotFinite", err)
	}
}

// TestLeftOutTogether compares the approximation with a fit without the rows. For a linear model without
// outliers they are equal.
func TestLeftOutTogether(t *testing.T) {
	p := problem(0.05, 0)
	p.Tail = 1e6
	p.Predict = func(x, out []float64) error {
		for i := range out {
			out[i] = x[0] + x[1]*float64(i%10)
		}
		return nil
	}
	post, err := p.Fit()
	if err != nil {
		t.Fatal(err)
	}
	rows := []int{3, 9, 19, 22, 29, 39}
	got := post.LeftOutTogether(rows)
	q := *p
	q.Weight = make([]float64, len(p.Y))
	for i := range q.Weight {
		q.Weight[i] = 1
	}
	for _, i := range rows {
		q.Weight[i] = 0
	}
	without, err := q.Fit()
	if err != nil {
		t.Fatal(err)
	}
	for k, i := range rows {
		if math.Abs(got[k]-without.Residual[i]) > 1e-6 || math.Abs(got[k]-post.Residual[i]) < 1e-4 {
			t.Errorf("row %d: off %g, left out %g, in the fit %g", i, got[k], without.Residual[i], post.Residual[i])
		}
		if alone := post.LeftOutTogether([]int{i})[0]; math.Abs(alone-post.LeftOut[i]) > 1e-9 {
			t.Errorf("row %d: alone %g and %g", i, alone, post.LeftOut[i])
		}
	}
}
