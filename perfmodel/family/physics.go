package family

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/mat"

	"github.com/pacer-ml/pacer/perfmodel/internal/bayes"
	"github.com/pacer-ml/pacer/perfmodel/memory"
	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// site is a training stack on one kind of device: what differs between them
// beyond their datasheets is fitted as effects.
type site struct{ framework, accelerator string }

func siteOf(c *spec.Config) site { return site{c.Framework, c.Accelerator.Name} }

// physics is the analytic model with one set of constants for each site that is
// known, and one for all others. It is not changed once built.
type physics struct {
	any   *constants
	sites map[site]*constants
	// frameworks are those of a stack on devices it was not seen on.
	frameworks map[string]*constants
	wide       widths
	mem        *memory.Calibration
}

// constantsFor returns what is known of c's site.
func (ph *physics) constantsFor(c *spec.Config) *constants {
	if k := ph.sites[siteOf(c)]; k != nil {
		return k
	}
	if k := ph.frameworks[c.Framework]; k != nil {
		return k
	}
	return ph.any
}

func (ph *physics) open(c *spec.Config, by string, pr *prepared) error {
	pr.by, pr.wide = by, &ph.wide
	return pr.init(ph.constantsFor(c), ph.mem, c)
}

func (ph *physics) predict(c *spec.Config, by string) (spec.Prediction, error) {
	var pr prepared
	if err := ph.open(c, by, &pr); err != nil {
		return spec.Prediction{}, err
	}
	p := c.Plan.Normal()
	out, err := pr.predict(&p)
	if err == nil {
		out.MemoryBytes = pr.mem.Bytes(p)
	}
	return out, err
}

func (ph *physics) prepare(c *spec.Config, by string) (func(spec.Plan) (spec.Prediction, error), error) {
	pr := &prepared{}
	if err := ph.open(c, by, pr); err != nil {
		return nil, err
	}
	return func(p spec.Plan) (spec.Prediction, error) {
		p = p.Normal()
		return pr.predict(&p)
	}, nil
}

func (ph *physics) explain(c *spec.Config) (Parts, error) {
	var pr prepared
	if err := ph.open(c, "", &pr); err != nil {
		return Parts{}, err
	}
	p := c.Plan.Normal()
	parts, _, err := pr.seconds(&p)
	return parts, err
}

// widths says how wide the interval of a prediction is: the covariance of the
// logarithms of what effects move (see effects), a floor, and a factor that makes
// nine in ten left-out rows fall inside.
type widths struct {
	Cov   [][]float64 `json:"cov"`   // by effect
	Floor float64     `json:"floor"` // standard deviation of every prediction beside that
	Scale float64     `json:"scale"` // half width over the standard deviation
}

// UnmarshalJSON implements json.Unmarshaler; it refuses what sd cannot add up.
func (w *widths) UnmarshalJSON(b []byte) error {
	type plain widths
	if err := json.Unmarshal(b, (*plain)(w)); err != nil {
		return err
	}
	const most = 100 // e to the power of that is no interval
	bad := len(w.Cov) != 0 && len(w.Cov) != len(effects) || !(w.Scale >= 0 && w.Scale < most) || !(math.Abs(w.Floor) < most)
	for _, row := range w.Cov {
		bad = bad || len(row) != len(effects)
		for _, v := range row {
			bad = bad || !(math.Abs(v) < most)
		}
	}
	if bad {
		return fmt.Errorf("widths of %d rows, floor %g and scale %g are not a covariance of %d effects, a floor and a scale below %g",
			len(w.Cov), w.Floor, w.Scale, len(effects), float64(most))
	}
	return nil
}

// memoryPart is the part of device time that follows memory bandwidth: norms,
// activations, the optimizer.
const memoryPart = 0.2

const effectCount = 6 // of effects

// halfWidth returns half the width of the 90 % interval of ln T.
func (w *widths) halfWidth(p *Parts, total float64) float64 { return w.Scale * w.sd(p, total) }

// loads returns by how much ln T moves when each effect does by one: effects move
// the parts of a step they are about, in proportion.
func loads(p *Parts, total float64) [effectCount]float64 {
	device := (p.Compute + p.Recompute + p.Optimizer) / total
	return [...]float64{(1 - memoryPart) * device, memoryPart * device, (p.TP + p.CP + p.EP) / total, (p.DP + p.Pipeline) / total,
		(p.Launch + p.Offload) / total, p.Fixed / total}
}

// sd returns the standard deviation of ln T.
func (w *widths) sd(p *Parts, total float64) float64 {
	h := loads(p, total)
	v := w.Floor * w.Floor
	for i, row := range w.Cov {
		for j, c := range row {
			v += h[i] * h[j] * c
		}
	}
	return math.Sqrt(max(v, 0))
}

// drivers are the parameters that move what each effect does, beside the effect,
// on devices of an architecture ("" = any) under a stack's way to launch.
func drivers(effect int, arch string, launch launchKind) []string {
	switch effect {
	case 0:
		return []string{"gemm", "gemm " + arch}
	case 1:
		return []string{"memory bandwidth"}
	case 2:
		return []string{"ring share", "ring share " + arch}
	case 3:
		return []string{"network share"}
	case 4:
		return []string{[...]string{"launch, eager", "launch, compiled", "launch, fused operators", "launch, graphs"}[launch]}
	}
	return []string{"fixed"}
}

// widths returns how uncertain g leaves the effects at a site; with a negative
// place the framework or the site is a new one, with an effect of its own.
func (l *layout) widths(g *bayes.Gaussian, framework, at int, arch string, launch launchKind) widths {
	n := len(effects)
	a := mat.NewDense(n, len(g.Mean), nil)
	own := make([]float64, n)
	for e := range n {
		for _, name := range drivers(e, arch, launch) {
			if i := slices.IndexFunc(params, func(p param) bool { return p.name == name }); i >= 0 {
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
	w := widths{Cov: make([][]float64, n)}
	for e := range n {
		w.Cov[e] = append([]float64(nil), cov.RawRowView(e)...)
		w.Cov[e][e] += own[e]
	}
	return w
}
