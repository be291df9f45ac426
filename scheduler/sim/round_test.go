package sim_test

import (
	"strings"
	"testing"
	"time"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/scheduler"
	"github.com/pacer-ml/pacer/scheduler/compat"
	"github.com/pacer-ml/pacer/scheduler/sim"
)

// In rounds of 60 s a job of 100 s that comes at 1 s runs from 60 s to 160 s, and
// who waits for its devices gets them at 180 s. With quirk ticks it is seen to end
// at 180 s.
func TestRounds(t *testing.T) {
	for _, c := range []struct {
		ticks bool
		want  string
	}{
		{false, "1m0s 3m0s; ends 2m40s 3m10s"},
		{true, "1m0s 3m0s 4m0s; ends 3m0s 4m0s"},
	} {
		var asked []string
		p := policyFunc(func(s *scheduler.Snapshot) scheduler.Decision {
			asked = append(asked, s.Now.String())
			d := scheduler.Decision{Grants: keep(s)}
			if len(d.Grants) == 0 && len(s.Jobs) > 0 {
				d.Grants = append(d.Grants, grant(s.Jobs[0].Job.ID, "0:1"))
			}
			return d
		})
		cfg := config(p, spec.Job{ID: "a", Submit: time.Second, Devices: 1, Duration: 100 * s}, spec.Job{ID: "b", Submit: 2 * s, Devices: 1, Duration: 10 * s})
		cfg.Truth, cfg.StartCost, cfg.Round, cfg.Quirks = sim.Durations{}, nil, 60*s, compat.Quirks{Ticks: c.ticks}
		r := mustRun(t, cfg)
		got := strings.Join(asked, " ") + "; ends " + r.Jobs[0].End.String() + " " + r.Jobs[1].End.String()
		if got != c.want {
			t.Errorf("quirk ticks %v: asked at %s, want %s", c.ticks, got, c.want)
		}
	}
}
