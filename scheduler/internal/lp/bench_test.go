package lp

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"syscall"
	"testing"
	"time"
)

// reportCPU reports the CPU time per operation, which depends little on other programs. Call it before the loop, and
// its result after.
func reportCPU(b *testing.B) (done func()) {
	start := cpuTime(b)
	return func() {
		b.ReportMetric(float64((cpuTime(b)-start).Nanoseconds())/float64(b.N), "cpu-ns/op")
	}
}

func cpuTime(b *testing.B) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// cluster is an invented cluster: rates[m][k] of job m on type k relative to its fair share, gangs[m] devices each,
// capacity[k] devices of type k, in all an eighth of what the jobs ask for, so that all types are scarce.
type cluster struct {
	rates    [][]float64
	gangs    []float64
	capacity []float64
}

func invented(seed uint64, jobs, types int) cluster {
	r := rand.New(rand.NewPCG(seed, 7))
	c := cluster{rates: make([][]float64, jobs), gangs: make([]float64, jobs), capacity: make([]float64, types)}
	demand := 0.0
	for m := range jobs {
		c.gangs[m] = float64(int(1) << r.IntN(4))
		demand += c.gangs[m]
		base := math.Exp(r.NormFloat64())
		c.rates[m] = make([]float64, types)
		sum := 0.0
		for k := range types {
			c.rates[m][k] = base * (1 + float64(types-k)) * math.Exp(r.NormFloat64()/2)
			sum += c.rates[m][k]
		}
		for k := range types {
			c.rates[m][k] *= float64(types) / sum
		}
	}
	for k := range types {
		c.capacity[k] = math.Ceil(demand / 8 / float64(types))
	}
	return c
}

func BenchmarkSolve(b *testing.B) {
	for _, size := range []struct{ jobs, types int }{{64, 3}, {256, 8}, {1024, 3}, {1024, 8}, {4096, 3}, {4096, 8}, {16384, 3}} {
		b.Run(fmt.Sprintf("jobs=%d/types=%d", size.jobs, size.types), func(b *testing.B) {
			c := invented(1, size.jobs, size.types)
			iterations := 0
			done := reportCPU(b)
			for b.Loop() {
				p := c.scaled().general()
				s, err := p.Solve(context.Background(), Options{})
				if err != nil {
					b.Fatal(err)
				}
				iterations = s.Iterations
			}
			done()
			b.ReportMetric(float64(iterations), "iterations")
		})
	}
}

func BenchmarkMaxMin(b *testing.B) {
	for _, size := range []struct{ jobs, types int }{{128, 3}, {2048, 3}, {16384, 3}, {4096, 8}} {
		b.Run(fmt.Sprintf("jobs=%d/types=%d", size.jobs, size.types), func(b *testing.B) {
			c := invented(1, size.jobs, size.types).scaled()
			points := 0
			done := reportCPU(b)
			for b.Loop() {
				s, err := c.Solve(context.Background())
				if err != nil {
					b.Fatal(err)
				}
				points = s.Points
			}
			done()
			b.ReportMetric(float64(points), "points")
		})
	}
}

// scaled states the largest least rate of c, a rate being that of all devices of a gang.
func (c cluster) scaled() *MaxMin {
	p := &MaxMin{Sizes: c.gangs, Capacity: c.capacity}
	for m, rates := range c.rates {
		row := make([]float64, len(rates))
		for k, r := range rates {
			row[k] = c.gangs[m] * r
		}
		p.Rates = append(p.Rates, row)
	}
	return p
}
