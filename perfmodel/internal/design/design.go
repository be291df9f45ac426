package design

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/blas/blas64"

	"github.com/pacer-ml/pacer/perfmodel"
	"github.com/pacer-ml/pacer/perfmodel/internal/gp"
	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// LinearForm is the posterior of the step times of some candidates, one line each,
// under a formula that is linear in its constants:
//
//	cov = factor·(G·Σ·Gᵀ + rest - W·Wᵀ)
type LinearForm struct {
	At     []int // candidate of each line
	Factor float64
	Grad   blas64.General         // G, by constant
	Spread blas64.General         // G·Σ
	Rest   func(k, l int) float64 // covariance of what the constants do not explain
	White  blas64.General         // W, whitened covariances with rows, where Σ and rest are priors
}

// AddTo adds share of the covariances to v.
func (f *LinearForm) AddTo(v *View, targets []int, share func(c, t int) float64) {
	line := map[int]int{}
	for k, c := range f.At {
		line[c] = k
	}
	cov := func(k, l int) float64 {
		of := f.Rest(k, l) + gp.Dot(gp.Line(f.Spread, k), gp.Line(f.Grad, l)) - gp.Dot(gp.Line(f.White, k), gp.Line(f.White, l))
		return f.Factor * of * share(f.At[k], f.At[l])
	}
	for k, c := range f.At {
		v.Own[c] += max(cov(k, k), 0)
		for i, t := range targets {
			if l, ok := line[t]; ok {
				v.Cov[c*len(targets)+i] += cov(k, l)
			}
		}
	}
}

// Ascending returns 0 to n-1.
func Ascending(n int) []int {
	out := make([]int, n)
	for i := range out {
		out[i] = i
	}
	return out
}

// Spread returns n elements of s, evenly spread.
func Spread(s []int, n int) []int {
	out := make([]int, n)
	for i := range out {
		out[i] = s[i*len(s)/n]
	}
	return out
}

// MaxPool bounds the candidates of a design, and the targets with intervals that it
// narrows; more are thinned evenly.
const MaxPool = 160

// View is the posterior of ln T without the noise of a run: covariances with the
// formula linearised at one draw of the parameters.
type View struct {
	Weight float64
	Cov    []float64 // of candidate c with target i, at c·targets+i
	Own    []float64 // variance of each candidate
	Target []float64 // variance of each target
}

// AddBetween adds the variance of a quantity that is by[c] higher at candidate c
// under another reading.
func (v *View) AddBetween(variance float64, by []float64, targets []int) {
	nt := len(targets)
	for c, d := range by {
		v.Own[c] += variance * d * d
		for i, t := range targets {
			v.Cov[c*nt+i] += variance * d * by[t]
		}
	}
	for i, t := range targets {
		v.Target[i] = v.Own[t]
	}
}

// Measure conditions the view on a measurement of candidate c, when every
// candidate is a target.
func (v *View) Measure(c int) {
	n := len(v.Own)
	col := slices.Clone(v.Cov[c*n : (c+1)*n])
	noisy := v.Own[c] + RunNoise*RunNoise
	for i := range n {
		q := col[i] / noisy
		row := v.Cov[i*n : (i+1)*n]
		for j, x := range col {
			row[j] -= q * x
		}
		v.Own[i] = row[i]
		v.Target[i] = row[i]
	}
}

// among returns the view with some of the targets, by their places in the list,
// for candidates and for targets.
func (v *View) among(some, targets []int) View {
	n := len(some)
	out := View{v.Weight, make([]float64, 0, n*n), make([]float64, 0, n), make([]float64, 0, n)}
	for _, c := range some {
		row := v.Cov[targets[c]*len(targets):]
		for _, i := range some {
			out.Cov = append(out.Cov, row[i])
		}
		out.Own, out.Target = append(out.Own, v.Target[c]), append(out.Target, v.Target[c])
	}
	return out
}

// Clone returns a deep copy.
func (v *View) Clone() View {
	return View{v.Weight, slices.Clone(v.Cov), slices.Clone(v.Own), slices.Clone(v.Target)}
}

