package analytic

import (
	"math"
	"slices"
	"strings"

	"gonum.org/v1/gonum/mat"

	"github.com/pacer-ml/pacer/perfmodel"
	"github.com/pacer-ml/pacer/perfmodel/internal/bayes"
	"github.com/pacer-ml/pacer/perfmodel/memory"
	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// common returns the frameworks and sites that are in both layouts.
func (l *Layout) common(other *Layout) (out Layout) {
	for _, f := range l.Frameworks {
		if other.FrameworkAt(f) >= 0 {
			out.Frameworks = append(out.Frameworks, f)
		}
	}
	for _, s := range l.Sites {
		if other.SiteAt(s) >= 0 {
			out.Sites = append(out.Sites, s)
		}
	}
	return out
}

// widths returns the uncertainty of the effects at a site under g. A negative index stands for a new framework
// or site, which has its own effects with prior uncertainty.
func (l *Layout) widths(g *bayes.Gaussian, framework, at int, arch string, launch launchKind) Widths {
	n := len(effects)
	a := mat.NewDense(n, len(g.Mean), nil)
	own := make([]float64, n)
	for e := range n {
		for _, name := range drivers(e, arch, launch) {
			if i := slices.IndexFunc(params, func(p parameter) bool { return p.name == name }); i >= 0 {
				a.Set(e, i, 1)
			}
		}
		for _, place := range []int{framework, at} {
			if place >= 0 {
				a.Set(e, place+e, 1)
			} else {
				own[e] += effects[e].sd * effects[e].sd * effectShare * effectShare
			}
		}
	}
	var half, cov mat.Dense
	half.Mul(a, g.Cov)
	cov.Mul(&half, a.T())
	w := Widths{Cov: make([][]float64, n)}
	for e := range n {
		w.Cov[e] = append([]float64(nil), cov.RawRowView(e)...)
		w.Cov[e][e] += own[e]
	}
	return w
}

// effectShare: half of the variance between sites is that between frameworks, the other half that between the
// device types of one framework.
var effectShare = math.Sqrt(0.5)

// Layout says which index each parameter of a fit has: params, then the effects of frameworks, then those of
// sites.
type Layout struct {
	Frameworks []string
	Sites      []Site
	// Evidence says which stacks a site may be, where that is not stated; see Calibration.Weigh.
	Evidence map[Site][]Evidence
	// Measured holds the micro-benchmarks of accelerators, see spec.Accelerator.Measured.
	Measured map[string]string
}

// Size returns the number of parameters.
func (l *Layout) Size() int { return len(params) + len(effects)*(len(l.Frameworks)+len(l.Sites)) }

// FrameworkAt returns the index of the first effect of a framework, -1 if it is not in the fit.
func (l *Layout) FrameworkAt(name string) int {
	i := slices.Index(l.Frameworks, name)
	if i < 0 {
		return -1
	}
	return len(params) + len(effects)*i
}

// SiteAt returns the index of the first effect of a site, -1 if it is not in the fit.
func (l *Layout) SiteAt(s Site) int {
	i := slices.Index(l.Sites, s)
	if i < 0 {
		return -1
	}
	return len(params) + len(effects)*(len(l.Frameworks)+i)
}

// Add adds the frameworks and sites of rows to the layout. Indices change.
func (l *Layout) Add(rows []spec.Measurement) {
	for i := range rows {
		s := SiteOf(&rows[i].Config)
		if !slices.Contains(l.Frameworks, s.Framework) {
			l.Frameworks = append(l.Frameworks, s.Framework)
		}
		if !slices.Contains(l.Sites, s) {
			l.Sites = append(l.Sites, s)
		}
		if text := rows[i].Config.Accelerator.Measured; text != "" {
			if l.Measured == nil {
				l.Measured = map[string]string{}
			}
			l.Measured[s.Accelerator] = text
		}
	}
	slices.Sort(l.Frameworks)
	slices.SortFunc(l.Sites, compareSites)
}

func compareSites(a, b Site) int {
	if c := strings.Compare(a.Framework, b.Framework); c != 0 {
		return c
	}
	return strings.Compare(a.Accelerator, b.Accelerator)
}

// constants sets k to base with the parameters x of one site. A negative index means no effect.
func (l *Layout) constants(x []float64, framework, at int, k *constants) {
	*k = base
	if at >= 0 && l.Measured != nil {
		if m := measurementsOf(l.Measured[l.Sites[l.siteIndex(at)].Accelerator]); m != nil {
			m.apply(k)
		}
	}
	k.move(params, x[:len(params)])
	l.effects(x, framework, k)
	l.effects(x, at, k)
}

func (l *Layout) effects(x []float64, at int, k *constants) {
	if at >= 0 {
		k.move(effects, x[at:at+len(effects)])
	}
}

// physics returns the model at the mean of g.
func (l *Layout) physics(g *bayes.Gaussian, w Widths, mem *memory.Calibration) *Physics {
	ph := &Physics{any: &constants{}, sites: map[Site]*constants{}, frameworks: map[string]*constants{}, evidence: l.Evidence, wide: w, Memory: mem}
	l.constants(g.Mean, -1, -1, ph.any)
	for _, f := range l.Frameworks {
		k := &constants{}
		l.constants(g.Mean, l.FrameworkAt(f), -1, k)
		ph.frameworks[f] = k
	}
	for _, s := range l.Sites {
		k := &constants{}
		l.constants(g.Mean, l.FrameworkAt(s.Framework), l.SiteAt(s), k)
		ph.sites[s] = k
	}
	return ph
}

// extend returns a distribution over the parameters of to, which contains those of from. New effects have mean
// 0 and are independent of all others.
func extend(g *bayes.Gaussian, from, to *Layout) bayes.Gaussian {
	n := to.Size()
	mean, cov := make([]float64, n), mat.NewSymDense(n, nil)
	where := from.places(to)
	for i, a := range where {
		mean[a] = g.Mean[i]
		for j, b := range where[:i+1] {
			cov.SetSym(a, b, g.Cov.At(i, j))
		}
	}
	for k := len(params); k < n; k++ {
		if cov.At(k, k) == 0 {
			sd := effects[(k-len(params))%len(effects)].sd * effectShare * to.spread(k)
			cov.SetSym(k, k, sd*sd)
		}
	}
	return bayes.Gaussian{Mean: mean, Cov: cov}
}

// cpuSpread is the factor on the standard deviation of effects between sites on CPUs: they differ in the BLAS,
// in shared cores, and in the overhead per layer.
const cpuSpread = 5

// siteIndex returns the index in Sites of the site with the effect at index k, below 0 if that is one of a framework.
func (l *Layout) siteIndex(k int) int { return (k-len(params))/len(effects) - len(l.Frameworks) }

// spread returns the factor on the usual standard deviation of the effect at index k.
func (l *Layout) spread(k int) float64 {
	i := l.siteIndex(k)
	if i >= 0 && l.Sites[i].isCPU() {
		return cpuSpread
	}
	return 1
}

// narrow returns the distribution over the parameters of to, a subset of those of from.
func narrow(g *bayes.Gaussian, from, to *Layout) bayes.Gaussian {
	where := to.places(from)
	n := len(where)
	out := bayes.Gaussian{Mean: make([]float64, n), Cov: mat.NewSymDense(n, nil)}
	for i, a := range where {
		out.Mean[i] = g.Mean[a]
		for j, b := range where[:i+1] {
			out.Cov.SetSym(i, j, g.Cov.At(a, b))
		}
	}
	return out
}

// places returns the index in other of each parameter of l.
func (l *Layout) places(other *Layout) []int {
	out := make([]int, 0, l.Size())
	for i := range params {
		out = append(out, i)
	}
	block := func(at int) {
		for k := range effects {
			out = append(out, at+k)
		}
	}
	for _, f := range l.Frameworks {
		block(other.FrameworkAt(f))
	}
	for _, s := range l.Sites {
		block(other.SiteAt(s))
	}
	return out
}

// ParamNames returns the names of the constants, then of the effects. A stored model can be read only by a
// program with the same names.
func ParamNames() (out []string) {
	for _, p := range params {
		out = append(out, p.name)
	}
	for _, e := range effects {
		out = append(out, e.name)
	}
	return out
}

// Moved adds to out the parameters of x (in layout l) that change constants by more than 2 %, each as a factor
// on its value in base. Of the effects it takes those of one accelerator.
func (l *Layout) Moved(x []float64, accelerator string, out map[string]perfmodel.Param) {
	for i, p := range params {
		if f := math.Exp(x[i]); math.Abs(f-1) > 0.02 {
			out[p.name] = perfmodel.Param{Value: f, Unit: "x the untrained value"}
		}
	}
	for _, s := range l.Sites {
		if s.Accelerator != accelerator {
			continue
		}
		for k, e := range effects {
			if f := math.Exp(x[l.FrameworkAt(s.Framework)+k] + x[l.SiteAt(s)+k]); math.Abs(f-1) > 0.02 {
				out[e.name+" of "+s.Framework+" on "+s.Accelerator] = perfmodel.Param{Value: f, Unit: "x the average site"}
			}
		}
	}
}
