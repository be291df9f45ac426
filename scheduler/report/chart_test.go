package report

import (
	"bytes"
	"fmt"
	"io"
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/pacer-ml/pacer/scheduler/sim"
)

func TestJCTChart(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := result("p", rapid.Uint64().Draw(t, "seed"), rapid.IntRange(2, 120).Draw(t, "jobs"), 16, rapid.Bool().Draw(t, "backfill"))
		r.Jobs[0].Finished = false // counts, but never finishes
		c, ok := jctChart([]*sim.Result{r}, Score{})
		if !ok {
			t.Fatal("no chart")
		}
		for i, x := range c.X {
			n := 0
			for _, j := range r.Jobs {
				if j.Finished && Number(j.JCT().Seconds()) <= x {
					n++
				}
			}
			y := c.Lines[0][i]
			if want := float64(n) / float64(len(r.Jobs)); math.Abs(float64(y)-want) > 1e-5 {
				t.Fatalf("share of jobs within %v s: %v, want %v", x, y, want)
			}
			if i > 0 && (x <= c.X[i-1] || y < c.Lines[0][i-1]) {
				t.Fatalf("not monotone at %v s", x)
			}
		}
		if first, last := c.Lines[0][0], c.Lines[0][len(c.X)-1]; first != 0 || math.Abs(float64(last)-1+1/float64(len(r.Jobs))) > 1e-5 {
			t.Fatalf("goes from %v to %v, want 0 to all but one of %d", first, last, len(r.Jobs))
		}
	})
}

func TestJCTChartOfOneTime(t *testing.T) {
	for _, d := range []time.Duration{1, time.Microsecond, time.Second, 1e6 * time.Hour} {
		c, ok := jctChart([]*sim.Result{{Jobs: []sim.JobRecord{job("1", 0, 0, d)}}}, Score{})
		if !ok || len(c.X) < 2 || c.Lines[0][len(c.X)-1] != 1 {
			t.Errorf("completion time %v: %v, %d points", d, ok, len(c.X))
		}
	}
}

// TestUsageChartKeepsTheIntegral checks that the steps' means times their lengths
// add up to the device-seconds held.
func TestUsageChartKeepsTheIntegral(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := result("p", rapid.Uint64().Draw(t, "seed"), rapid.IntRange(1, 120).Draw(t, "jobs"), 16, rapid.Bool().Draw(t, "backfill"))
		c, ok := usageChart([]*sim.Result{r}, heldShare)
		if !ok || len(c.X) > timeBuckets {
			t.Fatalf("%v, %d steps", ok, len(c.X))
		}
		var got, want float64
		end := RunEnd(r).Seconds()
		for i, y := range c.Lines[0] {
			if y < 0 || y > 1 {
				t.Fatalf("share %v", y)
			}
			got += float64(y) * 16 * min(c.StepSec, end-float64(c.X[i]))
		}
		for _, j := range r.Jobs {
			want += j.Attained
		}
		// Means are rounded to 1e-4 of the cluster.
		if math.Abs(got-want) > 0.5e-4*16*end+1e-6 {
			t.Fatalf("%v device-seconds, want %v", got, want)
		}
	})
}

func TestUsageChartEndsWithTheRun(t *testing.T) {
	long, short := small()[0], small()[1]
	c, _ := usageChart([]*sim.Result{long, short}, waitingJobs)
	for i, x := range c.X {
		if got, want := c.Lines[1][i].Defined(), float64(x) < 71; got != want {
			t.Errorf("the run of 71 s has a value at %v s: %v", x, got)
		}
		if !c.Lines[0][i].Defined() {
			t.Errorf("the longer run has no value at %v s", x)
		}
	}
}

func TestRoundStep(t *testing.T) {
	for d, want := range map[time.Duration]time.Duration{
		0: time.Second, time.Second + 1: 2 * time.Second, 7 * time.Minute: 10 * time.Minute, 25 * time.Hour: 48 * time.Hour,
	} {
		if got := roundStep(d); got != want {
			t.Errorf("roundStep(%v) = %v, want %v", d, got, want)
		}
	}
}

// TestHTMLSizeIsBounded compares the sizes of pages of few and of many jobs.
func TestHTMLSizeIsBounded(t *testing.T) {
	size := func(n int) int {
		var b bytes.Buffer
		mustWriteHTML(t, &b, HTMLInput{Results: []*sim.Result{manyJobs(n)}})
		return b.Len()
	}
	if few, more := size(1_000), size(100_000); more > few+8192 {
		t.Errorf("1,000 jobs take %d bytes, 100,000 jobs %d", few, more)
	}
}

func BenchmarkWriteHTML(b *testing.B) {
	for _, n := range []int{1_000, 1_000_000} {
		b.Run(fmt.Sprintf("jobs=%d", n), func(b *testing.B) {
			in := HTMLInput{Results: []*sim.Result{manyJobs(n)}}
			for b.Loop() {
				mustWriteHTML(b, io.Discard, in)
			}
		})
	}
}

func BenchmarkWriteJobs(b *testing.B) {
	r := []*sim.Result{manyJobs(100_000)}
	b.ReportAllocs()
	for b.Loop() {
		mustWriteJobs(b, io.Discard, CSV, r, Score{})
	}
}
