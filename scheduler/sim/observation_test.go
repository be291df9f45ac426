package sim_test

import (
	"context"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/scheduler"
	"github.com/pacer-ml/pacer/scheduler/sim"
)

// listener records its input.
type listener struct {
	scheduler.Oracle
	at   []time.Duration
	seen []spec.Measurement
}

func (l *listener) Learn(_ context.Context, now time.Duration, seen []spec.Measurement) error {
	for _, m := range seen {
		l.at, l.seen = append(l.at, now), append(l.seen, m)
	}
	return nil
}

func (l *listener) Revision(spec.Key) int { return 0 }

func (l *listener) Learned() scheduler.Learned { return scheduler.Learned{Seen: len(l.seen)} }

// watched is config for jobs on 4 devices, with names that measurements need.
func watched(l scheduler.Learner, after time.Duration, sigma float64, seed uint64, jobs ...spec.Job) sim.Config {
	for i := range jobs {
		jobs[i].Model.Name, jobs[i].Plan = "m", spec.Plan{DP: 4}.Normal()
	}
	c := config(firstFit, jobs...)
	c.Cluster.Groups[0].Accelerator.Name = "x"
	c.Observations = &sim.Observations{Learner: l, After: after, Sigma: sigma, Seed: seed}
	return c
}

// Job a trains from 10 s on and is observed at 40 s, when b arrives. Job b ends before it has
// trained for 20 s, so it is never observed. Job d is observed at the next event.
func TestObservations(t *testing.T) {
	l := &listener{}
	r := mustRun(t, watched(l, 20*s, 0, 0, job("a", 0, 4, 2000), job("b", 40*s, 4, 4), job("d", 60*s, 4, 400)))
	if r.Learned == nil || r.Learned.Seen != 2 {
		t.Errorf("learnt %+v, want 2 observations", r.Learned)
	}
	got := map[string]time.Duration{}
	for i, m := range l.seen {
		if err := m.Validate(); err != nil {
			t.Error(err)
		}
		if sec := m.MedianStepSec(); math.Abs(sec-0.25) > 1e-9 {
			t.Errorf("job %s: %g s a step, want 0.25", m.Origin, sec)
		}
		if _, twice := got[m.Origin]; twice {
			t.Errorf("job %s is seen twice", m.Origin)
		}
		got[m.Origin] = l.at[i]
	}
	if len(got) != 2 || got["a"] != 40*time.Second || got["d"] < 80*time.Second {
		t.Errorf("seen at %v", got)
	}
}

// Observed times have factors that depend on seed and job, with mean 1.
func TestObservationsNoise(t *testing.T) {
	see := func(seed uint64) map[string]float64 {
		l := &listener{}
		var jobs []spec.Job
		for i := range 400 {
			jobs = append(jobs, job(spec.JobID(fmt.Sprint(i)), time.Duration(i)*s, 4, 400))
		}
		mustRun(t, watched(l, 0, 0.3, seed, jobs...))
		out := map[string]float64{}
		for _, m := range l.seen {
			out[m.Origin] = m.MedianStepSec()
		}
		return out
	}
	one, again, other := see(1), see(1), see(2)
	mean, equal := 0.0, 0
	for id, sec := range one {
		mean += sec / 0.25 / float64(len(one))
		if again[id] != sec {
			t.Errorf("job %s: %g s, again %g", id, sec, again[id])
		}
		if other[id] == sec {
			equal++
		}
	}
	if len(one) < 390 || math.Abs(mean-1) > 4*0.3/math.Sqrt(400) || equal > 0 {
		t.Errorf("%d jobs seen, %g of the true time on average, %d the same with another seed", len(one), mean, equal)
	}
}

func TestObservationsValidate(t *testing.T) {
	for want, s := range map[string]sim.Observations{
		"without a learner": {},
		"after -1s":         {Learner: &listener{}, After: -time.Second},
		"sigma of NaN":      {Learner: &listener{}, Sigma: math.NaN()},
		"sigma of 2":        {Learner: &listener{}, Sigma: 2},
	} {
		c := config(firstFit)
		c.Observations = &s
		if err := c.Validate(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want one that says %q", err, want)
		}
	}
	c := config(firstFit)
	c.Observations = &sim.Observations{Learner: &listener{}}
	c.Round, c.Lockstep = time.Minute, &sim.Lockstep{}
	if err := c.Validate(); err == nil || !strings.Contains(err.Error(), "barrier") {
		t.Errorf("with a barrier: error %v", err)
	}
}
