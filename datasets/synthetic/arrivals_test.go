package synthetic

import (
	"math"
	"slices"
	"testing"
	"time"

	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// Arrivals have the requested proportions by hour of the day and the requested mean
// rate.
func TestHours(t *testing.T) {
	const n = 40000
	hours := []float64{3, 1, 0, 4} // six hours each, 2 on average
	jobs := mustWorkload(t, Options{Seed: 5, Jobs: n, PerHour: 50, Hours: hours})
	var got [4]float64
	for _, j := range jobs {
		got[int(math.Mod(j.Submit.Hours(), 24)/6)]++
	}
	for i, h := range hours {
		p := h / 8
		if sd := math.Sqrt(n * p * (1 - p)); math.Abs(got[i]-n*p) > 4*sd {
			t.Errorf("part %d has %g jobs, want %g ± %g", i, got[i], n*p, sd)
		}
	}
	if r := n / jobs[n-1].Submit.Hours(); math.Abs(r/50-1) > 0.02 {
		t.Errorf("%g jobs an hour, want 50", r)
	}
}

// Bursts keep the mean rate, and the dispersion of counts is that of fitBurst's
// formula.
func TestBursts(t *testing.T) {
	const n = 200000
	o := Options{Seed: 5, Jobs: n, PerHour: 60, Burst: DefaultBurst}
	jobs := mustWorkload(t, o)
	at := make([]float64, n)
	for i, j := range jobs {
		at[i] = j.Submit.Seconds()
	}
	if r := n / at[n-1] * 3600; math.Abs(r/60-1) > 0.05 {
		t.Errorf("%g jobs an hour, want 60", r)
	}
	o.Hours = []float64{1}
	b := DefaultBurst
	tau, variance := b.Sec*(1-b.Share), b.Share/(1-b.Share)*(b.Factor-1)*(b.Factor-1)
	for _, width := range []float64{fitWindow, fitWide} {
		want := 1 + 2*60./3600*variance*tau*saturation(width/tau)
		if got := dispersion(at, at[n-1], width, o); math.Abs(got/want-1) > 0.1 {
			t.Errorf("dispersion %g in %g s, want %g", got, width, want)
		}
	}
}

// More jobs, bursts and hours do not change the sizes and run times of jobs.
func TestArrivalsMoveNothingElse(t *testing.T) {
	a := mustWorkload(t, Options{Seed: 2, Jobs: 200})
	b := mustWorkload(t, Options{Seed: 2, Jobs: 300, Hours: DefaultHours(), Burst: DefaultBurst})
	for i := range a {
		if a[i].Devices != b[i].Devices || a[i].Duration != b[i].Duration || a[i].ID != b[i].ID {
			t.Fatalf("%+v became %+v", a[i], b[i])
		}
	}
}

// Four in five run times are 60 s x 10^U(1.5, 3), the others 60 s x 10^U(3, 4).
func TestBloxSizes(t *testing.T) {
	const n = 20000
	jobs := mustWorkload(t, Options{Seed: 1, Jobs: n, Sizes: BloxSizes()})
	var short, low, high, eight float64
	for _, j := range jobs {
		e := math.Log10(j.Duration.Seconds() / 60)
		switch {
		case e < 1.49 || e > 4.01:
			t.Fatalf("a run time of %v", j.Duration)
		case e < 2.25:
			low++
			short++
		case e < 3:
			short++
		case e > 3.5:
			high++
		}
		if j.Devices == 8 {
			eight++
		}
	}
	for name, c := range map[string]struct{ got, p float64 }{
		"short": {short, 0.8}, "lower half of these": {low, 0.4}, "upper half of the others": {high, 0.1}, "eight devices": {eight, 0.05},
	} {
		if sd := math.Sqrt(n * c.p * (1 - c.p)); math.Abs(c.got-n*c.p) > 4*sd {
			t.Errorf("%s: %g jobs, want %g ± %g", name, c.got, n*c.p, sd)
		}
	}
}

// Fit recovers the options of synthetic jobs, and jobs drawn with the fitted options
// have the same dispersion.
func TestFitRecovers(t *testing.T) {
	made := Options{Seed: 9, Jobs: 60000, PerHour: 120, Hours: DefaultHours(), Burst: Burst{Factor: 6, Share: 0.15, Sec: 2400},
		Sizes: []Size{{Devices: 1, Share: 0.75}, {Devices: 8, Share: 0.25, Seconds: []float64{10, 1000}}}, MedianSec: 600, Sigma: 1}
	jobs := mustWorkload(t, made)
	o, err := Fit(jobs)
	if err != nil {
		t.Fatal(err)
	}
	if math.Abs(o.PerHour/120-1) > 0.05 || o.Jobs != len(jobs) || len(o.Sizes) != 2 || math.Abs(o.Sizes[1].Share-0.25) > 0.01 {
		t.Errorf("%g jobs an hour, %d of them, sizes %v", o.PerHour, o.Jobs, o.Sizes)
	}
	if m := o.Sizes[0].Seconds[50]; math.Abs(math.Log(m/600)) > 0.05 {
		t.Errorf("median %g s on one device, want 600", m)
	}
	if m := o.Sizes[1].Seconds[50]; math.Abs(math.Log(m/100)) > 0.1 {
		t.Errorf("median %g s on eight devices, want 100", m)
	}
	if peak := slices.Index(o.Hours, slices.Max(o.Hours)); peak < 11 || peak > 18 {
		t.Errorf("most jobs come at %d h, want about 15 h: %v", peak, o.Hours)
	}
	o.Seed = 10
	again := mustWorkload(t, o)
	for _, width := range []float64{fitWindow, fitWide} {
		a, b := crowding(jobs, width, o), crowding(again, width, o)
		if math.Abs(math.Log(b/a)) > 0.3 {
			t.Errorf("in %g s the counts' dispersion is %g, of jobs like them %g", width, a, b)
		}
	}
}

func crowding(jobs []spec.Job, width float64, o Options) float64 {
	var at []float64
	for _, j := range jobs {
		at = append(at, j.Submit.Seconds())
	}
	return dispersion(at, at[len(at)-1], width, o)
}

// Fit finds no bursts in a Poisson process, and no hours in a short trace.
func TestFitPlain(t *testing.T) {
	jobs := mustWorkload(t, Options{Seed: 4, Jobs: 20000, PerHour: 100})
	o, err := Fit(jobs)
	if err != nil || o.Burst != (Burst{}) || len(o.Hours) != 24 || slices.Max(o.Hours)/slices.Min(o.Hours) > 1.3 {
		t.Errorf("%+v, %v", o, err)
	}
	if o, err = Fit(jobs[:1000]); err != nil || o.Hours != nil || o.Burst != (Burst{}) {
		t.Errorf("%+v, %v", o, err)
	}
}

func TestFitRefuses(t *testing.T) {
	hour := func(n int) spec.Job {
		return spec.Job{ID: "x", Submit: time.Duration(n) * time.Hour, Devices: 1, Duration: time.Minute}
	}
	endless := hour(1)
	endless.Duration = 0
	for name, jobs := range map[string][]spec.Job{
		"none": nil, "one": {hour(0)}, "at once": {hour(1), hour(1)}, "out of order": {hour(2), hour(1)}, "no time": {hour(0), endless},
	} {
		if o, err := Fit(jobs); err == nil {
			t.Errorf("%s: %+v", name, o)
		}
	}
}
