package device

import (
	"math"
	"slices"
	"time"
)

// counterSlots is the number of points that a counter keeps.
const counterSlots = 4096

// A counter records a value that only increases. When it is full, it drops every second point.
type counter struct {
	points []counterPoint
	last   counterPoint // the newest value, which may not be in points
	stride int          // one value in stride is kept
	passed int          // number of values dropped since the newest of points
}

type counterPoint struct {
	at time.Time
	v  float64
}

// add records the value at a time, which must not be before the newest one.
func (c *counter) add(at time.Time, v float64) {
	c.stride = max(c.stride, 1)
	c.last = counterPoint{at, v}
	if c.passed++; len(c.points) > 0 && c.passed < c.stride {
		return
	}
	if len(c.points) == counterSlots {
		for i := range counterSlots / 2 {
			c.points[i] = c.points[2*i]
		}
		c.points = c.points[:counterSlots/2]
		c.stride *= 2
	}
	c.points = append(c.points, c.last)
	c.passed = 0
}

// increase returns the increase of the value from one time to another. It returns NaN if the counter does not
// cover both times, or if the value fell, as when a driver is reloaded.
func (c *counter) increase(from, to time.Time) float64 {
	d := c.at(to) - c.at(from)
	if !(d >= 0) {
		return math.NaN()
	}
	return d
}

// at returns the value at a time, interpolated linearly.
func (c *counter) at(t time.Time) float64 {
	i, exact := slices.BinarySearchFunc(c.points, t, func(p counterPoint, t time.Time) int { return p.at.Compare(t) })
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
