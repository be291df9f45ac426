package design

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/blas/blas64"

	"github.com/pacer-ml/pacer/perfmodel"
	"github.com/pacer-ml/pacer/perfmodel/internal/gp"
	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// LinearForm is the posterior of the step times of some candidates, one line each, for a formula that is linear
// in its constants:
//
//	cov = factor·(G·Σ·Gᵀ + rest - W·Wᵀ)
type LinearForm struct {
	At     []int // candidate of each line
	Factor float64
	Grad   blas64.General         // derivatives by the constants
	Spread blas64.General         // G·Σ
	Rest   func(k, l int) float64 // prior covariance of the residual
	White  blas64.General         // covariances with the measured rows, whitened; Σ and rest are priors
}

// AddTo adds the covariances, multiplied by share, to v.
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

// Ascending returns the numbers 0 to n-1.
func Ascending(n int) []int {
	out := make([]int, n)
	for i := range out {
		out[i] = i
	}
	return out
}

// Spread returns n evenly spaced elements of s.
func Spread(s []int, n int) []int {
	out := make([]int, n)
	for i := range out {
		out[i] = s[i*len(s)/n]
	}
	return out
}

// MaxPool limits the number of candidates of a design, and of targets (candidates with intervals that count).
// Larger sets are thinned evenly.
const MaxPool = 160

// View is the posterior of ln T without the noise of a run: covariances with the formula linearised at one draw
// of the parameters.
type View struct {
	Weight float64
	Cov    []float64 // of candidate c with target i, at c·targets+i
	Own    []float64 // variance of each candidate
	Target []float64 // variance of each target
}

// AddBetween adds the variance between two models with ln T that differs by by[c] at candidate c; variance is that
// of the choice between them.
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

// Measure conditions the view on a measurement of candidate c. All candidates must be targets.
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

// among returns the view restricted to some targets, given by their index in targets, which become both its
// candidates and its targets.
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

// Width returns the sum over targets of √(half²·(variance + noise of a run) + extra), after measuring candidate
// c; for c < 0, the present sum. A nil extra means 0.
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

// Score returns the cost of a design of rest and candidate c; the views are conditioned on rest already. Lower
// is better.
type Score func(views []View, rest []int, c int) float64

// Selection is a search for the best candidates to measure. All candidates are targets.
type Selection struct {
	Views  []View
	Taken  func(c int) bool // reports candidates that cannot be chosen
	Score  Score
	Chosen []int
	least  float64 // score of Chosen
}

// given returns the views after measuring the candidates in rows.
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

// best returns the candidate with the lowest score after measuring rest. Ties go to the first; -1 if no score
// is finite.
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

// Grow chooses candidates greedily until n are chosen.
func (d *Selection) Grow(n int) {
	views := d.given(nil)
	for len(d.Chosen) < n {
		c, s := d.best(views, d.Chosen)
		if c < 0 { // extreme values: no score is finite
			c = slices.IndexFunc(Ascending(len(d.Views[0].Own)), func(c int) bool { return !slices.Contains(d.Chosen, c) && !d.Taken(c) })
		}
		d.Chosen, d.least = append(d.Chosen, c), s
		for k := range views {
			views[k].Measure(c)
		}
	}
}

// maxSwaps limits the passes of Improve.
const maxSwaps = 2

// Improve exchanges chosen candidates one by one as long as that lowers the score.
func (d *Selection) Improve() {
	for range maxSwaps {
		if !d.swap() {
			return
		}
	}
}

// swap exchanges each chosen candidate for a better one and reports whether it exchanged any.
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
	// PlannedRows is the number of first rows that are planned as a set. The best single row is in the middle
	// of the space, the best few are around it, and a set grown from the single best row stays worse. The
	// number was chosen on Rubick's traces: after two to eight rows the geometric mean error over job types
	// there is 6.8 % with sets of 1, 7.0 % of 2, 6.9 % of 3, 5.8 % of 4, 6.2 % of 5 and 6.6 % of 6, and 8.1 %
	// in random order. Larger sets use the results of their own rows too late.
	PlannedRows = 4
	// planPool limits the candidates of that set. Larger spaces are thinned evenly.
	planPool = 96
	// maxPairs limits candidates times targets, and so the cost of a large space. There are at least
	// leastTargets targets.
	maxPairs     = 80_000
	leastTargets = 40
	// unplannedShare limits the Fall of rows outside the planned set to this share of the best planned row's
	// Fall. So measuring the largest Fall first follows the plan.
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

