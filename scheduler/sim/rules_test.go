package sim_test

import (
	"strings"
	"testing"
	"time"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/scheduler"
	"github.com/pacer-ml/pacer/scheduler/sim"
)

// noOutages are nodes that never fail.
type noOutages struct{}

func (noOutages) Outages(int) func() (sim.Outage, bool) {
	return func() (sim.Outage, bool) { return sim.Outage{}, false }
}

// Rules that contradict the rest of a configuration are errors.
func TestRulesRefused(t *testing.T) {
	lockstep := func(c *sim.Config) { c.Round, c.Lockstep = 40*s, &sim.Lockstep{} }
	for name, c := range map[string]struct {
		change func(c *sim.Config)
		says   string // "" = accepted
	}{
		"seen without rounds":       {func(c *sim.Config) { c.Seen = sim.NextRound }, "rule seen needs a round"},
		"seen":                      {func(c *sim.Config) { c.Seen, c.Round = sim.NextRound, 40*s }, ""},
		"lockstep without rounds":   {func(c *sim.Config) { c.Lockstep = &sim.Lockstep{} }, "lockstep needs a round"},
		"lockstep":                  {lockstep, ""},
		"lockstep, resumed":         {func(c *sim.Config) { lockstep(c); c.Resume = &sim.Resume{} }, "lockstep cannot resume"},
		"lockstep with checkpoints": {func(c *sim.Config) { lockstep(c); c.CheckpointEvery = 10 * s }, "lockstep has no checkpoints"},
		"lockstep with failures":    {func(c *sim.Config) { lockstep(c); c.Failures = noOutages{} }, "lockstep has no checkpoints"},
	} {
		cfg := config(startOnce("0:1"), job("a", 0, 1, 100))
		c.change(&cfg)
		switch _, err := sim.Run(t.Context(), cfg); {
		case c.says == "" && err != nil:
			t.Errorf("%s: %v", name, err)
		case c.says != "" && (err == nil || !strings.Contains(err.Error(), c.says)):
			t.Errorf("%s: error %v, want %q", name, err, c.says)
		}
	}
}

// Ties orders jobs that are noticed at the same time, whatever their submit times.
func TestTies(t *testing.T) {
	first := policyFunc(func(snap *scheduler.Snapshot) scheduler.Decision {
		d := scheduler.Decision{Grants: keep(snap)}
		if len(d.Grants) == 0 && len(snap.Waiting) > 0 {
			d.Grants = append(d.Grants, grant(snap.Waiting[0].Job.ID, "0:4"))
		}
		return d
	})
	c := config(first, job("a", 10*s, 4, 400), job("b", 20*s, 4, 400))
	c.Costs, c.Round, c.Seen = nil, 100*s, sim.NextRound
	for _, test := range []struct {
		ties func(a, b spec.JobID) int
		want [2]time.Duration // starts of a and b
	}{
		{nil, [2]time.Duration{100 * s, 200 * s}},
		{func(a, b spec.JobID) int { return strings.Compare(string(b), string(a)) }, [2]time.Duration{200 * s, 100 * s}},
	} {
		c.Ties = test.ties
		jobs := mustRun(t, c).Jobs
		starts := map[spec.JobID]time.Duration{}
		for _, j := range jobs {
			starts[j.Job.ID] = j.Start
		}
		if got := [2]time.Duration{starts["a"], starts["b"]}; got != test.want {
			t.Errorf("with ties %v: starts %v, want %v", test.ties != nil, got, test.want)
		}
	}
}
