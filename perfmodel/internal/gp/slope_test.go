package gp

import (
	"math"
	"testing"

	"gonum.org/v1/gonum/mat"
)

// TestPredictAt: the variance from a process and its physics is that of the joint distribution, and the mean has the
// derivatives that it returns.
func TestPredictAt(t *testing.T) {
	prior, post, at := line(t, 25, func(i int) float64 { return 0.2 + 0.1*float64(i%5) + 0.05*math.Sin(float64(i*i)) })
	j, g := jointOf(t, prior, &post, at)
	fit := func(sites int, shift float64) *Process {
		f := &Physics{}
		off := make([]float64, len(at))
		for i := range at {
			f.Site, f.Load = append(f.Site, i%sites), append(f.Load, post.Gradient(i))
			off[i] = post.Residual[i]
			if f.Site[i] == 0 {
				off[i] -= shift * f.Load[i][1]
			}
		}
		r, err := NewProcess(at, off, j.Process.ExtraSD, j.Process.Kernel)
		if err != nil {
			t.Fatal(err)
		}
		r.SetPhysics(f)
		return r
	}
	for _, q := range []int{3, 11} {
		p := at[q]
		p.Num[3] += 0.7
		load := []float64{1, 2.5}
		slope := []float64{load[0], load[1]}
		_, v := fit(1, 0).PredictAt(&p, 0, slope)
		jac := mat.NewDense(1, 2, load)
		white := j.Whiten([]Point{p}, jac)
		want := prior.Variance(load) + j.Process.Kernel.Variance(&p) - Dot(Line(white, 0), Line(white, 0))
		if got := v + g.Variance(slope); math.Abs(got-want) > 1e-9 || !(g.Variance(slope) < g.Variance(load)/2) {
			t.Errorf("near row %d: variance %g, want %g; with slopes %v of loads %v", q, got, want, slope, load)
		}
		slope = []float64{0, 0}
		before, _ := fit(2, 0).PredictAt(&p, 0, slope)
		after, _ := fit(2, 0.1).PredictAt(&p, 0, []float64{0, 0})
		if want := (after - before) / 0.1; math.Abs(slope[1]-want) > 1e-9 || slope[1] == 0 {
			t.Errorf("near row %d: the mean has a slope of %g, want %g", q, slope[1], want)
		}
		slope = []float64{0, 0}
		if mean, _ := fit(2, 0).PredictAt(&p, 7, slope); mean != before || slope[0] != 0 || slope[1] != 0 {
			t.Errorf("near row %d: at a site without rows the mean is %g, want %g, with slopes %v", q, mean, before, slope)
		}
	}
}

// TestPredictAtOfManyRows: with more than ExactRows rows, slopes are those of the near rows.
func TestPredictAtOfManyRows(t *testing.T) {
	at, e, sd := wavy(ExactRows + 1)
	for i := range at {
		at[i].Num[10] = 12 + float64(i%97)/97
	}
	k := usual
	many, err := NewProcess(at, e, sd, k)
	if err != nil {
		t.Fatal(err)
	}
	f := &Physics{}
	for i := range at {
		f.Site, f.Load = append(f.Site, 0), append(f.Load, []float64{1, at[i].Num[3]})
	}
	many.SetPhysics(f)
	p := at[40]
	slope := []float64{1, p.Num[3]}
	mean, variance := many.PredictAt(&p, 0, slope)
	want, wantVar := many.Predict(&p)
	if mean != want || variance != wantVar {
		t.Errorf("%g, variance %g, want %g, %g", mean, variance, want, wantVar)
	}
	if math.Abs(slope[0]) > 0.3 || math.Abs(slope[1]) > 0.3*p.Num[3]+0.1 {
		t.Errorf("at a row the slopes are %v, want about 0", slope)
	}
}
