package synthetic

import (
	"math"
	"testing"

	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// The work of 100,000 jobs is the requested load, within four standard errors.
func TestSetLoad(t *testing.T) {
	for name, o := range map[string]Options{
		"log-normal":    {},
		"cut off":       {Sigma: 2, MaxSec: 5000, MedianSec: 3},
		"blox":          {Sizes: BloxSizes()},
		"pareto":        {Durations: Pareto, Alpha: 2.5, MedianSec: 100, MaxSec: 5000},
		"short pareto":  {Durations: Pareto, MedianSec: 1.2, MaxSec: 50},
		"uniform":       {Durations: Uniform, MedianSec: 600},
		"short uniform": {Durations: Uniform, MedianSec: 3, MaxSec: 5},
		"resampled":     {Seconds: []float64{10, 100, 5000}},
		"fixed and not": {Sizes: []Size{{Devices: 1, Share: 3, Seconds: []float64{100, 100}}, {Devices: 8, Share: 1}}},
	} {
		o.Seed, o.Jobs = 3, 100_000
		if err := o.SetLoad(0.7, 500); err != nil {
			t.Fatal(err)
		}
		jobs := mustWorkload(t, o)
		var sum, squares float64
		for _, j := range jobs {
			w := float64(j.Devices) * j.Duration.Seconds()
			sum, squares = sum+w, squares+w*w
		}
		n := float64(len(jobs))
		mean := sum / n
		relative := math.Sqrt((squares/n-mean*mean)/n)/mean + 1/math.Sqrt(n) // of work, of arrivals
		if load := sum / jobs[len(jobs)-1].Submit.Seconds() / 500; math.Abs(load/0.7-1) > 4*relative {
			t.Errorf("%s: load %g, want 0.7 within %.2g", name, load, 4*relative)
		}
	}
}

func TestSetLoadRefuses(t *testing.T) {
	for _, c := range [][2]float64{{0, 1}, {-1, 1}, {1, 0}, {math.NaN(), 1}, {1, math.Inf(1)}} {
		if o := (Options{}); o.SetLoad(c[0], c[1]) == nil {
			t.Errorf("load %g on %g devices gives %g jobs an hour", c[0], c[1], o.PerHour)
		}
	}
	if o := (Options{AtOnce: true}); o.SetLoad(1, 1) == nil {
		t.Error("a load is set for jobs that arrive at once")
	}
}

// Jobs with plans get the load of the jobs drawn, without those that fit no size: the arrival rate follows from their
// work. The tolerance is four standard errors of the arrivals.
func TestSetLoadOfJobsWithPlans(t *testing.T) {
	const n = 10_000
	o := Options{Seed: 5, Jobs: n, Models: twoModels, Plan: func(m spec.Model, devices int) (spec.Plan, float64, bool) {
		return spec.Plan{DP: devices}, 0.5, m.Name == "a" || devices == 4
	}}
	if err := o.SetLoad(0.8, 64); err != nil {
		t.Fatal(err)
	}
	jobs := mustWorkload(t, o)
	if len(jobs) > 0.95*n || len(jobs) < n/2 {
		t.Fatalf("%d of %d jobs fit", len(jobs), n)
	}
	work := 0.0
	for _, j := range jobs {
		work += float64(j.Devices) * j.Duration.Seconds()
	}
	if load := work / jobs[len(jobs)-1].Submit.Seconds() / 64; math.Abs(load/0.8-1) > 4/math.Sqrt(n) {
		t.Errorf("load %g, want 0.8", load)
	}
}

// A load uses the sizes of the same text, in any order.
func TestLoadOption(t *testing.T) {
	var want, got Options
	want.Sizes, want.Jobs = BloxSizes(), 10
	if err := want.SetLoad(0.9, 512); err != nil {
		t.Fatal(err)
	}
	if err := got.Set("load=0.9x512,jobs=10,sizes=blox"); err != nil || got.PerHour != want.PerHour {
		t.Errorf("%g jobs an hour, want %g, %v", got.PerHour, want.PerHour, err)
	}
	for _, bad := range []string{"load=", "load=0.9", "load=0.9x", "load=0x512"} {
		if o := (Options{}); o.Set(bad) == nil {
			t.Errorf("%s gives %g jobs an hour", bad, o.PerHour)
		}
	}
}
