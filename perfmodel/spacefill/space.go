package spacefill

import (
	"math"

	"github.com/pacer-ml/pacer/perfmodel/internal/gp"
	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// Nearest is the distance of each of some points to the nearest one visited, infinite before the first. A maximin design
// visits the point with the largest next. Source: Johnson, Moore and Ylvisaker, "Minimax and maximin distance designs",
// Journal of Statistical Planning and Inference 1990.
type Nearest []float64

// NewNearest returns the distances of n points.
func NewNearest(n int) Nearest {
	d := make(Nearest, n)
	for i := range d {
		d[i] = math.Inf(1)
	}
	return d
}

// Visit adds a point. distance returns that of point i to it.
func (d Nearest) Visit(distance func(i int) float64) {
	for i := range d {
		d[i] = min(d[i], distance(i))
	}
}

// Space is a set of configurations, each with its distance to the nearest measured one. The distance is the sum over the
// dimensions of package gp: for each factor of two between sizes, and for different names, with the usual weights of the
// covariance of residuals.
type Space struct {
	Nearest
	at []gp.Point
}

// NewSpace returns the space of configurations, none of them measured.
func NewSpace(configs []spec.Config) *Space {
	s := &Space{NewNearest(len(configs)), make([]gp.Point, len(configs))}
	for i := range configs {
		s.at[i] = gp.PointOf(&configs[i])
	}
	return s
}

// Measure adds a measured configuration.
func (s *Space) Measure(c *spec.Config) {
	p := gp.PointOf(c)
	s.Visit(func(i int) float64 { return p.Distance(&s.at[i]) })
}

// DistanceFrom returns the function that gives the distance of configurations to c, as of Space.
func DistanceFrom(c *spec.Config) func(*spec.Config) float64 {
	at := gp.PointOf(c)
	return func(other *spec.Config) float64 {
		p := gp.PointOf(other)
		return p.Distance(&at)
	}
}
