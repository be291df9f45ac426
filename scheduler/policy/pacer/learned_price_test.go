package pacer

import (
	"math"
	"testing"
	"time"

	"github.com/pacer-ml/pacer/scheduler/internal/lookahead"
	"github.com/pacer-ml/pacer/scheduler/schedulertest"
)

// priceAfter returns the learned price at 200 s, all times multiplied by scale. The schedule of time 0 foresees a price of
// 2 jobs for the cluster for 50 s and ends its job at 100 s; that of 100 s finds a price of 6.
func priceAfter(scale float64, second float64) float64 {
	c := schedulertest.Nodes(2, 4)
	l := &learnedPrice{}
	at := func(s float64) time.Duration { return time.Duration(s * scale * float64(time.Second)) }
	schedule := func(price, until, end float64) *lookahead.Schedule {
		return &lookahead.Schedule{
			Assignments: []lookahead.Assignment{{Keep: true, End: end * scale}},
			Prices:      lookahead.Prices{Times: []float64{0, until * scale}, Devices: [][]float64{{price / 8}}},
		}
	}
	l.observe(0, c, schedule(2, 50, 100))
	l.observe(at(100), c, schedule(1, 1, 1)) // replaced
	l.observe(at(100), c, schedule(second, 100, 200))
	return l.price(at(200), c)
}

// The price is the mean that was seen, (2 + 6) / 2, less the mean foreseen at time 0, 2 / 4. It is 0 if schedules foresaw
// it all or more, and without a record.
func TestLearnedPrice(t *testing.T) {
	if got := priceAfter(1, 6); math.Abs(got-3.5) > 1e-9 {
		t.Errorf("price %g, want 3.5", got)
	}
	c := schedulertest.Nodes(1, 8)
	l := &learnedPrice{}
	if got := l.price(time.Hour, c); got != 0 {
		t.Errorf("price %g without a schedule, want 0", got)
	}
	foreseen := lookahead.Prices{Times: []float64{0, 100}, Devices: [][]float64{{1}}}
	l.observe(0, c, &lookahead.Schedule{Assignments: []lookahead.Assignment{{Keep: true, End: 50}}, Prices: foreseen})
	if got := l.price(50*time.Second, c); got != 0 {
		t.Errorf("price %g of what was foreseen, want 0", got)
	}
}

// Multiplying all times by a number leaves the price as it is.
func TestLearnedPriceHasNoScale(t *testing.T) {
	for _, scale := range []float64{0.01, 0.1, 10, 1000} {
		if got, want := priceAfter(scale, 6), priceAfter(1, 6); math.Abs(got-want) > 1e-6 {
			t.Errorf("times multiplied by %g: price %g, want %g", scale, got, want)
		}
	}
}

// A decision that is repeated has the price of the first, and a schedule that is replaced leaves no trace.
func TestLearnedPriceOfARepeatedDecision(t *testing.T) {
	c := schedulertest.Nodes(2, 4)
	l := &learnedPrice{}
	schedule := func(price, end float64) *lookahead.Schedule {
		return &lookahead.Schedule{
			Assignments: []lookahead.Assignment{{Keep: true, End: end}, {Candidate: -1, End: math.Inf(1)}},
			Prices:      lookahead.Prices{Times: []float64{0, end}, Devices: [][]float64{{price / 8}}, Ends: []float64{1}},
		}
	}
	l.observe(0, c, schedule(0, 100))
	l.observe(50*time.Second, c, schedule(6, 100))
	before := l.price(100*time.Second, c)
	l.observe(100*time.Second, c, schedule(9, 5))
	if after := l.price(100*time.Second, c); before != 3 || after != before {
		t.Errorf("prices %g and %g, want 3 twice", before, after)
	}
	if l.longest != 100 {
		t.Errorf("jobs end in up to %g s, want 100, without the job that does not start", l.longest)
	}
	if l.records[0].foreseen.Ends != nil {
		t.Error("the prices of jobs are kept, which are not read")
	}
}

// Schedules in which a job can never run are left out, and the number of records is bounded.
func TestLearnedPriceForgets(t *testing.T) {
	c := schedulertest.Nodes(2, 4)
	l := &learnedPrice{}
	for i := range maxPriceRecords + 10 {
		l.observe(time.Duration(i)*time.Second, c, &lookahead.Schedule{Assignments: []lookahead.Assignment{{Keep: true, End: 1e9}}})
	}
	if n := len(l.records); n != maxPriceRecords {
		t.Errorf("%d records, want %d", n, maxPriceRecords)
	}
	l = &learnedPrice{}
	for i := range 100 {
		at := time.Duration(i) * time.Second
		l.observe(at, c, &lookahead.Schedule{Assignments: []lookahead.Assignment{{Keep: true, End: 10}}})
		l.observe(at, c, &lookahead.Schedule{Cost: math.Inf(1), Assignments: []lookahead.Assignment{{Keep: true, End: math.Inf(1)}}})
	}
	if n := len(l.records); n != 12 || l.longest != 10 {
		t.Errorf("%d records for %g s, want 12 for 10", n, l.longest)
	}
}
