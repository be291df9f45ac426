package sim_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/scheduler"
	"github.com/pacer-ml/pacer/scheduler/sim"
)

// reasoned is a script that gives reasons on request.
type reasoned struct {
	script
	t *testing.T
	n int // of the decisions
}

func (r *reasoned) Decide(ctx context.Context, s *scheduler.Snapshot) (scheduler.Decision, error) {
	d, err := r.script.Decide(ctx, s)
	r.n++
	for _, g := range d.Grants {
		d.Because(s, g.Job, "granted %s", g.Shape.Devices)
	}
	for j := range d.Unexplained(s) {
		if j.Job.ID == "b" {
			d.Because(s, j.Job.ID, "decision %d", r.n)
		}
	}
	if !s.Reasons && d.Why != nil {
		r.t.Errorf("reasons %v that were not requested", d.Why)
	}
	return d, err
}

// Only the requested jobs have events: b waits for the same reason but for a number at
// 0 and 30 s, and c, without a reason of the policy, for one of the engine.
func TestExplain(t *testing.T) {
	p := &reasoned{t: t, script: script{
		{at: 0, grants: map[spec.JobID]string{"a": "0:4+1:4"}, wake: 30 * time.Second},
		{at: 50 * time.Second, grants: map[spec.JobID]string{"a": "0:4", "b": "1:1"}},
	}}
	job := func(id spec.JobID, devices int, submit time.Duration) spec.Job {
		return spec.Job{ID: id, Devices: devices, Steps: 800, Submit: submit}
	}
	c := config(p, job("a", 8, 0), job("b", 1, 0), job("c", 2, 50*time.Second))
	c.Horizon = 60 * time.Second
	var got []string
	c.Explain = &sim.Explain{Jobs: []spec.JobID{"c", "b", "missing"}, OnEvent: func(e sim.Event) {
		got = append(got, fmt.Sprintf("%v %s %s: %s", e.At, e.Job.ID, e.Kind, e.Why))
	}}
	if _, err := sim.Run(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	want := []string{
		"0s b submitted: ", "0s b waits: decision 1",
		"50s c submitted: ", "50s b started: granted 1", "50s c waits: requests 2 devices, and 3 are free, but they do not fit the job or the policy keeps them from it",
	}
	if !slices.Equal(got, want) {
		t.Errorf("told\n%q, want\n%q", got, want)
	}
}

// Without a reader there are no reasons.
func TestNoReasonsUnread(t *testing.T) {
	p := &reasoned{t: t, script: script{{grants: map[spec.JobID]string{"a": "0:4"}}}}
	if _, err := sim.Run(t.Context(), config(p, spec.Job{ID: "a", Devices: 4, Steps: 8})); err != nil || p.n == 0 {
		t.Errorf("%d decisions, error %v", p.n, err)
	}
}
