package device

import (
	"math"
	"slices"
	"time"
)

// curveSlots is how many points a curve keeps.
const curveSlots = 4096

// A curve is a counter that only rises, over time. When it is full every second
// point is forgotten.
type curve struct {
	points []curvePoint
	last   curvePoint // the newest, which points may have passed over
	stride int        // of what is added, one in stride is kept
	passed int        // passed over since the newest of points
}

type curvePoint struct {
	at time.Time
	v  float64
}

// add adds the value at a time, which must not lie before the newest.
func (c *curve) add(at time.Time, v float64) {
	c.stride = max(c.stride, 1)
	c.last = curvePoint{at, v}
	if c.passed++; len(c.points) > 0 && c.passed < c.stride {
		return
	}
	if len(c.points) == curveSlots {
		for i := range curveSlots / 2 {
			c.points[i] = c.points[2*i]
		}
		c.points = c.points[:curveSlots/2]
		c.stride *= 2
	}
	c.points = append(c.points, c.last)
	c.passed = 0
}

// rise returns by how much the counter rose from one time to another, NaN if it
// was not watched throughout or fell (a driver that was loaded anew).
func (c *curve) rise(from, to time.Time) float64 {
	d := c.at(to) - c.at(from)
	if !(d >= 0) {
		return math.NaN()
	}
	return d
}

// at returns the value at a time, between points by the straight line.
func (c *curve) at(t time.Time) float64 {
	i, exact := slices.BinarySearchFunc(c.points, t, func(p curvePoint, t time.Time) int { return p.at.Compare(t) })
	switch {
	case exact:
		return c.points[i].v
	case i == 0 || t.After(c.last.at):
		return math.NaN()
	}
	a, b := c.points[i-1], c.last
	if i < len(c.points) {
		b = c.points[i]
	}
	if !b.at.After(a.at) {
		return a.v
	}
	return a.v + (b.v-a.v)*t.Sub(a.at).Seconds()/b.at.Sub(a.at).Seconds()
}
