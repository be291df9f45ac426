package gp

import "gonum.org/v1/gonum/blas/blas64"

// Physics is the prediction that a process corrects, linear in a few effects of the row's site.
type Physics struct {
	Site []int       // of each row
	Load [][]float64 // of each row: derivatives of ln T by the effects of its site
}

// some returns the Physics of some rows.
func (f *Physics) some(rows []int) *Physics {
	if f == nil {
		return nil
	}
	out := &Physics{}
	for _, i := range rows {
		out.Site, out.Load = append(out.Site, f.Site[i]), append(out.Load, f.Load[i])
	}
	return out
}

// SetPhysics sets the physics of r's rows.
func (r *Process) SetPhysics(f *Physics) {
	r.physics, r.answers = f, nil
	if f == nil || r.Large() {
		return
	}
	r.answers = map[int]blas64.General{}
	for i, site := range f.Site {
		of, ok := r.answers[site]
		if !ok {
			of = NewMatrix(len(f.Load[i]), len(r.At))
			r.answers[site] = of
		}
		for e, v := range f.Load[i] {
			of.Data[e*of.Stride+i] = v
		}
	}
	for _, of := range r.answers {
		for e := range of.Rows {
			r.Chol.Solve(Line(of, e))
		}
	}
}

// PredictAt is Predict, and adds to slope the derivatives of the mean by the effects of a site. Rows of the site have
// residuals that an effect changes: the mean falls where the physics rises. So the derivatives of the whole prediction
// are smallest near rows, and their variance with them (Rasmussen and Williams 2006, equation 2.42).
func (r *Process) PredictAt(p *Point, site int, slope []float64) (mean, variance float64) {
	if r.Large() {
		near := r.nearest(p, -1)
		some := r.of(near)
		if len(some.At) > 0 {
			some.SetPhysics(r.physics.some(near))
		}
		return some.PredictAt(p, site, slope)
	}
	k := r.covariances(p)
	if of, ok := r.answers[site]; ok {
		for e := range of.Rows {
			slope[e] -= Dot(k, Line(of, e))
		}
	}
	return r.given(p, k)
}
