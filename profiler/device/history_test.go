package device

import (
	"math"
	"testing"
	"time"
)

func second(s float64) time.Time { return someMoment.Add(time.Duration(s * float64(time.Second))) }

// TestHistoryIsBounded: a recording of three days takes no more memory than one of four minutes, and its means
// are exact to a bucket at each end.
func TestHistoryIsBounded(t *testing.T) {
	var h history
	const n = 3 * 86400 * 10
	for i := range n {
		r := newReading(second(float64(i) / 10))
		r.values[smClock] = float64(i)
		r.energyJ = 40 * float64(i)
		r.hasReasons, r.reasons = true, uint64(i%2)<<3
		h.add(r)
	}
	if len(h.buckets) > historySlots || cap(h.buckets) > 2*historySlots || len(h.energy.points) > counterSlots {
		t.Fatalf("%d buckets (room for %d), %d points", len(h.buckets), cap(h.buckets), len(h.energy.points))
	}
	from, to := second(n/40.0), second(3*n/40.0)
	b := h.within(from, to)
	width := float64(h.stride)
	if got := b.stats[smClock].mean(); math.Abs(got-n/2) > width {
		t.Errorf("mean %g, want %g +- %g", got, n/2.0, width)
	}
	if got := b.stats[smClock].max; math.Abs(got-3*n/4) > 2*width {
		t.Errorf("max %g, want %g +- %g", got, 3*n/4.0, 2*width)
	}
	if got := float64(b.reasons[3]) / float64(b.hasReasons); math.Abs(got-0.5) > 1e-3 {
		t.Errorf("share of a reason %g, want 0.5", got)
	}
	if got, want := h.joules(from, to), 400*to.Sub(from).Seconds(); math.Abs(got-want) > 1e-9*want {
		t.Errorf("%g J, want %g", got, want)
	}
}

func TestWindowTakesTheNearest(t *testing.T) {
	var h history
	for i := range 100 {
		r := newReading(second(float64(i) / 10))
		r.values[smClock] = float64(i)
		if i%10 == 0 {
			r.values[temperature] = float64(i)
		}
		h.add(r)
	}
	b := h.within(second(4.15), second(4.55)) // no temperature was read
	if b.n != 4 || b.stats[smClock].mean() != 43.5 || b.stats[smClock].max != 45 {
		t.Errorf("got %d readings, %+v", b.n, b.stats[smClock])
	}
	if s := b.stats[temperature]; s.n != 1 || s.max != 40 {
		t.Errorf("temperature %+v, want that of 4.0 s", s)
	}
	if b := h.within(second(20), second(30)); b.n != 0 || b.stats[temperature].n != 0 {
		t.Errorf("long after: %+v", b)
	}
	if got := new(history).joules(second(0), second(1)); !math.IsNaN(got) {
		t.Errorf("%g J of nothing", got)
	}
}

func TestCurve(t *testing.T) {
	var c counter
	if got := c.increase(second(0), second(1)); !math.IsNaN(got) {
		t.Errorf("an empty curve rises by %g", got)
	}
	for i := range 11 {
		c.add(second(float64(i)), float64(i*i))
	}
	for _, tc := range [][3]float64{{0, 10, 100}, {2, 3, 5}, {2.5, 3, 2.5}, {9.5, 10, 9.5}, {-1, 3, math.NaN()}, {3, 10.1, math.NaN()}, {5, 4, math.NaN()}} {
		got := c.increase(second(tc[0]), second(tc[1]))
		if !(math.Abs(got-tc[2]) < 1e-9) && !(math.IsNaN(got) && math.IsNaN(tc[2])) {
			t.Errorf("%g to %g: %g, want %g", tc[0], tc[1], got, tc[2])
		}
	}
}

// TestFullCurve: when a full counter drops points, its newest value stays, and the remaining points are evenly
// spaced.
func TestFullCurve(t *testing.T) {
	var c counter
	for i := range 5*counterSlots + 3 {
		c.add(second(float64(i)), float64(i))
		if got := c.increase(second(0), second(float64(i))); math.Abs(got-float64(i)) > 1e-6 {
			t.Fatalf("after %d: %g", i, got)
		}
	}
	if len(c.points) > counterSlots {
		t.Errorf("%d points", len(c.points))
	}
	for i, p := range c.points[1:] {
		if gap := p.v - c.points[i].v; gap > 16 { // a counter that was filled 5 times is thinned three times
			t.Fatalf("%g values are forgotten between points %d and %d", gap, i, i+1)
		}
	}
}
