package builtin_test

import (
	"testing"
	"time"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/scheduler"
	"github.com/pacer-ml/pacer/scheduler/place"
	"github.com/pacer-ml/pacer/scheduler/policy"
	"github.com/pacer-ml/pacer/scheduler/policy/builtin"
	"github.com/pacer-ml/pacer/scheduler/schedulertest"
	"github.com/pacer-ml/pacer/scheduler/sim"
)

// guessing lists the policies that schedule ahead or compare configurations; they guess the
// speed of jobs with a duration but no prediction.
var guessing = []string{"pacer", "rubick"}

// A job that needs all nodes blocks no other job while a node is down.
func TestTooWideWhileNodesAreDown(t *testing.T) {
	wide, small := spec.JobID("wide"), spec.JobID("small")
	for _, name := range guessing {
		r, err := sim.Run(t.Context(), sim.Config{
			Cluster: schedulertest.Nodes(2, 8), Policy: makeOne(t, name, policy.Deps{}), Truth: sim.Durations{},
			Jobs: []spec.Job{
				{ID: wide, Submit: 150 * time.Second, Devices: 16, Duration: 100 * time.Second},
				{ID: small, Submit: 200 * time.Second, Devices: 4, Duration: 100 * time.Second},
			},
			Failures: sim.OutageTable{1: {{Down: 100 * time.Second, Up: 5000 * time.Second}}},
		})
		if err != nil {
			t.Fatal(err)
		}
		want := map[spec.JobID]time.Duration{wide: 5100 * time.Second, small: 300 * time.Second}
		for _, j := range r.Jobs {
			if j.End != want[j.Job.ID] {
				t.Errorf("%s: %s ends at %v, want %v", name, j.Job.ID, j.End, want[j.Job.ID])
			}
		}
	}
}

// The placer chooses the layout of jobs without a prediction.
func TestPlacerLaysOutGuesses(t *testing.T) {
	spread, err := place.Lookup("spread")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range guessing {
		p := makeOne(t, name, policy.Deps{Placer: spread})
		j := &scheduler.JobState{Job: &spec.Job{ID: "a", Devices: 4, Duration: time.Hour}, Remaining: 1}
		d, err := p.Decide(t.Context(), scheduler.NewSnapshot(0, schedulertest.Nodes(4, 8), []*scheduler.JobState{j}))
		if err != nil {
			t.Fatal(err)
		}
		if len(d.Grants) != 1 || d.Grants[0].Shape != spec.NewShape(1, 1, 1, 1) {
			t.Errorf("%s grants %+v, want a device of each node", name, d.Grants)
		}
	}
}

func makeOne(t *testing.T, name string, d policy.Deps) scheduler.Policy {
	t.Helper()
	p, err := builtin.Policies.New(policy.Spec{Name: name}, d)
	if err != nil {
		t.Fatal(err)
	}
	return p
}