// Width sums over targets the square root of half² times the variance, noise of
// a run included, plus extra, once candidate c is measured; as it is for c < 0.
// No extra is none.
func (v *View) Width(c int, half float64, extra []float64) float64 {
	const noise = RunNoise * RunNoise
	nt := len(v.Target)
	sum, h2, q := 0.0, half*half, 0.0
	var row []float64
	if c >= 0 {
		row, q = v.Cov[c*nt:(c+1)*nt], 1/(v.Own[c]+noise)
	}
	for i, s := range v.Target {
		if c >= 0 {
			s = max(s-row[i]*row[i]*q, 0)
		}
		s = h2 * (s + noise)
		if extra != nil {
			s += extra[i]
		}
		sum += math.Sqrt(s)
	}
	return sum
}

// Score returns the cost of a design of rest and candidate c; the views are
// conditioned on rest. Lower is better.
type Score func(views []View, rest []int, c int) float64

// Selection is a search for the best candidates to measure. All of them are
// targets.
type Selection struct {
	Views  []View
	Taken  func(c int) bool // not available, beside the chosen ones
	Score  Score
	Chosen []int
	least  float64 // score of chosen
}

// given returns the views once the candidates in rows are measured.
func (d *Selection) given(rows []int) []View {
	out := make([]View, len(d.Views))
	for k := range d.Views {
		out[k] = d.Views[k].Clone()
		for _, r := range rows {
			out[k].Measure(r)
		}
	}
	return out
}

// best returns the candidate that, measured after rest, leaves the lowest
// score, the first of equals, -1 if no score is finite.
func (d *Selection) best(views []View, rest []int) (candidate int, score float64) {
	candidate, score = -1, math.Inf(1)
	for c := range views[0].Own {
		if slices.Contains(rest, c) || d.Taken(c) {
			continue
		}
		if s := d.Score(views, rest, c); s < score*(1-1e-9) {
			candidate, score = c, s
		}
	}
	return candidate, score
}

// Grow chooses up to n candidates, greedily.
func (d *Selection) Grow(n int) {
	views := d.given(nil)
	for len(d.Chosen) < n {
		c, s := d.best(views, d.Chosen)
		if c < 0 { // figures beyond all bounds: no score is finite
			c = slices.IndexFunc(Ascending(len(d.Views[0].Own)), func(c int) bool { return !slices.Contains(d.Chosen, c) && !d.Taken(c) })
		}
		d.Chosen, d.least = append(d.Chosen, c), s
		for k := range views {
			views[k].Measure(c)
		}
	}
}

// maxSwaps bounds the passes of improve.
const maxSwaps = 2

// Improve exchanges chosen candidates one by one while that lowers the score.
func (d *Selection) Improve() {
	for range maxSwaps {
		if !d.swap() {
			return
		}
	}
}

// swap exchanges each chosen candidate for a better one and reports whether
// any was.
func (d *Selection) swap() bool {
	swapped := false
	for i := range d.Chosen {
		rest := slices.Delete(slices.Clone(d.Chosen), i, i+1)
		if c, s := d.best(d.given(rest), rest); s < d.least*(1-1e-6) {
			d.Chosen[i], d.least, swapped = c, s, true
		}
	}
	return swapped
}

const (
	// RunNoise is the standard deviation of ln T of repeated runs.
	RunNoise = 0.04
	// PlannedRows is the number of first rows that are planned as a set. The best
	// single row lies in the middle of the space, the best few around it, and a set
	// grown from the single one stays worse. Chosen in view of Rubick's traces:
	// after two to eight rows the error there, geometric mean over job types, is
	// 6.8 % with sets of 1, 7.0 % of 2, 6.9 % of 3, 5.8 % of 4, 6.2 % of 5 and
	// 6.6 % of 6, and 8.1 % in random order. Larger sets use the results of their
	// own rows too late.
	PlannedRows = 4
	// planPool bounds the candidates of that set; more are thinned evenly.
	planPool = 96
	// maxPairs bounds candidates times targets, and so the cost of a large space;
	// there are at least leastTargets targets.
	maxPairs     = 80_000
	leastTargets = 40
	// unplannedShare caps the falls of rows outside the planned set, as a share of
	// the best planned row's fall: taking the greatest fall follows the plan.
	unplannedShare = 0.9
)

