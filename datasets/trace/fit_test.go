package trace

import (
	"math"
	"slices"
	"testing"

	"github.com/pacer-ml/pacer/datasets/synthetic"
	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// Jobs fitted to the first half of Philly's have its sizes and run times. Their
// distance from the second half is logged, as the error outside the sample.
func TestFitPhilly(t *testing.T) {
	jobs := openShared(t, "data/pollux/traces/philly.csv", "").Jobs
	half, later := jobs[:len(jobs)/2], jobs[len(jobs)/2:]
	o, err := synthetic.Fit(half)
	if err != nil {
		t.Fatal(err)
	}
	o.Seed = 1
	made, err := synthetic.Workload(o)
	if err != nil {
		t.Fatal(err)
	}
	// two samples of 41123 from one distribution differ by 0.0095 once in twenty times
	if d := farApart(half, made); d > 0.0125 {
		t.Errorf("run times are %g from those fitted to", d)
	}
	t.Logf("run times: %.4f from those fitted to; those of the second half of the trace are %.4f from it", farApart(half, made), farApart(later, made))
	t.Logf("%.1f jobs an hour, bursts %+v", o.PerHour, o.Burst)
	fitted, got := devicesOf(Workload{Jobs: half}), devicesOf(Workload{Jobs: made})
	for n, count := range fitted {
		if sd := math.Sqrt(float64(count)); math.Abs(float64(got[n]-count)) > 4*sd {
			t.Errorf("%d jobs of %d devices, fitted to %d", got[n], n, count)
		}
	}
	if span, want := made[len(made)-1].Submit, half[len(half)-1].Submit; math.Abs(math.Log(span.Hours()/want.Hours())) > 0.2 {
		t.Errorf("submitted over %v, fitted to %v", span, want)
	}
}

// farApart is the Kolmogorov-Smirnov distance of the jobs' run times.
func farApart(a, b []spec.Job) float64 {
	x, y := runTimes(a), runTimes(b)
	far := 0.0
	for i, j := 0, 0; i < len(x) && j < len(y); {
		v := min(x[i], y[j])
		for i < len(x) && x[i] == v {
			i++
		}
		for j < len(y) && y[j] == v {
			j++
		}
		far = max(far, math.Abs(float64(i)/float64(len(x))-float64(j)/float64(len(y))))
	}
	return far
}

// runTimes returns sorted run times in whole seconds, the resolution of the trace.
func runTimes(jobs []spec.Job) []float64 {
	var out []float64
	for _, j := range jobs {
		out = append(out, math.Round(j.Duration.Seconds()))
	}
	slices.Sort(out)
	return out
}
