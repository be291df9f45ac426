package planner_test

import (
	"errors"
	"testing"

	"github.com/pacer-ml/pacer/perfmodel/family/analytic"
	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/planner"
)

// irregular hides HostRegular of a predictor.
type irregular struct{ *analytic.Model }

func (irregular) HostRegular() bool { return false }

func surfaceAxes() planner.Axes {
	small, large := testAccelerator(24), testAccelerator(80)
	small.Name, small.BF16, small.MemBps = "small", small.BF16/3, small.MemBps/2
	return planner.Axes{
		Machines:  []planner.Machine{{Accelerator: small, PerNode: 4}, {Accelerator: large}},
		InterBps:  []float64{1e9, 5e10},
		HostBytes: []float64{8e9, 200e9},
		CPUs:      []int{1, 4, 32},
	}
}

// Every point is the best of all requests with at most as many devices, CPUs and bytes
// of host memory, with and without HostRegular.
func TestSurfaceEqualsRequests(t *testing.T) {
	r := planner.Request{Model: testModel(24, 2048, 16), Devices: 9, GlobalBatch: 24, Accelerator: testAccelerator(80)}
	axes := surfaceAxes()
	pl := planner.New(irregular{}, planner.Options{})
	quick, err := planner.New(&analytic.Model{}, planner.Options{}).Surface(ctx, r, axes)
	if err != nil {
		t.Fatal(err)
	}
	slow, err := pl.Surface(ctx, r, axes)
	if err != nil {
		t.Fatal(err)
	}
	offloaded, moved := 0, 0
	for m, machine := range axes.Machines {
		for b, inter := range axes.InterBps {
			best := map[[3]int]float64{}
			for n := 1; n <= r.Devices; n++ {
				for h, host := range axes.HostBytes {
					for c, cpus := range axes.CPUs {
						at := r
						at.Accelerator, at.PerNode, at.Devices = machine.Accelerator, machine.PerNode, n
						at.Link.InterBps = inter
						at.Shape = spec.Shape{CPUs: cpus * n, HostBytes: host * float64(n)}
						want := max(best[[3]int{h, c, n - 1}], best[[3]int{h, c - 1, n}], best[[3]int{h - 1, c, n}])
						if one, err := pl.Best(ctx, at); err == nil {
							want = max(want, one.Prediction.Throughput)
						} else if !errors.Is(err, planner.ErrInfeasible) {
							t.Fatal(err)
						}
						best[[3]int{h, c, n}] = want
						for _, s := range []*planner.Surface{quick, slow} {
							got, ok := s.At(m, b, h, c, n)
							if got.Prediction.Throughput != want || ok != (want > 0) {
								t.Errorf("machine %d, network %d, host %d, cpus %d, %d devices: %s makes %g samples/s, want %g",
									m, b, h, c, n, got.Config.Plan, got.Prediction.Throughput, want)
							}
							if ok && got.Config.Plan.Offload != spec.OffloadNone {
								offloaded++
							}
						}
						if c > 0 && want > best[[3]int{h, c - 1, n}] {
							moved++
						}
					}
				}
			}
		}
	}
	if offloaded == 0 || moved == 0 {
		t.Errorf("%d points offload, %d gain from CPUs: the test shows nothing", offloaded, moved)
	}
}

func TestSurfaceMarginal(t *testing.T) {
	r := request(8, 64)
	s, err := planner.New(analyticModel(t), planner.Options{}).Surface(ctx, r, planner.Axes{})
	if err != nil {
		t.Fatal(err)
	}
	sum := 0.0
	for n := 1; n <= 8; n++ {
		gain := s.Marginal(0, 0, 0, 0, n)
		if gain < 0 {
			t.Errorf("device %d adds %g samples/s", n, gain)
		}
		sum += gain
	}
	if all, _ := s.At(0, 0, 0, 0, 8); !near(sum, all.Prediction.Throughput) {
		t.Errorf("gains add up to %g, want %g", sum, all.Prediction.Throughput)
	}
}

func TestSurfaceRefuses(t *testing.T) {
	pl := planner.New(analyticModel(t), planner.Options{})
	for _, axes := range []planner.Axes{{CPUs: []int{4, 2}}, {HostBytes: []float64{-1}}, {InterBps: []float64{-1}}} {
		if _, err := pl.Surface(ctx, request(4, 8), axes); err == nil {
			t.Errorf("axes %+v are taken", axes)
		}
	}
	r := request(2, 8)
	r.Accelerator.MemBytes = 1e9
	if _, err := pl.Surface(ctx, r, planner.Axes{}); !errors.Is(err, planner.ErrInfeasible) {
		t.Errorf("nothing fits: %v", err)
	}
}
