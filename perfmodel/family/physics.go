package family

import (
	"math"

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
	return pr.init(ph.constantsFor(c), c)
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

// widths says how wide the interval of a prediction is: standard deviations of
// the logarithm of each part of a step, taken as independent, and a factor that
// makes nine in ten left-out rows fall inside.
type widths struct {
	Compute float64 `json:"compute"` // device time
	Link    float64 `json:"link"`    // traffic inside nodes
	Network float64 `json:"network"` // data parallel and stage-to-stage traffic
	Host    float64 `json:"host"`    // launches, offload, fixed cost
	Floor   float64 `json:"floor"`   // of every prediction
	Scale   float64 `json:"scale"`   // half width over the standard deviation
}

// halfWidth returns half the width of the 90 % interval of ln T.
func (w *widths) halfWidth(p *Parts, total float64) float64 { return w.Scale * w.sd(p, total) }

func (w *widths) sd(p *Parts, total float64) float64 {
	c := w.Compute * (p.Compute + p.Recompute + p.Optimizer)
	l := w.Link * (p.TP + p.CP + p.EP)
	n := w.Network * (p.DP + p.Pipeline)
	h := w.Host * (p.Launch + p.Offload + p.Fixed)
	return math.Sqrt(w.Floor*w.Floor + (c*c+l*l+n*n+h*h)/(total*total))
}