// Model is a family's posterior of the step times of candidates. It is used by one goroutine at a time.
type Model interface {
	// HalfWidth returns half the width of the present 90 % interval of ln T of candidate c.
	HalfWidth(c int) float64
	// MeanHalf returns the mean half width of the targets after measuring candidate c; for c < 0, the present
	// one.
	MeanHalf(c int) float64
	// Views returns the views of candidates and targets, with weights that add up
	// to 1. The caller must not change them.
	Views() []View
	// ScoreAmong returns the score of designs restricted to some targets, given by their index in Targets. All
	// of them are candidates and targets of the design.
	ScoreAmong(among []int) Score
}

// Configs are the configurations of a Space: those that can be measured, then those that are only wanted.
type Configs struct {
	All    []spec.Config
	free   int                  // number that can be measured
	wanted map[spec.Config]bool // configurations with intervals that count, canonical; nil = all
}

// NewConfigs returns the configurations of space, and those of wanted that are not in it. Only the intervals of wanted
// count, or all without wanted.
func NewConfigs(space, wanted []spec.Config) Configs {
	c := Configs{All: slices.Clip(space), free: len(space)}
	if len(wanted) == 0 {
		return c
	}
	c.wanted = map[spec.Config]bool{}
	for i := range wanted {
		c.wanted[perfmodel.Canonical(wanted[i])] = true
	}
	inside := map[spec.Config]bool{}
	for i := range space {
		inside[perfmodel.Canonical(space[i])] = true
	}
	for i := range wanted {
		if of := perfmodel.Canonical(wanted[i]); !inside[of] {
			inside[of] = true
			c.All = append(c.All, wanted[i])
		}
	}
	return c
}

// Space is a set of configurations to compute gains of.
type Space struct {
	Index    []int  // index of each candidate in the given configurations
	Measured []bool // by candidate: measured, or only wanted
	Targets  []int  // indices of the candidates with intervals that count
	free     int    // as in Configs
	narrowed bool   // not all candidates count
}

// NewSpace returns the Space of the candidates at index of of.All, in that order, which must be canonical. rows
// are the configurations measured so far.
func NewSpace(of Configs, index []int, rows []spec.Config) Space {
	done := map[spec.Config]bool{}
	for i := range rows {
		done[perfmodel.Canonical(rows[i])] = true
	}
	g := Space{Index: index, Measured: make([]bool, len(index)), free: of.free, narrowed: of.wanted != nil}
	for c, i := range index {
		at := perfmodel.Canonical(of.All[i])
		g.Measured[c] = done[at] || i >= of.free
		if of.wanted == nil || of.wanted[at] {
			g.Targets = append(g.Targets, c)
		}
	}
	if most := min(MaxPool, max(maxPairs/max(len(index), 1), leastTargets)); len(g.Targets) > most {
		g.Targets = Spread(g.Targets, most)
	}
	return g
}

// Gains returns the gain of each configuration that can be measured, after rows measured rows; it is 0 for those that are
// not candidates. The first PlannedRows rows are planned as a set if all intervals count: the Fall of candidates outside
// of the best set is limited.
func (g *Space) Gains(rows int, m Model) []perfmodel.Gain {
	out, falls := make([]perfmodel.Gain, g.free), g.Falls(m)
	if rows < PlannedRows && !g.narrowed {
		keepTo(g.plan(m, PlannedRows-rows), falls)
	}
	for c, i := range g.Index {
		if i < g.free {
			out[i] = perfmodel.Gain{HalfWidth: m.HalfWidth(c), Fall: falls[c]}
		}
	}
	return out
}

// Falls returns, for each candidate, the expected decrease of the targets' mean half width when it is measured.
func (g *Space) Falls(m Model) []float64 {
	out, before := make([]float64, len(g.Index)), m.MeanHalf(-1)
	for c := range out {
		if !g.Measured[c] {
			out[c] = max(before-m.MeanHalf(c), 0)
		}
	}
	return out
}

// plan returns the best set of n targets to measure, or of all unmeasured ones if there are fewer. It searches
// by exchange among at most planPool targets.
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
