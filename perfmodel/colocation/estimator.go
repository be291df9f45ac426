package colocation

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"sync"

	"gonum.org/v1/gonum/mat"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/perfmodel/spec/stats"
)

// Options configures an Estimator.
type Options struct {
	// References is the number of reference kinds, drawn at random from those of the table. All their pairs are
	// measured. 0 = all kinds.
	References int
	// Profiled is the number of references that a kind outside the references is measured with, on each
	// accelerator; at least 1.
	Profiled int
	Rank     int     // rank of the completed matrix; 0 = 10
	Ridge    float64 // weight of the squared factors in the fit; 0 = 0.01
	Seed     uint64
}

// Validate reports a field out of range.
func (o Options) Validate() error {
	switch {
	case o.References < 0:
		return fmt.Errorf("colocation: %d references, want at least 1, or 0 for all", o.References)
	case o.Profiled < 1:
		return fmt.Errorf("colocation: jobs are profiled beside %d others, want at least 1", o.Profiled)
	case o.Rank < 0 || o.Ridge < 0 || math.IsNaN(o.Ridge) || math.IsInf(o.Ridge, 0):
		return fmt.Errorf("colocation: rank %d and ridge %g, want finite numbers of at least 0", o.Rank, o.Ridge)
	}
	return nil
}

// Estimator predicts pairs of jobs from few measurements, as Gavel does (Narayanan et al., OSDI 2020, section
// 6). A kind outside the references is measured with a few references. A low-rank matrix completes its relative
// throughputs with the others. From then on the kind is treated like the reference with the row of largest
// cosine with its row. Pairs that were measured keep their measured rates. An Estimator is safe for concurrent
// use.
//
// The matrix has a row for each reference and a column for each accelerator and reference: the throughput of
// the first with the second over its throughput alone, 0 if they cannot run together. Column a·R + r is that of
// reference r of R on accelerator a.
//
// Differs from Gavel's code, which looks up measured pairs as if all kinds were references.
type Estimator struct {
	table *Table
	alone func(spec.Config) (float64, error)
	opts  Options

	configs      map[Kind]spec.Config // of the kinds in the table
	accelerators []string
	references   []class
	relative     *mat.Dense // relative throughputs of the references: the matrix
	factors      *mat.Dense // one row for each column of relative

	mu    sync.Mutex
	like  map[class]int    // the nearest reference of a class, -1 = none
	known map[[2]Kind]bool // pairs measured by profiling or by Ran
}

// class is a kind without its accelerator.
type class struct {
	model string
	seq   int
	plan  spec.Plan
}

func (k Kind) class() class { return class{k.Model, k.Seq, k.Plan} }

func (c class) on(accelerator string) Kind {
	return Kind{spec.Key{Model: c.model, Accelerator: accelerator}, c.seq, c.plan}
}

// NewEstimator returns an Estimator that takes its measurements from rows. alone returns the samples/s of a job
// without a colocated job; the Estimator keeps it and calls it one at a time.
func NewEstimator(rows []spec.Colocation, alone func(spec.Config) (float64, error), o Options) (*Estimator, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	o.Rank, o.Ridge = cmp.Or(o.Rank, 10), cmp.Or(o.Ridge, 0.01)
	e := &Estimator{table: New(rows), alone: alone, opts: o, like: map[class]int{}, known: map[[2]Kind]bool{}}
	e.configs = map[Kind]spec.Config{}
	for i := range rows {
		e.configs[KindOf(rows[i].A)], e.configs[KindOf(rows[i].B)] = rows[i].A, rows[i].B
	}
	e.choose()
	return e, e.fill()
}

// choose draws the references by the seed.
func (e *Estimator) choose() {
	for k := range e.configs {
		if !slices.Contains(e.accelerators, k.Accelerator) {
			e.accelerators = append(e.accelerators, k.Accelerator)
		}
		if c := k.class(); !slices.Contains(e.references, c) {
			e.references = append(e.references, c)
		}
	}
	slices.Sort(e.accelerators)
	slices.SortFunc(e.references, compareClasses)
	if n := e.opts.References; n > 0 && n < len(e.references) {
		rand.New(rand.NewPCG(e.opts.Seed, 0)).Shuffle(len(e.references), func(i, j int) {
			e.references[i], e.references[j] = e.references[j], e.references[i]
		})
		e.references = e.references[:n]
		slices.SortFunc(e.references, compareClasses)
	}
	for i, c := range e.references {
		e.like[c] = i
	}
}

func compareClasses(a, b class) int {
	return cmp.Or(cmp.Compare(a.model, b.model), cmp.Compare(a.seq, b.seq), cmp.Compare(a.plan.String(), b.plan.String()))
}

// fill computes the matrix and its factors. For a matrix without gaps, the best factors of a rank under ridge
// μ, min ‖M - U·V'‖² + μ(‖U‖² + ‖V‖²), follow from its singular values s: U and V have √(s - μ), or 0 if s < μ
// (Srebro and Jaakkola, Weighted low-rank approximations, ICML 2003; the model is Salakhutdinov and Mnih,
// Probabilistic matrix factorization, NIPS 2007).
func (e *Estimator) fill() error {
	n := len(e.references)
	if n == 0 {
		return nil
	}
	e.relative = mat.NewDense(n, n*len(e.accelerators), nil)
	for i, c := range e.references {
		for a, acc := range e.accelerators {
			for j, other := range e.references {
				e.relative.Set(i, a*n+j, e.ratio(e.configs[c.on(acc)], e.configs[other.on(acc)]))
			}
		}
	}
	var svd mat.SVD
	if !svd.Factorize(e.relative, mat.SVDThin) {
		return fmt.Errorf("colocation: the matrix of %d references has no singular values", n)
	}
	var v mat.Dense
	svd.VTo(&v)
	rank := min(e.opts.Rank, n)
	e.factors = mat.NewDense(n*len(e.accelerators), rank, nil)
	for k, s := range svd.Values(nil)[:rank] {
		root := math.Sqrt(max(s-e.opts.Ridge, 0))
		for col := range n * len(e.accelerators) {
			e.factors.Set(col, k, root*v.At(col, k))
		}
	}
	return nil
}

