package bayes

import (
	"errors"
	"fmt"
	"math"

	"gonum.org/v1/gonum/blas/blas64"
	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/lapack/lapack64"
	"gonum.org/v1/gonum/mat"
)

// Gaussian is a normal distribution of n parameters.
type Gaussian struct {
	Mean []float64
	Cov  *mat.SymDense // n x n, positive definite
}

// Independent returns the Gaussian of uncorrelated parameters. Every sd must be positive.
func Independent(mean, sd []float64) Gaussian {
	cov := mat.NewSymDense(len(mean), nil)
	for i, s := range sd {
		cov.SetSym(i, i, s*s)
	}
	return Gaussian{Mean: mean, Cov: cov}
}

// Variance returns gᵀ·Cov·g, the variance of a prediction with gradient g.
func (g Gaussian) Variance(grad []float64) float64 {
	v := mat.NewVecDense(len(grad), grad)
	return max(mat.Inner(v, g.Cov, v), 0)
}

// Regression is one fit of y = Predict(x) + noise.
type Regression struct {
	Prior Gaussian
	// Predict writes the prediction of every row for parameters x to out. The fit returns its error, such as
	// that of a context.
	Predict func(x, out []float64) error
	// Differentiate writes the derivative of every row's prediction by every parameter to jac (rows x n), which
	// is all zeros; at holds the predictions at x. The fit returns its error. nil = forward differences of
	// Predict.
	Differentiate func(x, at []float64, jac *mat.Dense) error
	Y             []float64 // measured values, on the scale of Predict: log seconds
	Noise         []float64 // standard deviation of each row's residual
	// Weight multiplies each row's term in the likelihood; nil = 1.
	Weight []float64
	// Tail is the number of standard deviations up to which a residual has full weight. The influence of larger
	// residuals is bounded (pseudo-Huber). 0 = 2.
	Tail float64
}

// Posterior is the Gaussian around the mode of a fit.
type Posterior struct {
	Gaussian
	jac      *mat.Dense
	weight   []float64
	Residual []float64 // Y minus prediction at the mode
	Spread   []float64 // variance of each row's prediction, without its noise
	// LeftOut approximates, for each row, the residual of a fit without it: residual / (1 - leverage).
	LeftOut []float64
}

// ErrNotFinite means that predictions or measurements are NaN or infinite.
var ErrNotFinite = errors.New("bayes: not finite")

// Step is the step of forward differences. Parameters are logarithms, of order 1.
const Step = 1e-5

const (
	maxSteps = 40
	enough   = 1e-6 // relative decrease of the objective at which to stop
)

// Mode is the result of the search for the mode.
type Mode struct {
	f     *fit // nil without rows
	prior Gaussian
}

// Fit returns the posterior, which is the prior if there are no rows. Errors are those of FindMode, or wrap
// ErrNotFinite for a posterior with infinite variance.
func (p *Regression) Fit() (Posterior, error) {
	m, err := p.FindMode()
	if err != nil {
		return Posterior{}, err
	}
	return m.Posterior()
}

// FindMode returns the mode. The error wraps ErrNotFinite if Y, or Predict near the prior's mean, is not
// finite; otherwise it is that of Predict or Differentiate.
func (p *Regression) FindMode() (Mode, error) {
	f, err := newFit(p)
	if err != nil {
		return Mode{}, err
	}
	if len(p.Y) == 0 {
		return Mode{prior: p.Prior}, nil
	}
	return Mode{f: f}, f.run()
}

// Posterior returns the Gaussian around the mode. It calls Predict and Differentiate again and returns their
// errors.
func (m *Mode) Posterior() (Posterior, error) {
	if m.f == nil {
		return Posterior{Gaussian: m.prior}, nil
	}
	return m.f.posterior()
}

type fit struct {
	*Regression
	n         int
	tail      float64
	precision *mat.SymDense // inverse covariance of the prior
	x         []float64
	at        []float64 // predictions at x
	objective float64
	jac       *mat.Dense
	moved     []float64

	// Scratch space: rows of jac times the square root of their weight, the normal equations, the same damped
	// and factored, and their solution.
	root           *mat.Dense
	normal, damped *mat.SymDense
	step           []float64
}

