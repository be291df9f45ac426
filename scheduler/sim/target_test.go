package sim_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/scheduler"
	"github.com/pacer-ml/pacer/scheduler/sim"
)

// step is a decision at or after a time, made once.
type step struct {
	at time.Duration
	d  scheduler.Decision
}

// steps is a policy that returns changes only.
func steps(all ...step) scheduler.Policy {
	return policyFunc(func(snap *scheduler.Snapshot) scheduler.Decision {
		d := scheduler.Decision{}
		if len(all) > 0 && all[0].at <= snap.Now {
			d, all = all[0].d, all[1:]
		}
		d.Keep = d.Keep || len(d.Stops)+len(d.Grants) == 0
		if len(all) > 0 {
			d.Wake = all[0].at
		}
		return d
	})
}

// A job that is not named keeps its devices, a stopped job loses them, and devices go
// from one job to another within a decision.
func TestChangesAlone(t *testing.T) {
	p := steps(
		step{0, scheduler.Decision{Keep: true, Grants: []*scheduler.Grant{grant("a", "0:4"), grant("b", "1:4")}}},
		step{20 * s, scheduler.Decision{Keep: true, Grants: []*scheduler.Grant{grant("c", "0:4")}, Stops: []spec.JobID{"a"}}},
		step{30 * s, scheduler.Decision{Keep: true, Grants: []*scheduler.Grant{grant("c", "1:4"), grant("b", "0:4")}}},
		step{200 * s, scheduler.Decision{Keep: true, Grants: []*scheduler.Grant{grant("a", "1:2")}}},
	)
	var events []string
	c := config(p, job("a", 0, 4, 100), job("b", 0, 4, 200), job("c", 0, 4, 100))
	c.Audit = true
	c.Observe = func(e sim.Event) {
		if e.Kind != sim.Submitted {
			events = append(events, fmt.Sprintf("%g %s %s", e.At.Seconds(), e.Job.ID, e.Kind))
		}
	}
	mustRun(t, c)
	want := "0 a started, 0 b started, 20 a stopped, 20 c started, 30 c moved, 30 b moved, 65 c completed, 70 b completed, 200 a started, 240 a completed"
	if got := strings.Join(events, ", "); got != want {
		t.Errorf("%s\nwant %s", got, want)
	}
}

// Invalid changes end the run.
func TestBrokenChanges(t *testing.T) {
	both := []*scheduler.Grant{grant("a", "0:4"), grant("b", "1:4")}
	for name, c := range map[string]struct {
		then scheduler.Decision
		want string
	}{
		"what another keeps":       {scheduler.Decision{Keep: true, Grants: []*scheduler.Grant{grant("c", "0:1")}}, "job c: node 0 has 4 devices, 5 are granted"},
		"what another moves to":    {scheduler.Decision{Keep: true, Grants: []*scheduler.Grant{grant("a", "1:2")}}, "job a: node 1 has 4 devices, 6 are granted"},
		"stop of a waiting job":    {scheduler.Decision{Keep: true, Stops: []spec.JobID{"c"}}, "job c is stopped but has no devices"},
		"stop of an unknown job":   {scheduler.Decision{Keep: true, Stops: []spec.JobID{"z"}}, "job z is stopped but has no devices"},
		"stopped twice":            {scheduler.Decision{Keep: true, Stops: []spec.JobID{"a", "a"}}, "job a is stopped, but also granted devices or stopped twice"},
		"stopped and granted":      {scheduler.Decision{Keep: true, Stops: []spec.JobID{"a"}, Grants: both[:1]}, "job a is stopped, but also granted devices or stopped twice"},
		"stop in a whole decision": {scheduler.Decision{Stops: []spec.JobID{"a"}}, "job a is stopped by name in a decision without Keep"},
	} {
		p := steps(step{0, scheduler.Decision{Keep: true, Grants: both}}, step{20 * s, c.then})
		_, err := sim.Run(t.Context(), config(p, job("a", 0, 4, 100), job("b", 0, 4, 200), job("c", 0, 4, 100)))
		if err == nil || !strings.Contains(err.Error(), "sim: policy script at 20s: "+c.want) {
			t.Errorf("%s: error %v, want %s", name, err, c.want)
		}
	}
}
