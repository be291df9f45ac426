package synthetic

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestSet(t *testing.T) {
	var o Options
	if err := o.Set("jobs=50,per-hour=7.5,arrivals=bursty+diurnal,sizes=1x0.7+8x0.3,median-s=60,sigma=0.5,max-s=600,tenants=3"); err != nil {
		t.Fatal(err)
	}
	want := Options{Jobs: 50, PerHour: 7.5, Burst: DefaultBurst, Hours: DefaultHours(), Sizes: []Size{{Devices: 1, Share: 0.7}, {Devices: 8, Share: 0.3}},
		MedianSec: 60, Sigma: 0.5, MaxSec: 600, Tenants: 3}
	if d := cmp.Diff(want, o); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	if err := o.Set("arrivals=poisson,sizes=blox,jobs=60"); err != nil || o.Hours != nil || o.Burst != (Burst{}) || len(o.Sizes) != 4 || o.Jobs != 60 || o.PerHour != 7.5 {
		t.Errorf("%+v, %v", o, err)
	}
	want = Options{Jobs: 9, AtOnce: true, Sizes: LargeSizes, Durations: Pareto, Alpha: 1.2, GuaranteedShare: 0.3, TimeScale: 0.1}
	o = Options{Hours: DefaultHours()}
	if err := o.Set("jobs=9,arrivals=once,sizes=large,durations=pareto,alpha=1.2,guaranteed=0.3,time-scale=0.1"); err != nil || !cmp.Equal(o, want) {
		t.Errorf("%+v, %v", o, err)
	}
	o = Options{Seconds: []float64{10, 20, 400}}
	if err := o.Set("median-s=60,max-s=900"); err != nil || !cmp.Equal(o.Seconds, []float64{30, 60, 900}) {
		t.Errorf("resampled times of median 20 s with median 60 s and maximum 900 s: %v, %v", o.Seconds, err)
	}
	if err := new(Options).Set(""); err != nil {
		t.Error(err)
	}
	for text, want := range map[string]string{
		"job=5":                    "job=5: want one of jobs",
		"jobs=5,jobs=6":            "jobs is given twice",
		"load=1x4,load=2x4":        "load is given twice",
		"jobs=many":                "jobs=many: ",
		"jobs":                     "jobs: ",
		"sizes=4":                  `"4" is not DEVICESxSHARE`,
		"sizes=2x1+1x1":            "sizes must ascend",
		"arrivals=sometimes":       `"sometimes" is not poisson, bursty, diurnal or once`,
		"per-hour=-3":              "must be positive",
		"sigma=NaN":                "must be positive",
		"durations=long":           `run times "long" are not log-normal, pareto or uniform`,
		"alpha=1":                  "tail exponent 1 must be above 1",
		"time-scale=0.0001":        "not in 0.001..1000",
		"arrivals=once,load=0.9x8": "arrive at once have no load",
		"jobs=99999999":            "99999999 jobs, want 1..",
		"jobs=0":                   "jobs=0: must be positive",
		"sigma=0":                  "sigma=0: must be positive",
		"deadline=0-0":             `"0-0" is not MIN-MAX`,
		"per-hour=5,load=1x4":      "load and per-hour both say",
	} {
		if err := new(Options).Set(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want an error with %q", text, err, want)
		}
	}
}

// Deadlines are drawn between the bounds, in run times, and move no other draw.
func TestDeadlines(t *testing.T) {
	var plain, o Options
	if err := o.Set("jobs=200,deadline=0.5-1.5"); err != nil {
		t.Fatal(err)
	}
	plain.Jobs = 200
	with := mustWorkload(t, o)
	without := mustWorkload(t, plain)
	sum := 0.0
	for i, j := range with {
		x := (j.Deadline - j.Submit).Seconds() / j.Duration.Seconds()
		if sum += x; x < 0.499 || x > 1.501 {
			t.Errorf("job %s has %g run times", j.ID, x)
		}
		if j.Deadline = 0; j != without[i] {
			t.Errorf("job %s differs in more than its deadline", j.ID)
		}
	}
	if mean := sum / 200; mean < 0.9 || mean > 1.1 {
		t.Errorf("mean %g run times, want about 1", mean)
	}
	for _, bad := range []string{"deadline=1", "deadline=2-1", "deadline=0-1", "deadline=a-b", "deadline=1-NaN"} {
		if err := new(Options).Set(bad); err == nil {
			t.Errorf("%s is accepted", bad)
		}
	}
}
