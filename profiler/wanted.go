package profiler

import (
	"context"
	"fmt"

	"github.com/pacer-ml/pacer/perfmodel"
	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// Wanted is a plan on devices, of this machine or not, that a campaign should predict well.
type Wanted struct {
	Plan  spec.Plan
	Shape spec.Shape
}

// setWanted computes the configurations of Options.For, for every model and sequence length of the points. It is an error
// if a model can run none of them.
func (r *run) setWanted() error {
	if len(r.o.For) == 0 {
		return nil
	}
	type job struct {
		model string
		seq   int
	}
	for _, g := range r.groups {
		for _, k := range g.keys {
			why, seen, before := "", map[job]bool{}, len(g.wanted)
			for _, i := range k.points {
				of := &r.points[i].Config
				if at := (job{of.Model.Name, of.Seq()}); !seen[at] {
					seen[at] = true
					configs, refused := wantedOf(of, r.o.For)
					g.wanted = append(g.wanted, configs...)
					why = refused
				}
			}
			if len(g.wanted) == before {
				return fmt.Errorf("profiler: campaign %s: none of the %d wanted plans can run: %s", r.c.Name, len(r.o.For), why)
			}
		}
	}
	return nil
}

// wantedOf returns the configurations of the job of a point under the plans that it can run, and why it cannot run the last
// of the others.
func wantedOf(point *spec.Config, wanted []Wanted) (out []spec.Config, refused string) {
	for _, w := range wanted {
		c := *point
		c.Plan, c.Shape = w.Plan.Normal(), w.Shape
		if c.Plan.Precision == "" {
			c.Plan.Precision = point.Plan.Precision
		}
		c.Shape.CPUs = point.Shape.CPUs / max(point.Shape.Total(), 1) * c.Shape.Total()
		if why := cannotRun(c.Model, c.Seq(), c.Plan); why != "" {
			refused = fmt.Sprintf("plan %s: %s", c.Plan, why)
			continue
		}
		out = append(out, c)
	}
	return out, refused
}

// wantedHalf returns the mean half width of the 90 % intervals of ln T of the wanted configurations, under the fitted
// model or, if it is nil, that without rows.
func (r *run) wantedHalf(ctx context.Context, g *fitGroup, fitted perfmodel.Fitted) float64 {
	if fitted == nil {
		fitted = r.o.Family.Unfitted
	}
	if fitted == nil {
		return 0
	}
	sum, n := 0.0, 0
	for _, c := range g.wanted {
		if p, err := fitted.Predict(ctx, c); err == nil && p.Lo > 0 {
			sum, n = sum+p.HalfWidth(), n+1
		}
	}
	return sum / float64(max(n, 1))
}