// keepTo lowers the falls of candidates outside of plan.
func keepTo(plan []int, falls []float64) {
	best := 0.0
	for _, c := range plan {
		best = max(best, falls[c])
	}
	for c := range falls {
		if !slices.Contains(plan, c) {
			falls[c] = min(falls[c], unplannedShare*best)
		}
	}
}

// Model is a family's posterior of the step times of candidates. It is used by one
// goroutine.
type Model interface {
	// HalfWidth returns half the width of the present 90 % interval of ln T of
	// candidate c.
	HalfWidth(c int) float64
	// MeanHalf returns the mean half width of the targets once candidate c is
	// measured; as it is for c < 0.
	MeanHalf(c int) float64
	// Views returns the views of candidates and targets, with weights that add up
	// to 1. The caller must not change them.
	Views() []View
	// ScoreAmong returns the score of designs among some of the targets, by their
	// places in the list: all of them are candidates and targets there.
	ScoreAmong(among []int) Score
}

// Space is the configurations to compute gains of.
type Space struct {
	Index    []int  // of each candidate, into the configurations given
	Measured []bool // by candidate
	Targets  []int  // candidates with intervals that count
}

// NewSpace returns the Space of the candidates at index of space, in canonical
// order, given the configurations measured so far.
func NewSpace(space []spec.Config, index []int, rows []spec.Config) Space {
	done := map[spec.Config]bool{}
	for i := range rows {
		done[perfmodel.Canonical(rows[i])] = true
	}
	g := Space{Index: index, Measured: make([]bool, len(index)), Targets: Ascending(len(index))}
	for c, i := range index {
		g.Measured[c] = done[perfmodel.Canonical(space[i])]
	}
	if most := min(MaxPool, max(maxPairs/max(len(index), 1), leastTargets)); len(index) > most {
		g.Targets = Spread(g.Targets, most)
	}
	return g
}

// Gains returns the gain of each of n configurations after rows measured rows; it
// is zero for those that are no candidates. The first PlannedRows rows are planned
// as a set: Falls outside of the best set are capped.
func (g *Space) Gains(n, rows int, m Model) []perfmodel.Gain {
	out, falls := make([]perfmodel.Gain, n), g.Falls(m)
	if rows < PlannedRows {
		keepTo(g.plan(m, PlannedRows-rows), falls)
	}
	for c, i := range g.Index {
		out[i] = perfmodel.Gain{HalfWidth: m.HalfWidth(c), Fall: falls[c]}
	}
	return out
}

// Falls returns, for each candidate, the expected fall of the mean half width of
// the targets when it is measured.
func (g *Space) Falls(m Model) []float64 {
	out, before := make([]float64, len(g.Index)), m.MeanHalf(-1)
	for c := range out {
		if !g.Measured[c] {
			out[c] = max(before-m.MeanHalf(c), 0)
		}
	}
	return out
}

// plan returns the best set of n targets to measure, or of as many as are left, by
// exchange among at most planPool of them.
func (g *Space) plan(m Model, n int) []int {
	among := Ascending(len(g.Targets))
	if len(among) > planPool {
		among = Spread(among, planPool)
	}
	views := m.Views()
	d := &Selection{Views: make([]View, len(views)), Score: m.ScoreAmong(among)}
	for k := range views {
		d.Views[k] = views[k].among(among, g.Targets)
	}
	d.Taken = func(c int) bool { return g.Measured[g.Targets[among[c]]] }
	free := 0
	for c := range among {
		if !d.Taken(c) {
			free++
		}
	}
	d.Grow(min(n, free))
	d.Improve()
	out := make([]int, len(d.Chosen))
	for i, c := range d.Chosen {
		out[i] = g.Targets[among[c]]
	}
	return out
}