func newFit(p *Regression) (*fit, error) {
	n := len(p.Prior.Mean)
	f := &fit{Regression: p, n: n, tail: p.Tail, x: append([]float64(nil), p.Prior.Mean...)}
	if f.tail == 0 {
		f.tail = 2
	}
	var chol mat.Cholesky
	if !chol.Factorize(p.Prior.Cov) {
		return nil, fmt.Errorf("bayes: the prior's covariance of %d parameters is not positive definite", n)
	}
	f.precision = mat.NewSymDense(n, nil)
	if err := chol.InverseTo(f.precision); err != nil {
		return nil, fmt.Errorf("bayes: prior: %w", err)
	}
	f.at, f.moved = make([]float64, len(p.Y)), make([]float64, len(p.Y))
	return f, nil
}

func (f *fit) run() error {
	if err := f.Predict(f.x, f.at); err != nil {
		return err
	}
	f.objective = f.cost(f.x, f.at)
	if math.IsNaN(f.objective) || math.IsInf(f.objective, 0) {
		return fmt.Errorf("%w: the objective is %g where the fit starts", ErrNotFinite, f.objective)
	}
	f.jac, f.root = mat.NewDense(len(f.Y), f.n, nil), mat.NewDense(len(f.Y), f.n, nil)
	f.normal, f.damped, f.step = mat.NewSymDense(f.n, nil), mat.NewSymDense(f.n, nil), make([]float64, f.n)
	damping := 1e-3
	for range maxSteps {
		if err := f.differentiate(); err != nil {
			return err
		}
		before := f.objective
		next, moved, err := f.advance(damping)
		if err != nil || !moved || before-f.objective < enough*(1+math.Abs(before)) {
			return err
		}
		damping = next
	}
	return nil
}

// weight returns the weight of row i's squared residual at predictions at.
func (f *fit) weight(i int, at []float64) float64 {
	z := (f.Y[i] - at[i]) / (f.tail * f.Noise[i])
	return f.rowWeight(i) / (f.Noise[i] * f.Noise[i] * math.Sqrt(1+z*z))
}

func (f *fit) rowWeight(i int) float64 {
	if f.Weight == nil {
		return 1
	}
	return f.Weight[i]
}

// cost returns the negative log posterior up to a constant: the pseudo-Huber loss of the residuals,
// tail²·(sqrt(1+(z/tail)²)-1), and half the prior's quadratic form.
func (f *fit) cost(x, at []float64) float64 {
	d := mat.NewVecDense(f.n, nil)
	for i := range x {
		d.SetVec(i, x[i]-f.Prior.Mean[i])
	}
	sum := mat.Inner(d, f.precision, d) / 2
	for i := range f.Y {
		z := (f.Y[i] - at[i]) / (f.tail * f.Noise[i])
		sum += f.rowWeight(i) * f.tail * f.tail * (math.Sqrt(1+z*z) - 1)
	}
	return sum
}

// differentiate computes the Jacobian of the predictions.
func (f *fit) differentiate() error {
	if f.Differentiate != nil {
		f.jac.Zero()
		return f.Differentiate(f.x, f.at, f.jac)
	}
	for k := range f.n {
		was := f.x[k]
		f.x[k] = was + Step
		err := f.Predict(f.x, f.moved)
		f.x[k] = was
		if err != nil {
			return err
		}
		for i := range f.Y {
			f.jac.Set(i, k, (f.moved[i]-f.at[i])/Step)
		}
	}
	return nil
}

// normalize writes JᵀWJ + precision to f.normal and returns the negative gradient.
func (f *fit) normalize() []float64 {
	d, g := mat.NewVecDense(f.n, nil), mat.NewVecDense(f.n, nil)
	floats.SubTo(d.RawVector().Data, f.Prior.Mean, f.x)
	g.MulVec(f.precision, d)
	for i := range f.Y {
		row, w := f.jac.RawRowView(i), f.weight(i, f.at)
		floats.ScaleTo(f.root.RawRowView(i), math.Sqrt(w), row)
		floats.AddScaled(g.RawVector().Data, w*(f.Y[i]-f.at[i]), row)
	}
	f.normal.SymRankK(f.precision, 1, f.root.T())
	return g.RawVector().Data
}

