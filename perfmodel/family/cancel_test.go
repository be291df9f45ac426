//go:build unix

package family

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/pacer-ml/pacer/perfmodel"
	"github.com/pacer-ml/pacer/perfmodel/internal/perftest"
	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// manyRows returns n different configurations of one job with 2 % noise; data parallel only if the family
// covers no other plans.
func manyRows(t testing.TB, f perfmodel.Family, n int) []spec.Measurement {
	t.Helper()
	model, err := Lookup("analytic")
	if err != nil {
		t.Fatal(err)
	}
	plain := f.Name == "pollux" || f.Name == "optimus" || f.Name == "sia"
	rng := rand.New(rand.NewPCG(1, 2))
	var out []spec.Measurement
	for accum := 1; ; accum++ {
		for micro := 1; micro <= 32; micro++ {
			for dp := 1; dp <= 32; dp *= 2 {
				p := spec.Plan{DP: dp, TP: 1 << (micro % 4), MicroBatch: micro, AccumSteps: accum, ZeRO: accum % 3, Precision: spec.BF16}
				if plain {
					p.TP, p.ZeRO = 1, 0
				}
				c := perftest.GPT(p.Normal())
				c.Framework = "Megatron-LM"
				pred, err := model.Unfitted.Predict(t.Context(), c)
				if err != nil {
					t.Fatal(err)
				}
				sec, _, _ := pred.StepSec(c.Plan.GlobalBatch())
				out = append(out, spec.Measurement{Config: c, Outcome: spec.OK, Source: "made", StepSec: []float64{sec * math.Exp(0.02*rng.NormFloat64())}})
				if len(out) == n {
					return out
				}
			}
		}
	}
}

// contextProbe is a context that records the longest processor time of this process between two calls of Err.
type contextProbe struct {
	context.Context
	mu      sync.Mutex
	looks   int
	last    time.Duration
	longest time.Duration
}

func (c *contextProbe) Err() error {
	c.look()
	return c.Context.Err()
}

func (c *contextProbe) look() {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := processorTime()
	c.longest = max(c.longest, now-c.last)
	c.looks, c.last = c.looks+1, now
}

func processorTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// TestFitLooksAtItsContext: fits of thousands of rows check their context every few milliseconds of processor
// time. The limit is three times the documented one, because garbage collection counts too.
func TestFitLooksAtItsContext(t *testing.T) {
	if testing.Short() {
		t.Skip("fits thousands of rows")
	}
	for _, f := range All() {
		if f.Fit == nil {
			continue
		}
		rows := manyRows(t, f, 5000)
		c := &contextProbe{Context: t.Context(), last: processorTime()}
		_, _, err := f.Fit(c, perfmodel.Rows(rows))
		c.look()
		if err != nil {
			t.Errorf("%s: %v", f.Name, err)
		}
		t.Logf("%s: %d looks, at most %v apart", f.Name, c.looks, c.longest)
		if limit := 300 * time.Millisecond; c.longest > limit {
			t.Errorf("%s: %v of processor time between two looks at the context, want at most %v", f.Name, c.longest, limit)
		}
	}
}

// BenchmarkFitCancelled reports how long a fit of 5000 rows continues after its context ends at a random
// moment: the maximum over the runs, in milliseconds.
func BenchmarkFitCancelled(b *testing.B) {
	for _, f := range All() {
		if f.Fit == nil {
			continue
		}
		b.Run("family="+f.Name, func(b *testing.B) {
			rows := manyRows(b, f, 5000)
			began := time.Now()
			if _, _, err := f.Fit(b.Context(), perfmodel.Rows(rows)); err != nil {
				b.Fatal(err)
			}
			whole := time.Since(began)
			rng := rand.New(rand.NewPCG(3, 4))
			longest := time.Duration(0)
			for b.Loop() {
				ctx, cancel := context.WithTimeout(b.Context(), time.Duration(rng.Float64()*float64(whole)))
				_, _, err := f.Fit(ctx, perfmodel.Rows(rows))
				if end, _ := ctx.Deadline(); errors.Is(err, context.DeadlineExceeded) {
					longest = max(longest, time.Since(end))
				}
				cancel()
			}
			b.ReportMetric(float64(longest.Microseconds())/1000, "longest-ms")
		})
	}
}
