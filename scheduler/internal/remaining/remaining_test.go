package remaining

import (
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/scheduler"
)

// survival is P(S > t | S > a) by definition, octave by octave.
func (c *curve) survival(a, t float64) float64 {
	p := 1.0
	for k := octave(a); ; k++ {
		to := unit * math.Ldexp(1, k+1)
		if t <= to || k == octaves-1 {
			return p * math.Pow(a/t, c[k])
		}
		p *= math.Pow(a/to, c[k])
		a = to
	}
}

// The cost equals the least over a fine grid of quanta, each by numeric integration.
func TestCostIsTheLeastOverAllQuanta(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := prior
		for k := range 8 {
			c[k] = rapid.Float64Range(0.05, 6).Draw(t, "alpha")
		}
		a := unit * rapid.Float64Range(1, 200).Draw(t, "attained")
		least := a / c[octave(a)] // the infinitesimal quantum
		const step = 1.002
		spent := 0.0
		for x := a; x < a*1000; x *= step {
			mid := c.survival(a, x*math.Sqrt(step))
			spent += mid * x * (step - 1)
			if ended := 1 - c.survival(a, x*step); ended > 0.01 { // below, integration is too coarse
				least = min(least, spent/ended)
			}
		}
		if got := c.cost(a); math.Abs(got/least-1) > 0.01 {
			t.Fatalf("attained %g, powers %v: cost %g, by definition %g", a, c[:8], got, least)
		}
	})
}

func job(model string, devices int, attained float64) scheduler.JobState {
	return scheduler.JobState{Job: &spec.Job{Model: spec.Model{Name: model}, Devices: devices}, Attained: attained}
}

// Without history the cost is the attained service, so the order is that of least attained service; and it is at least a
// minute of all devices.
func TestWithoutHistory(t *testing.T) {
	var h History
	j := job("m", 4, 0)
	for _, c := range []struct{ attained, want float64 }{{0, 240}, {100, 240}, {1000, 1000}, {1e9, 1e9}} {
		if got := h.Cost(j.Job, c.attained); math.Abs(got/c.want-1) > 1e-9 {
			t.Errorf("attained %g: cost %g, want %g", c.attained, got, c.want)
		}
	}
}

// All of 200 jobs on one device ended after an hour. A job that ran for 50 minutes is expected to end soon, one that ran
// for three hours is not; jobs of another size are judged by these too, as long as no more is known of them.
func TestLikeJobs(t *testing.T) {
	var h History
	for range 200 {
		h.add([]scheduler.JobState{job("m", 1, 3600)})
	}
	h.replace(nil)
	m := job("m", 1, 0)
	young, late, beyond := h.Cost(m.Job, 60), h.Cost(m.Job, 3000), h.Cost(m.Job, 10800)
	if !(late < young/2 && young < 3840 && beyond > young) {
		t.Errorf("costs %g after a minute, %g after 50, %g after three hours", young, late, beyond)
	}
	other := job("m", 8, 0)
	if got := h.Cost(other.Job, 3000); got >= 3000 {
		t.Errorf("a job on 8 devices costs %g, want less than without history", got)
	}
	for range 200 {
		h.add([]scheduler.JobState{job("n", 1, 1e6)})
	}
	h.replace(nil)
	n := job("n", 1, 0)
	if m, n := h.Cost(m.Job, 3000), h.Cost(n.Job, 3000); n < 10*m {
		t.Errorf("a model with long jobs costs %g, one with short jobs %g", n, m)
	}
}

// Jobs that have not ended count as survivors (Kaplan and Meier): with many that received much, a young job is expected
// to receive more.
func TestPresentJobsSurvive(t *testing.T) {
	var h History
	j := job("m", 1, 0)
	before := h.Cost(j.Job, 600)
	var running []*scheduler.JobState
	for range 20 {
		r := job("m", 1, 1e5)
		running = append(running, &r)
	}
	h.replace(running)
	if after := h.Cost(j.Job, 600); after < 5*before {
		t.Errorf("cost %g before and %g after 20 like jobs received 100,000", before, after)
	}
	h.replace(nil)
	if got := h.Cost(j.Job, 600); got != before {
		t.Errorf("cost %g after they left without an end, want %g", got, before)
	}
}

// A snapshot that is shown again at the same time counts once.
func TestObserveCountsAnInstantOnce(t *testing.T) {
	var once, again History
	running, m := job("m", 1, 1e4), job("m", 1, 0)
	show := func(h *History, at time.Duration) {
		s := scheduler.NewSnapshot(at, spec.Cluster{}, []*scheduler.JobState{&running})
		s.Ended = []scheduler.JobState{job("m", 1, 3600)}
		h.Observe(s)
	}
	for at := range time.Duration(3) {
		show(&once, at*time.Hour)
		show(&again, at*time.Hour)
		show(&again, at*time.Hour)
	}
	if n := again.ended[kind{}].ended[octave(3600)]; n != 3 {
		t.Errorf("%g jobs ended, want 3", n)
	}
	if a, b := once.Cost(m.Job, 600), again.Cost(m.Job, 600); a != b {
		t.Errorf("shown once each costs %g, shown twice %g", a, b)
	}
	if n := once.all[kind{}].entered[octave(6000)]; n != 1 {
		t.Errorf("%g jobs in the system received more than 6000, want 1", n)
	}
}