// solve writes the solution of the damped normal equations for g to f.step. It reports false if they are not
// positive definite.
func (f *fit) solve(damping float64, g []float64) bool {
	f.damped.CopySym(f.normal)
	for k := range f.n {
		f.damped.SetSym(k, k, f.damped.At(k, k)*(1+damping))
	}
	u, ok := lapack64.Potrf(f.damped.RawSymmetric())
	if ok {
		copy(f.step, g)
		lapack64.Potrs(u, blas64.General{Rows: f.n, Cols: 1, Stride: 1, Data: f.step})
	}
	return ok
}

// advance takes one damped Gauss-Newton step (Levenberg 1944, Marquardt 1963). It reports whether it found a
// step that lowers the objective.
func (f *fit) advance(damping float64) (next float64, moved bool, err error) {
	g := f.normalize()
	for range 12 {
		if f.solve(damping, g) {
			x := make([]float64, f.n)
			floats.AddTo(x, f.x, f.step)
			if err := f.Predict(x, f.moved); err != nil {
				return damping, false, err
			}
			if c := f.cost(x, f.moved); c < f.objective {
				f.x, f.objective = x, c
				copy(f.at, f.moved)
				return max(damping/10, 1e-9), true, nil
			}
		}
		damping *= 10
	}
	return damping, false, nil
}

func (f *fit) posterior() (Posterior, error) {
	if err := f.differentiate(); err != nil {
		return Posterior{}, err
	}
	f.normalize()
	var chol mat.Cholesky
	if !chol.Factorize(f.normal) {
		return Posterior{}, fmt.Errorf("%w: the posterior's precision is not positive definite", ErrNotFinite)
	}
	cov := mat.NewSymDense(f.n, nil)
	if err := chol.InverseTo(cov); err != nil {
		return Posterior{}, fmt.Errorf("bayes: posterior: %w", err)
	}
	out := Posterior{Gaussian: Gaussian{Mean: f.x, Cov: cov}, jac: f.jac}
	var spread mat.Dense
	spread.Mul(f.jac, cov)
	for i := range f.Y {
		e, w := f.Y[i]-f.at[i], f.weight(i, f.at)
		v := max(floats.Dot(spread.RawRowView(i), f.jac.RawRowView(i)), 0)
		out.weight, out.Spread = append(out.weight, w), append(out.Spread, v)
		out.Residual = append(out.Residual, e)
		out.LeftOut = append(out.LeftOut, e/max(1-w*v, 0.05))
	}
	return out, nil
}

// LeftOutTogether returns approximate residuals of rows in a fit without any of them, (I - J·Σ·Jᵀ·W)⁻¹ times
// their residuals. It is exact for a linear model. The slice belongs to the caller.
func (p *Posterior) LeftOutTogether(rows []int) []float64 {
	n := len(rows)
	j := mat.NewDense(n, len(p.Mean), nil)
	r := mat.NewVecDense(n, nil)
	for a, i := range rows {
		j.SetRow(a, p.jac.RawRowView(i))
		r.SetVec(a, p.Residual[i])
	}
	var js, h mat.Dense
	js.Mul(j, p.Cov)
	h.Mul(&js, j.T())
	m := mat.NewDense(n, n, nil)
	for a := range n {
		for b, i := range rows {
			m.Set(a, b, -h.At(a, b)*p.weight[i])
		}
		m.Set(a, a, m.At(a, a)+1)
	}
	out := mat.NewVecDense(n, nil)
	if err := out.SolveVec(m, r); err != nil {
		return append([]float64(nil), r.RawVector().Data...) // singular: use the plain residuals, since the prior determines the fit without these rows
	}
	return out.RawVector().Data
}

// Gradient returns the derivatives of row i at the mode. It must not be changed.
func (p *Posterior) Gradient(i int) []float64 { return p.jac.RawRowView(i) }
