package synthetic

import (
	"math"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pacer-ml/pacer/perfmodel/spec"
)

var twoModels = []spec.Model{{Name: "a", ParamCount: 1}, {Name: "b", ParamCount: 2}}

func mustWorkload(t testing.TB, o Options) []spec.Job {
	t.Helper()
	jobs, err := Workload(o)
	if err != nil {
		t.Fatal(err)
	}
	return jobs
}

func TestWorkloadIsReproducible(t *testing.T) {
	o := Options{Seed: 7, Jobs: 50, Models: twoModels, GuaranteedShare: 0.5, Tenants: 3}
	a := mustWorkload(t, o)
	b, _ := Workload(o)
	if d := cmp.Diff(a, b); d != "" {
		t.Errorf("the same options gave (-first +second):\n%s", d)
	}
	o.Jobs = 80
	more, _ := Workload(o)
	if d := cmp.Diff(a, more[:50]); d != "" {
		t.Errorf("more jobs moved the first ones:\n%s", d)
	}
	o.Tenants, o.GuaranteedShare = 0, 0
	fewer, _ := Workload(o)
	for i := range fewer {
		fewer[i].Tenant, more[i].Tenant = "", ""
		fewer[i].Guaranteed, more[i].Guaranteed = false, false
	}
	if d := cmp.Diff(fewer, more); d != "" {
		t.Errorf("tenants and classes moved other properties:\n%s", d)
	}
	o.Seed++
	if other, _ := Workload(o); cmp.Equal(fewer, other) {
		t.Error("another seed gave the same jobs")
	}
}

// Shares, rates and medians are the requested ones, within three standard errors of
// a sample of 20000.
func TestWorkloadStatistics(t *testing.T) {
	const n = 20000
	jobs, err := Workload(Options{Seed: 1, Jobs: n, PerHour: 60, Models: twoModels, MedianSec: 600, Sigma: 1, GuaranteedShare: 0.25})
	if err != nil || len(jobs) != n {
		t.Fatal(len(jobs), err)
	}
	count := map[string]float64{}
	var dur []float64
	for i, j := range jobs {
		if err := j.Validate(); err != nil {
			t.Fatal(err)
		}
		if i > 0 && j.Submit < jobs[i-1].Submit {
			t.Fatalf("%s arrives before the job ahead of it", j.ID)
		}
		count[j.Model.Name]++
		if j.Guaranteed {
			count["guaranteed"]++
		}
		if j.Devices == 8 {
			count["8"]++
		}
		dur = append(dur, j.Duration.Seconds())
	}
	for name, p := range map[string]float64{"a": 0.5, "guaranteed": 0.25, "8": 0.15} {
		if sd := math.Sqrt(p * (1 - p) / n); math.Abs(count[name]/n-p) > 3*sd {
			t.Errorf("share of %s is %g, want %g", name, count[name]/n, p)
		}
	}
	if rate := n / jobs[n-1].Submit.Hours(); math.Abs(rate/60-1) > 3/math.Sqrt(n) {
		t.Errorf("%g arrivals an hour, want 60", rate)
	}
	slices.Sort(dur)
	// the standard error of the median of the logarithm is sigma·sqrt(pi/2n)
	if e := math.Log(dur[n/2] / 600); math.Abs(e) > 3*math.Sqrt(math.Pi/(2*n)) {
		t.Errorf("median run time %g s, want 600", dur[n/2])
	}
}

// A model that needs four devices gets them; work is in steps of its plan.
func TestWorkloadPlans(t *testing.T) {
	jobs := mustWorkload(t, Options{Seed: 3, Models: twoModels, Plan: func(m spec.Model, n int) (spec.Plan, float64, bool) {
		return spec.Plan{DP: n}, 0.5, m.Name == "a" || n >= 4
	}})
	small := false
	for _, j := range jobs {
		if j.Model.Name == "b" && j.Devices < 4 {
			t.Errorf("%s: b on %d devices", j.ID, j.Devices)
		}
		small = small || j.Model.Name == "a" && j.Devices < 4
		if j.Plan.Devices() != j.Devices || j.Duration != time.Duration(j.Steps*0.5*float64(time.Second)) {
			t.Errorf("%+v", j)
		}
	}
	if !small {
		t.Error("no small job of a")
	}
	none, err := Workload(Options{Models: twoModels, Plan: func(spec.Model, int) (spec.Plan, float64, bool) { return spec.Plan{}, 0, false }})
	if err != nil || len(none) != 0 {
		t.Errorf("%d jobs that fit nowhere, %v", len(none), err)
	}
}

