package planner_test

import (
	"fmt"
	"runtime"
	"testing"

	"golang.org/x/sync/errgroup"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/planner"
)

// planningRequests are for one node to two thousand.
func planningRequests() []planner.Request {
	small := planner.Request{Model: testModel(32, 4096, 32), Accelerator: testAccelerator(80), Devices: 16, GlobalBatch: 128}
	return []planner.Request{small, gpt3(1024, 1536), gpt3(16384, 16384)}
}

// BenchmarkBest finds the best plan without a cache.
func BenchmarkBest(b *testing.B) {
	for _, r := range planningRequests() {
		b.Run(fmt.Sprintf("hidden=%d/devices=%d", r.Model.Hidden, r.Devices), func(b *testing.B) {
			model := analyticModel(b)
			for b.Loop() {
				if _, err := planner.New(model, planner.Options{}).Best(ctx, r); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkRank judges the legality, memory and time of every plan.
func BenchmarkRank(b *testing.B) {
	for _, r := range planningRequests() {
		b.Run(fmt.Sprintf("hidden=%d/devices=%d", r.Model.Hidden, r.Devices), func(b *testing.B) {
			model, plans := analyticModel(b), 0
			r.Top = 10
			for b.Loop() {
				rank, err := planner.New(model, planner.Options{}).Rank(ctx, r)
				if err != nil {
					b.Fatal(err)
				}
				plans += rank.Evaluated
			}
			b.ReportMetric(float64(plans)/b.Elapsed().Seconds(), "plans/s")
		})
	}
}

func BenchmarkCurve(b *testing.B) {
	for _, devices := range []int{8, 64} {
		r := planner.Request{Model: testModel(32, 4096, 32), Accelerator: testAccelerator(80), Devices: devices, GlobalBatch: 128}
		model := analyticModel(b)
		b.Run(fmt.Sprintf("cache=cold/devices=%d", devices), func(b *testing.B) {
			for b.Loop() {
				if _, err := planner.New(model, planner.Options{}).Curve(ctx, r); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run(fmt.Sprintf("cache=warm/devices=%d", devices), func(b *testing.B) {
			pl := planner.New(model, planner.Options{})
			for b.Loop() {
				if _, err := pl.Curve(ctx, r); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// surfaceRequest is 1..64 devices x 8 CPU levels x 3 types of machine.
func surfaceRequest() (planner.Request, planner.Axes) {
	r := planner.Request{Model: testModel(32, 4096, 32), Accelerator: testAccelerator(80), Devices: 64, GlobalBatch: 128}
	axes := planner.Axes{CPUs: []int{1, 2, 4, 8, 12, 16, 24, 32}}
	for i, gib := range []float64{32, 40, 80} {
		a := testAccelerator(gib)
		a.Name = fmt.Sprint("type ", i)
		a.BF16 *= 0.5 + float64(i)/4
		axes.Machines = append(axes.Machines, planner.Machine{Accelerator: a, NodeHostBytes: 1e12})
	}
	return r, axes
}

// BenchmarkSurface computes a surface without a cache.
func BenchmarkSurface(b *testing.B) {
	r, axes := surfaceRequest()
	model := analyticModel(b)
	for b.Loop() {
		if _, err := planner.New(model, planner.Options{}).Surface(ctx, r, axes); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkJobTypes computes the surfaces of 1000 job types on all cores. heap-bytes
// is their memory.
func BenchmarkJobTypes(b *testing.B) {
	base, axes := surfaceRequest()
	model := analyticModel(b)
	for b.Loop() {
		pl := planner.New(model, planner.Options{})
		surfaces := make([]*planner.Surface, 1000)
		var g errgroup.Group
		g.SetLimit(runtime.GOMAXPROCS(0))
		for i := range surfaces {
			g.Go(func() (err error) {
				r := base
				r.Model = testModel(12+i%24, 1024+128*(i/24), 8)
				r.Model.Name = fmt.Sprint("job ", i)
				r.GlobalBatch = []int{64, 96, 128, 256}[i%4]
				surfaces[i], err = pl.Surface(ctx, r, axes)
				return err
			})
		}
		if err := g.Wait(); err != nil {
			b.Fatal(err)
		}
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		b.ReportMetric(float64(m.HeapAlloc), "heap-bytes")
		runtime.KeepAlive(surfaces)
	}
}

// BenchmarkFixed is a fixed plan at each of many sequence lengths, four plans of each.
func BenchmarkFixed(b *testing.B) {
	for _, framework := range []string{"", "Megatron Core"} {
		b.Run("framework="+framework, func(b *testing.B) {
			b.ReportAllocs()
			pl := planner.New(analyticModel(b), planner.Options{})
			r := planner.Request{Model: testModel(32, 4096, 32), Accelerator: testAccelerator(80), Shape: spec.Packed(16, 8), Framework: framework}
			plans := []spec.Plan{{DP: 16, ZeRO: 3}, {DP: 8, TP: 2, ZeRO: 1}, {DP: 2, TP: 8}, {DP: 4, TP: 2, PP: 2, AccumSteps: 8}}
			for i := 0; b.Loop(); i++ {
				r.Plan, r.SeqLen = &plans[i%4], 1024+64*(i/4%1000)
				if _, err := pl.Fixed(ctx, r); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
