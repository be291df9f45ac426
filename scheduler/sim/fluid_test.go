package sim_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/scheduler"
	"github.com/pacer-ml/pacer/scheduler/sim"
)

// evenly gives every job the same part of devices 0:1 and of those of other, if any.
type evenly struct {
	policyFunc
	parts float64
	other string
}

func (p evenly) Shares(_ context.Context, s *scheduler.Snapshot) (out []scheduler.TimeShare, warnings []string, err error) {
	for _, j := range s.Jobs() {
		x := p.parts / float64(len(s.Jobs()))
		out = append(out, scheduler.TimeShare{Grant: grant(j.Job.ID, "0:1"), Fraction: x})
		if p.other != "" {
			out = append(out, scheduler.TimeShare{Grant: grant(j.Job.ID, p.other), Fraction: x})
		}
	}
	return out, []string{"even"}, nil
}

// Two jobs have half of a device each. With the late third job each has a third: a has
// made 50 s of its 100 by then and needs 150 s more; b has all when a and c are done.
func TestFluid(t *testing.T) {
	c := config(evenly{parts: 1}, job("a", 0, 1, 100), job("b", 0, 1, 200), job("c", 100*s, 1, 50))
	c.Truth = sim.Durations{}
	c.Jobs[0].Duration, c.Jobs[1].Duration, c.Jobs[2].Duration = 100*s, 200*s, 50*s
	r := mustRun(t, c)
	for i, want := range []time.Duration{250 * s, 350 * s, 250 * s} {
		if got := r.Jobs[i].End; !r.Jobs[i].Finished || (got-want).Abs() > time.Microsecond {
			t.Errorf("job %s ends at %v, want %v; unfinished %q", r.Jobs[i].Job.ID, got, want, r.Jobs[i].Unfinished)
		}
	}
	if r.Jobs[2].Start != 100*s || r.Jobs[0].Restarts != 0 || len(r.Warnings) != 2 || !strings.Contains(r.Warnings[0], "start costs are left out") {
		t.Errorf("c starts at %v, a restarts %d times, warnings %q", r.Jobs[2].Start, r.Jobs[0].Restarts, r.Warnings)
	}
	if a := r.Jobs[0].Attained; a < 99.99 || a > 100.01 {
		t.Errorf("a had %g device-seconds, want 100", a)
	}
	c.Costs = nil
	if w := mustRun(t, c).Warnings; len(w) != 1 {
		t.Errorf("without start costs: warnings %q", w)
	}
	c.Horizon = 300 * s
	if b := mustRun(t, c).Jobs[1]; b.Finished || !strings.Contains(b.Unfinished, "horizon") {
		t.Errorf("b with a horizon of 300s: finished %v, %q", b.Finished, b.Unfinished)
	}
}

// Shares beyond the devices are errors, and so are settings that contradict fractions.
func TestFluidErrors(t *testing.T) {
	for name, c := range map[string]struct {
		p    evenly
		set  func(*sim.Config)
		want string
	}{
		"group":  {evenly{parts: 9, other: ""}, nil, "shares of 9 devices"},
		"time":   {evenly{parts: 1, other: "1:1"}, func(c *sim.Config) { c.Jobs = c.Jobs[:1] }, "2 of its time"},
		"round":  {evenly{parts: 1}, func(c *sim.Config) { c.Round = 60 * s }, "no rounds"},
		"speeds": {evenly{parts: 1}, func(c *sim.Config) { c.CheckpointEvery = 60 * s }, "no checkpoints"},
	} {
		t.Run(name, func(t *testing.T) {
			var jobs []spec.Job
			for i := range 10 {
				jobs = append(jobs, job(spec.JobID(rune('a'+i)), 0, 1, 100))
			}
			conf := config(c.p, jobs...)
			if c.set != nil {
				c.set(&conf)
			}
			if _, err := sim.Run(t.Context(), conf); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want one that says %q", err, c.want)
			}
		})
	}
}