// Half of the run times are above the median of every distribution, and a Pareto tail falls as declared, within three
// standard errors.
func TestDurations(t *testing.T) {
	const n = 20000
	above := func(o Options, sec float64) (share float64) {
		o.Seed, o.Jobs = 9, n
		jobs := mustWorkload(t, o)
		for _, j := range jobs {
			if j.Duration.Seconds() > sec {
				share += 1. / n
			}
		}
		return share
	}
	for name, c := range map[string]struct {
		o         Options
		sec, want float64
	}{
		"log-normal": {Options{MedianSec: 900}, 900, 0.5},
		"uniform":    {Options{MedianSec: 900, Durations: Uniform}, 1350, 0.25},
		"pareto":     {Options{MedianSec: 900, Durations: Pareto}, 900, 0.5},
		"tail":       {Options{MedianSec: 900, Durations: Pareto, Alpha: 2}, 9000, 0.005},
		"resampled":  {Options{Seconds: []float64{10, 900, 1000}}, 900, 0.5},
	} {
		if got := above(c.o, c.sec); math.Abs(got-c.want) > 3*math.Sqrt(c.want*(1-c.want)/n) {
			t.Errorf("%s: %g of the run times are above %g s, want %g", name, got, c.sec, c.want)
		}
	}
}

// A time scale multiplies submissions, run times and steps, and changes nothing else.
func TestTimeScale(t *testing.T) {
	o := Options{Seed: 4, Jobs: 50, Models: twoModels, Plan: func(_ spec.Model, n int) (spec.Plan, float64, bool) { return spec.Plan{DP: n}, 0.5, true }}
	if err := o.SetLoad(1, 8); err != nil {
		t.Fatal(err)
	}
	jobs := mustWorkload(t, o)
	o.TimeScale = 10
	scaled := mustWorkload(t, o)
	for i, j := range scaled {
		if j.Steps != 10*jobs[i].Steps || math.Abs((j.Submit-10*jobs[i].Submit).Seconds()) > 0.01 || math.Abs((j.Duration-10*jobs[i].Duration).Seconds()) > 0.01 {
			t.Fatalf("%+v is not ten times %+v", j, jobs[i])
		}
		j.Steps, j.Submit, j.Duration = jobs[i].Steps, jobs[i].Submit, jobs[i].Duration
		if d := cmp.Diff(jobs[i], j); d != "" {
			t.Fatal(d)
		}
	}
}

// Models that do not fit a size are not drawn for it, unless none fits.
func TestFits(t *testing.T) {
	jobs := mustWorkload(t, Options{Seed: 2, Models: twoModels, AtOnce: true, Fits: func(m spec.Model, devices int) bool { return devices < 16 && (m.Name == "a") == (devices < 4) }})
	for _, j := range jobs {
		if j.Submit != 0 || j.Devices < 16 && (j.Model.Name == "a") != (j.Devices < 4) {
			t.Errorf("%s on %d devices at %v", j.Model.Name, j.Devices, j.Submit)
		}
	}
}

func TestOptionsValidate(t *testing.T) {
	for name, o := range map[string]Options{
		"no models":  {Plan: func(spec.Model, int) (spec.Plan, float64, bool) { return spec.Plan{}, 0, false }},
		"bursts":     {Burst: Burst{Factor: 5, Share: 0.3, Sec: 60}},
		"no burst":   {Burst: Burst{Factor: 5}},
		"hours":      {Hours: []float64{1, -1}},
		"no hours":   {Hours: []float64{0, 0}},
		"NaN hours":  {Hours: []float64{math.NaN()}},
		"quantiles":  {Sizes: []Size{{Devices: 1, Share: 1, Seconds: []float64{2, 1}}}},
		"quantile":   {Sizes: []Size{{Devices: 1, Share: 1, Seconds: []float64{2}}}},
		"jobs":       {Models: twoModels, Jobs: -1},
		"rate":       {Models: twoModels, PerHour: -1},
		"sigma":      {Models: twoModels, Sigma: math.NaN()},
		"share":      {Models: twoModels, GuaranteedShare: 2},
		"sizes":      {Models: twoModels, Sizes: []Size{{Devices: 4, Share: 1}, {Devices: 2, Share: 1}}},
		"size share": {Models: twoModels, Sizes: []Size{{Devices: 4}}},
		"too long":   {Models: twoModels, Jobs: 1 << 20, PerHour: 1e-6},
		"tenants":    {Models: twoModels, Tenants: -1},
	} {
		if jobs, err := Workload(o); err == nil {
			t.Errorf("%s: %d jobs and no error", name, len(jobs))
		}
	}
}