// ratio returns the measured throughput of a with b over that of a alone, 0 if they cannot run together.
func (e *Estimator) ratio(a, b spec.Config) float64 {
	rate, err := e.table.Beside(a, b)
	if err != nil {
		return 0
	}
	alone, err := e.alone(a)
	if err != nil || !(alone > 0) {
		return 0
	}
	return rate / alone
}

// Beside returns the throughput of a, in samples/s, while b runs on the same devices: measured if the pair is
// known, else estimated. The error wraps perfmodel.ErrNotCovered if the nearest references cannot run together,
// or if a kind has no nearest reference.
func (e *Estimator) Beside(a, b spec.Config) (float64, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	ka, kb := KindOf(a), KindOf(b)
	i, j := e.match(a), e.match(b)
	if e.measured(a, b, i, j) {
		return e.table.Beside(a, b)
	}
	acc := slices.Index(e.accelerators, ka.Accelerator)
	if i < 0 || j < 0 || acc < 0 || ka.Plan.Devices() != kb.Plan.Devices() {
		return 0, notMeasured(ka, kb)
	}
	ratio := e.relative.At(i, acc*len(e.references)+j)
	if ratio <= 0 {
		return 0, notMeasured(ka, kb)
	}
	alone, err := e.alone(a)
	return ratio * alone, err
}

// measured reports whether the pair a, b is known: both are references, or Ran or profiling recorded them. i
// and j are their nearest references.
func (e *Estimator) measured(a, b spec.Config, i, j int) bool {
	ka, kb := KindOf(a), KindOf(b)
	reference := func(k Kind, i int) bool { return i >= 0 && e.references[i] == k.class() }
	return e.known[[2]Kind{ka, kb}] || reference(ka, i) && reference(kb, j)
}

// Ran records that a and b ran on the same devices: from now on Beside returns their measured rates. It reports
// whether the pair is new.
func (e *Estimator) Ran(a, b spec.Config) (learnt bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	ka, kb := KindOf(a), KindOf(b)
	learnt = !e.known[[2]Kind{ka, kb}]
	e.known[[2]Kind{ka, kb}], e.known[[2]Kind{kb, ka}] = true, true
	return learnt
}

// match returns the nearest reference of the kind of c, -1 if there is none. It profiles a new kind first.
func (e *Estimator) match(c spec.Config) int {
	id := KindOf(c).class()
	if i, ok := e.like[id]; ok {
		return i
	}
	columns, ratios := e.profile(c)
	e.like[id] = -1
	if slices.Max(append(ratios, 0)) > 0 {
		e.like[id] = e.nearest(e.complete(columns, ratios))
	}
	return e.like[id]
}

// profile measures a kind with a few references, drawn by its name, on every accelerator.
func (e *Estimator) profile(c spec.Config) (columns []int, ratios []float64) {
	n := len(e.references)
	for a, acc := range e.accelerators {
		random := stats.Stream(e.opts.Seed, c.Model.Name+"\x00"+acc+"\x00")
		for _, j := range random.Perm(n)[:min(e.opts.Profiled, n)] {
			here, ref := c, e.references[j].on(acc)
			here.Accelerator.Name = acc
			columns, ratios = append(columns, a*n+j), append(ratios, e.ratio(here, e.configs[ref]))
			e.known[[2]Kind{KindOf(here), ref}], e.known[[2]Kind{ref, KindOf(here)}] = true, true
		}
	}
	return columns, ratios
}

// complete returns a whole row of the matrix, given some columns. The others come from the factors u that fit
// the given ones best, min Σ (m - u·v)² + μ‖u‖².
func (e *Estimator) complete(columns []int, ratios []float64) []float64 {
	total, rank := e.factors.Dims()
	normal, right := mat.NewSymDense(rank, nil), mat.NewVecDense(rank, nil)
	for k := range rank {
		normal.SetSym(k, k, e.opts.Ridge)
	}
	for k, col := range columns {
		v := e.factors.RowView(col)
		normal.SymRankOne(normal, 1, v)
		right.AddScaledVec(right, ratios[k], v)
	}
	var chol mat.Cholesky
	u := mat.NewVecDense(rank, nil)
	if chol.Factorize(normal) {
		_ = chol.SolveVecTo(u, right) // an error is a warning of bad conditioning; u is the best solution
	}
	row := make([]float64, total)
	for col := range row {
		row[col] = mat.Dot(u, e.factors.RowView(col))
	}
	for k, col := range columns {
		row[col] = ratios[k]
	}
	return row
}

// nearest returns the reference with the row of largest cosine with row, -1 if there is none.
func (e *Estimator) nearest(row []float64) int {
	best, most := -1, math.Inf(-1)
	for i := range e.references {
		ref := e.relative.RawRowView(i)
		var dot, norm float64
		for k, v := range ref {
			dot += v * row[k]
			norm += v * v
		}
		if c := dot / math.Sqrt(norm); norm > 0 && c > most {
			best, most = i, c
		}
	}
	return best
}

// Known reports whether Beside returns a measured rate for the pair a, b.
func (e *Estimator) Known(a, b spec.Config) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.measured(a, b, e.match(a), e.match(b))
}
