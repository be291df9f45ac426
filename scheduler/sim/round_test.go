package sim_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/scheduler"
	"github.com/pacer-ml/pacer/scheduler/compat/blox"
	"github.com/pacer-ml/pacer/scheduler/sim"
)

// In rounds of 60 s a job of 100 s that comes at 1 s runs from 60 s to 160 s, and
// the next job gets its devices at 180 s. With quirk ticks its end is noticed at 180 s,
// with late-ends that is its completion time.
func TestRounds(t *testing.T) {
	for _, c := range []struct {
		rules []func(*sim.Rules)
		want  string
	}{
		{nil, "1m0s 3m0s; ends 2m40s 3m10s"},
		{[]func(*sim.Rules){blox.Ticks}, "1m0s 3m0s 4m0s; ends 2m40s 3m10s"},
		{[]func(*sim.Rules){blox.Ticks, blox.LateEnds}, "1m0s 3m0s 4m0s; ends 3m0s 4m0s"},
	} {
		var decided []string
		p := policyFunc(func(s *scheduler.Snapshot) scheduler.Decision {
			decided = append(decided, s.Now.String())
			d := scheduler.Decision{Grants: keep(s)}
			if len(d.Grants) == 0 && len(s.Jobs()) > 0 {
				d.Grants = append(d.Grants, grant(s.Jobs()[0].Job.ID, "0:1"))
			}
			return d
		})
		cfg := config(p, spec.Job{ID: "a", Submit: time.Second, Devices: 1, Duration: 100 * s}, spec.Job{ID: "b", Submit: 2 * s, Devices: 1, Duration: 10 * s})
		cfg.Truth, cfg.Costs, cfg.Round = sim.Durations{}, nil, 60*s
		for _, set := range c.rules {
			set(&cfg.Rules)
		}
		r := mustRun(t, cfg)
		got := strings.Join(decided, " ") + "; ends " + r.Jobs[0].End.String() + " " + r.Jobs[1].End.String()
		if got != c.want {
			t.Errorf("%d rules: decided at %s, want %s", len(c.rules), got, c.want)
		}
	}
}

// A policy sees each completed job once, with all it received, at that instant or at the
// start of a round. The run ends with the last job.
func TestEnded(t *testing.T) {
	for _, c := range []struct {
		round time.Duration
		want  string
	}{
		{0, " 10s: a 10; 20s: b 20; 40s: c 40;"},
		{30 * s, " 30s: a 10 b 20;"},
	} {
		got := ""
		p := policyFunc(func(s *scheduler.Snapshot) scheduler.Decision {
			if len(s.Ended) > 0 {
				got += " " + s.Now.String() + ":"
				for _, j := range s.Ended {
					got += fmt.Sprintf(" %s %g", j.Job.ID, j.Attained)
				}
				got += ";"
			}
			d := scheduler.Decision{Grants: keep(s)}
			for i, j := range s.Jobs() {
				if s.Now == 0 {
					d.Grants = append(d.Grants, grant(j.Job.ID, fmt.Sprintf("%d:1", i)))
				}
			}
			return d
		})
		cfg := config(p, spec.Job{ID: "a", Devices: 1, Duration: 10 * s}, spec.Job{ID: "b", Devices: 1, Duration: 20 * s},
			spec.Job{ID: "c", Devices: 1, Duration: 40 * s})
		cfg.Cluster, cfg.Truth, cfg.Costs, cfg.Round = spec.Cluster{Groups: []spec.NodeGroup{{Count: 3, Devices: 1}}}, sim.Durations{}, nil, c.round
		mustRun(t, cfg)
		if got != c.want {
			t.Errorf("round %v: told of%s want%s", c.round, got, c.want)
		}
	}
}
