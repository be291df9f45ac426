package study

import (
	"math"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/scheduler"
	"github.com/pacer-ml/pacer/scheduler/schedulertest"
	"github.com/pacer-ml/pacer/scheduler/sim"
)

// someJobs are n jobs of one device and 100 s, one every 10 s: load 2.5 on four
// devices.
func someJobs(n int) []spec.Job {
	var out []spec.Job
	for i := range n {
		out = append(out, spec.Job{ID: spec.JobID(string(rune('a'+i%26)) + time.Duration(i).String()), Devices: 1,
			Submit: time.Minute + time.Duration(i)*10*time.Second, Duration: 100 * time.Second, Deadline: time.Hour + time.Duration(i)*10*time.Second})
	}
	return out
}

func draw(t *testing.T, sc Scenario, jobs []spec.Job) []spec.Job {
	t.Helper()
	out, err := sc.Jobs(t.Context(), jobs, schedulertest.Nodes(1, 4), sim.Durations{})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestScenarioLoad(t *testing.T) {
	jobs := someJobs(50)
	before := slices.Clone(jobs)
	out := draw(t, Scenario{Seed: 1, Load: 0.5}, jobs)
	if diff := cmp.Diff(before, jobs); diff != "" {
		t.Errorf("the jobs given were changed:\n%s", diff)
	}
	for i, j := range out {
		if want := time.Minute + time.Duration(i)*50*time.Second; j.Submit != want || j.Deadline-j.Submit != time.Hour-time.Minute {
			t.Fatalf("job %d is submitted at %v, due at %v; want %v and 59 m later", i, j.Submit, j.Deadline, want)
		}
	}
	if diff := cmp.Diff(before, draw(t, Scenario{Seed: 5, Arrivals: Recorded}, jobs)); diff != "" {
		t.Errorf("recorded arrivals moved:\n%s", diff)
	}
	for name, few := range map[string][]spec.Job{"one job": jobs[:1], "one instant": {jobs[0], {ID: "x", Submit: jobs[0].Submit, Devices: 1, Duration: 1}}} {
		if _, err := (Scenario{Load: 0.5}).Jobs(t.Context(), few, schedulertest.Nodes(1, 4), sim.Durations{}); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	if _, err := (Scenario{Load: 1e-9}).Jobs(t.Context(), jobs, schedulertest.Nodes(1, 4), sim.Durations{}); err == nil {
		t.Error("arrivals in thousands of years: no error")
	}
}

// TestScenarioPoisson checks that a seed has one process with the workload's rate, and
// that a load stretches it without drawing it again.
func TestScenarioPoisson(t *testing.T) {
	jobs := someJobs(4000)
	a, b := draw(t, Scenario{Seed: 3, Arrivals: Poisson}, jobs), draw(t, Scenario{Seed: 3, Arrivals: Poisson}, jobs)
	if diff := cmp.Diff(a, b); diff != "" {
		t.Fatal(diff)
	}
	if slices.EqualFunc(a, draw(t, Scenario{Seed: 4, Arrivals: Poisson}, jobs), func(x, y spec.Job) bool { return x.Submit == y.Submit }) {
		t.Error("two seeds, one process")
	}
	var squares float64
	for i := 1; i < len(a); i++ {
		gap := (a[i].Submit - a[i-1].Submit).Seconds()
		squares += gap * gap
	}
	// Exponential gaps of mean 10 s: the mean square is 200.
	if mean, square := between(a)/1e9, squares/float64(len(a)-1); math.Abs(mean-10) > 0.6 || math.Abs(square-200) > 30 {
		t.Errorf("gaps of mean %g s, mean square %g; want 10 and 200", mean, square)
	}
	half := draw(t, Scenario{Seed: 3, Arrivals: Poisson, Load: 1.25}, jobs)
	full := draw(t, Scenario{Seed: 3, Arrivals: Poisson, Load: 2.5}, jobs)
	for i := range half {
		if got, want := half[i].Submit-half[0].Submit, 2*(full[i].Submit-full[0].Submit); (got - want).Abs() > 2 {
			t.Fatalf("job %d: %v after the first at half the load, %v at all of it", i, got, want/2)
		}
	}
}

// TestNoise checks that factors have expectation 1, depend on seed and job, and change
// rates only.
func TestNoise(t *testing.T) {
	sc := Scenario{Seed: 9, Noise: 0.4}
	truth := sc.Truth(sim.Durations{})
	g := scheduler.Grant{Slots: []scheduler.Slot{{Devices: 1}}}
	var sum, squares float64
	jobs := someJobs(5000)
	for i := range jobs {
		rate, err := truth.StepsPerSec(t.Context(), &jobs[i], &g, nil)
		if err != nil {
			t.Fatal(err)
		}
		steps, err := truth.Steps(t.Context(), &jobs[i])
		if err != nil || steps != 100 {
			t.Fatalf("%g steps, error %v", steps, err)
		}
		sum += 1 / rate
		squares += math.Log(rate) * math.Log(rate)
		if again, _ := sc.Truth(sim.Durations{}).StepsPerSec(t.Context(), &jobs[i], &g, nil); again != rate {
			t.Fatal("two calls return different rates")
		}
	}
	n := float64(len(jobs))
	if mean, sd := sum/n, math.Sqrt(squares/n-0.08*0.08); math.Abs(mean-1) > 0.02 || math.Abs(sd-0.4) > 0.02 {
		t.Errorf("factors of mean %g, deviation %g of the logarithm; want 1 and 0.4", mean, sd)
	}
	if other := (Scenario{Seed: 10, Noise: 0.4}); other.factor("a") == sc.factor("a") || sc.factor("a") == sc.factor("b") {
		t.Error("two seeds or two jobs have one factor")
	}
}
