package analytic

import (
	"encoding/json"
	"fmt"
	"math"

	"github.com/pacer-ml/pacer/perfmodel/memory"
	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/perfmodel/spec/stack"
)

// Site is a training stack on one type of device. Effects describe how it differs from the datasheets.
type Site struct{ Framework, Accelerator string }

// SiteOf returns the site of c.
func SiteOf(c *spec.Config) Site {
	return Site{stack.Of(c.Framework, c.Accelerator.Arch).Name, c.Accelerator.Name}
}

func (s Site) isCPU() bool { return (spec.Accelerator{Name: s.Accelerator}).IsCPU() }

// Physics is the analytic model with a set of constants for each known site, and one for all others. It is
// immutable and safe for concurrent use.
type Physics struct {
	any   *constants
	sites map[Site]*constants
	// frameworks holds the constants of a framework on device types without rows.
	frameworks map[string]*constants
	evidence   map[Site][]Evidence // of sites with rows of a stack that is not stated
	wide       Widths
	Memory     *memory.Calibration
}

// constantsFor returns the constants of a site; if it is unknown, those of its framework; else those of all others.
func (ph *Physics) constantsFor(s Site) *constants {
	if k := ph.sites[s]; k != nil {
		return k
	}
	if k := ph.frameworks[s.Framework]; k != nil && !s.isCPU() {
		return k
	}
	return ph.average(s)
}

// average returns the constants of the devices of a site on the average stack.
func (ph *Physics) average(s Site) *constants {
	if s.isCPU() {
		return &base // see Prior.DistributionOf
	}
	return ph.any
}

// variant is a stack that a Config may run on, with the constants of its site.
type variant struct {
	stack traits
	k     *constants
}

// variants returns the variants of c, with a probability each, see stack.Choices. If c's site is known, all have its
// constants, else each has those of its own stack. others is nil for a stated stack.
func (ph *Physics) variants(c *spec.Config, choices *stack.Choices) (first variant, others []variant) {
	at := Site{choices.Name, c.Accelerator.Name}
	k := ph.sites[at]
	one := func(of *stack.Stack) variant {
		v := variant{traitsOf(of), k}
		if k == nil {
			at.Framework = of.Name
			v.k = ph.constantsFor(at)
			if m := measurementsOf(c.Accelerator.Measured); m != nil {
				measured := *v.k
				m.replace(&measured, ph.average(at))
				v.k = &measured
			}
		}
		return v
	}
	if choices.N == 1 {
		return one(choices.Stacks[0]), nil
	}
	others = make([]variant, choices.N)
	for i := range others {
		others[i] = one(choices.Stacks[i])
	}
	return others[0], others
}

// Open sets pr to everything in c but its plan. by names the model in predictions. The error wraps
// perfmodel.ErrNotCovered.
func (ph *Physics) Open(c *spec.Config, by string, pr *Prepared) error {
	pr.by, pr.wide = by, &ph.wide
	pr.choices = stack.Of(c.Framework, c.Accelerator.Arch)
	first, variants := ph.variants(c, pr.choices)
	if pr.variants = variants; variants != nil {
		pr.weight = (*weights)(&pr.choices.Weight)
		if evidence := ph.evidence[Site{pr.choices.Name, c.Accelerator.Name}]; evidence != nil {
			pr.weight = weigh(pr.choices, evidence)
		}
	}
	return pr.init(first, ph.Memory, c)
}

// Predict returns the throughput and memory of c. by names the model in the prediction. The error wraps
// perfmodel.ErrNotCovered.
func (ph *Physics) Predict(c *spec.Config, by string) (spec.Prediction, error) {
	var pr Prepared
	if err := ph.Open(c, by, &pr); err != nil {
		return spec.Prediction{}, err
	}
	p := c.Plan.Normal()
	out, err := pr.predict(&p)
	if err == nil {
		b := pr.Memory.Plan(p)
		b.SetMemory(&out)
	}
	return out, err
}

// Explain returns the step time of c split by cause. The error wraps perfmodel.ErrNotCovered.
func (ph *Physics) Explain(c *spec.Config) (Parts, error) {
	e, _, err := ph.estimate(c)
	return e.Parts, err
}

// StackWeights returns the probability of each choice of c's stack under its plan, and whether rows of its site are
// measured. Rows without a stated stack change the probabilities. The error wraps perfmodel.ErrNotCovered.
func (ph *Physics) StackWeights(c *spec.Config) (weight [stack.MaxChoices]float64, measured bool, err error) {
	var pr Prepared
	if err := ph.Open(c, "", &pr); err != nil {
		return weight, false, err
	}
	p := c.Plan.Normal()
	use := stack.UseOf(&p)
	if weight = pr.choices.Weight[use]; pr.variants != nil {
		weight = pr.weight[use]
	}
	return weight, ph.sites[SiteOf(c)] != nil, nil
}

