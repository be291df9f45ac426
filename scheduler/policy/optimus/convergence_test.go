package optimus

import (
	"context"
	"math"
	"testing"
	"time"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/scheduler"
	"github.com/pacer-ml/pacer/scheduler/loss"
	"github.com/pacer-ml/pacer/scheduler/policy"
	"github.com/pacer-ml/pacer/scheduler/schedulertest"
)

// madeLosses are synthetic losses with almost no noise.
func madeLosses(steps float64) scheduler.LossLog {
	return &loss.Synthetic{Steps: func(context.Context, *spec.Job) (float64, error) { return steps, nil }, Sigma: 0.001, Seed: 1}
}

// Remaining steps are estimated from the losses once there are enough; before that by the
// mean of finished jobs of the kind, else 20 logging intervals.
func TestConvergence(t *testing.T) {
	log := madeLosses(4000)
	c := newConvergence(log)
	j := &scheduler.JobState{Job: &spec.Job{ID: "a", Model: spec.Model{Name: "m"}}}
	l, _ := log.Log(t.Context(), j)
	if left, young := c.left(t.Context(), j); left != 20*l.Every || !young {
		t.Errorf("of a new job %g steps are left, young %v, want 20 stretches of %g", left, young, l.Every)
	}
	j.Done = 2000
	if left, young := c.left(t.Context(), j); math.Abs(left/2000-1) > 0.3 || young {
		t.Errorf("at half of the way %g of 2000 steps are left, young %v", left, young)
	}
	j.Done = 3999
	if left, _ := c.left(t.Context(), j); left < l.Every || left > 5*l.Every {
		t.Errorf("at the end %g steps are left, want about a stretch of %g", left, l.Every)
	}
	s := &scheduler.Snapshot{Now: time.Second, Ended: []scheduler.JobState{{Job: j.Job, Done: 4000}, {Job: &spec.Job{ID: "b", Model: spec.Model{Name: "m"}}, Done: 2000}}}
	for range 2 { // asked twice it learns once
		c.observe(s)
	}
	if len(c.fits) != 0 {
		t.Errorf("%d fits of jobs that are done are kept", len(c.fits))
	}
	other := &scheduler.JobState{Job: &spec.Job{ID: "c", Model: spec.Model{Name: "m"}}, Order: 2}
	if left, young := c.left(t.Context(), other); left != 3000 || !young {
		t.Errorf("of the next of the kind %g steps are left, young %v, want 3000", left, young)
	}
}

// Without losses as many remaining steps are assumed as were done.
func TestConvergenceWithoutLog(t *testing.T) {
	c := newConvergence(nil)
	for done, want := range map[float64]float64{0: 1, 500: 500} {
		j := &scheduler.JobState{Job: &spec.Job{ID: "a"}, Done: done}
		if left, young := c.left(t.Context(), j); left != want || !young {
			t.Errorf("after %g steps %g are left, want %g", done, left, want)
		}
	}
}

// The dominant share of a device is that of its CPUs or host memory if larger.
func TestDominantShare(t *testing.T) {
	g := &spec.NodeGroup{Count: 2, Devices: 4, CPUs: 16, HostBytes: 64}
	for _, c := range []struct {
		need spec.Host
		want float64
	}{{spec.Host{}, 1}, {spec.Host{MilliCPUs: 2000}, 1}, {spec.Host{MilliCPUs: 8000}, 2}, {spec.Host{MilliCPUs: 8000, Bytes: 64}, 4}} {
		if got := DominantShare(g, c.need); got != c.want {
			t.Errorf("%v is %g shares of devices, want %g", c.need, got, c.want)
		}
	}
	if got := DominantShare(&spec.NodeGroup{Devices: 4}, spec.Host{MilliCPUs: 8000, Bytes: 64}); got != 1 {
		t.Errorf("without limits %g", got)
	}
}

// A job grows only if that saves more than a restart costs, and shrinks only if another job
// needs its devices.
func TestRelent(t *testing.T) {
	running := func(held, target int, left float64) *Grower {
		g := &Grower{JobState: &scheduler.JobState{Job: &spec.Job{}, StartCost: 30 * time.Second,
			Grant: &scheduler.Grant{Slots: []scheduler.Slot{{Devices: held}}}}, left: left}
		for n := 1; n <= 4; n++ {
			g.Sizes = append(g.Sizes, Size{Devices: n, Sec: 1 / float64(n)})
		}
		g.At = target - 1
		return g
	}
	small, large, giver := running(2, 3, 150), running(2, 3, 300), running(3, 2, 300) // growing saves 25 s and 50 s
	left := []int{0}
	(&Sizing{}).keepSizes([]*Grower{small, large, giver}, left)
	if small.Devices() != 2 || large.Devices() != 3 || giver.Devices() != 3 || left[0] != 0 {
		t.Errorf("sizes %d, %d and %d with %d devices left, want 2, 3, 3 and none", small.Devices(), large.Devices(), giver.Devices(), left[0])
	}
}

// The policy learns from jobs that have finished.
func TestOptimusLearnsFromTheFinished(t *testing.T) {
	p, err := newOptimus(policy.Deps{})
	if err != nil {
		t.Fatal(err)
	}
	s := scheduler.NewSnapshot(time.Second, schedulertest.Nodes(2, 4), nil)
	j := &spec.Job{ID: "a", Model: spec.Model{Name: "m"}}
	s.Ended = []scheduler.JobState{{Job: j, Done: 4000}}
	if _, err := p.Decide(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	next := &scheduler.JobState{Job: &spec.Job{ID: "b", Model: j.Model}}
	if left, young := p.(*Sizing).convergence.left(t.Context(), next); left != 4000 || !young {
		t.Errorf("of the next of the kind %g steps are left, young %v, want 4000", left, young)
	}
}