// estimate returns the step time of c, and the differences between the choices of stacks, see Prepared.apart.
func (ph *Physics) estimate(c *spec.Config) (e Estimate, apart [stack.MaxChoices]float64, err error) {
	var pr Prepared
	if err := ph.Open(c, "", &pr); err != nil {
		return e, apart, err
	}
	p := c.Plan.Normal()
	if e, err = pr.Estimate(&p); err == nil {
		apart = pr.apart(&p, &e)
	}
	return e, apart, err
}

// Widths determines the interval of a prediction: the covariance of the effects (of their logarithms), a floor,
// and the factors with which nine in ten left-out rows fall inside.
type Widths struct {
	Cov   [][]float64 `json:"cov"`   // by effect
	Floor float64     `json:"floor"` // standard deviation that is added to every prediction
	Scale float64     `json:"scale"` // half width over the standard deviation

	// RoutedScale is the scale for networks with routed experts: their kernels and traffic differ more among stacks. Rows of
	// other networks count too, since few sources have such experts.
	RoutedScale float64 `json:"routed_scale"`
}

// UnmarshalJSON implements json.Unmarshaler; it returns an error for values that are not valid widths.
func (w *Widths) UnmarshalJSON(b []byte) error {
	type plain Widths
	if err := json.Unmarshal(b, (*plain)(w)); err != nil {
		return err
	}
	const most = 100 // larger logarithms do not occur in an interval
	bad := len(w.Cov) != 0 && len(w.Cov) != len(effects) || !(w.Scale >= 0 && w.Scale < most) || !(w.RoutedScale >= 0 && w.RoutedScale < most) || !(math.Abs(w.Floor) < most)
	for _, row := range w.Cov {
		bad = bad || len(row) != len(effects)
		for _, v := range row {
			bad = bad || !(math.Abs(v) < most)
		}
	}
	if bad {
		return fmt.Errorf("widths of %d rows, floor %g and scales %g and %g are invalid, want a covariance of %d effects, and a floor and scales below %g",
			len(w.Cov), w.Floor, w.Scale, w.RoutedScale, len(effects), float64(most))
	}
	return nil
}

// memoryShare is the share of device time limited by memory bandwidth: norms, activations, the optimizer.
const memoryShare = 0.2

const effectCount = 6 // len(effects)

// Load has the derivatives of ln T by the effects of its site.
type Load [effectCount]float64

// LoadOf returns the shares of a step that the effects scale.
func LoadOf(p *Parts, total float64) Load {
	device := (p.Compute + p.Recompute + p.Optimizer) / total
	return Load{(1 - memoryShare) * device, memoryShare * device, (p.TP + p.CP + p.EP) / total, (p.DP + p.Pipeline) / total,
		(p.Launch + p.Offload) / total, p.Fixed / total}
}

// HalfWidth returns half the width of the 90 % interval of ln T, for a network with or without routed experts.
func (w *Widths) HalfWidth(routed bool, p *Parts, total float64) float64 {
	load := LoadOf(p, total)
	return w.ScaleOf(routed) * math.Sqrt(w.Variance(&load))
}

// ScaleOf returns the ratio of half width to standard deviation.
func (w *Widths) ScaleOf(routed bool) float64 {
	if routed {
		return w.RoutedScale
	}
	return w.Scale
}

// Variance returns that of ln T with a load.
func (w *Widths) Variance(load *Load) float64 {
	return max(w.sum(w.Floor*w.Floor, load, load), 0)
}

// Traffic returns the part of Variance that the effects of the links add.
func (w *Widths) Traffic(load *Load) float64 {
	links := Load{2: load[2], 3: load[3]}
	return max(w.sum(0, &links, &links), 0)
}

// between returns the covariance of ln T of two loads.
func (w *Widths) between(a, b *Load) float64 { return w.sum(0, a, b) }

// sum adds the covariance of two loads to v.
func (w *Widths) sum(v float64, a, b *Load) float64 {
	for i, row := range w.Cov {
		for j, c := range row {
			v += a[i] * b[j] * c
		}
	}
	return v
}

// drivers returns the parameters that scale the same constants as an effect, on devices of an architecture (""
// = any) under a stack's kind of launch.
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

// WithMemory returns a copy of ph with another calibration of memory.
func (ph *Physics) WithMemory(mem *memory.Calibration) *Physics {
	out := *ph
	out.Memory = mem
	return &out
}
