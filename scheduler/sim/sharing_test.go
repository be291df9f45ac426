package sim_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/scheduler"
	"github.com/pacer-ml/pacer/scheduler/sim"
)

// sharedAt is the truth perDevice with a relative speed of each job that shares devices.
type sharedAt map[spec.JobID]float64

func (sharedAt) Steps(_ context.Context, j *spec.Job) (float64, error) { return j.Steps, nil }

func (sharedAt) StepsPerSec(_ context.Context, _ *spec.Job, g *scheduler.Grant, _ *spec.NodeGroup) (float64, error) {
	return float64(g.Devices()), nil
}

func (s sharedAt) StepsPerSecBeside(_ context.Context, j *spec.Job, g *scheduler.Grant, other *spec.Job, otherGrant *scheduler.Grant, _ *spec.NodeGroup) (float64, error) {
	part, ok := s[j.ID]
	if !ok || otherGrant.Job != other.ID {
		return 0, errors.New("not measured")
	}
	return part * float64(g.Devices()), nil
}

// shares is a policy that grants, by time, slots such as 0:4, followed by the job
// they are shared with, as in 0:4&b.
type shares []target

func (s shares) Decide(ctx context.Context, snap *scheduler.Snapshot) (scheduler.Decision, error) {
	plain := make(script, len(s))
	with := map[spec.JobID]spec.JobID{}
	for i, t := range s {
		plain[i] = target{t.at, map[spec.JobID]string{}, t.wake}
		if t.at <= snap.Now {
			clear(with)
		}
		for id, g := range t.grants {
			slots, other, _ := strings.Cut(g, "&")
			plain[i].grants[id] = slots
			if t.at <= snap.Now {
				with[id] = spec.JobID(other)
			}
		}
	}
	d, err := plain.Decide(ctx, snap)
	inside := map[spec.JobID]bool{}
	for _, j := range snap.Jobs() {
		inside[j.Job.ID] = true
	}
	for i, g := range d.Grants {
		if other := with[g.Job]; inside[other] {
			d.Grants[i] = g.Beside(other)
		}
	}
	return d, err
}

// Two jobs share four devices: each runs at its own part of its speed, both
// together hold four devices, each has received half of the device-seconds, and
// the remaining job continues alone without a restart.
func TestSharing(t *testing.T) {
	p := shares{{0, map[spec.JobID]string{"a": "0:4&b", "b": "0:4&a"}, 0}}
	c := config(p, spec.Job{ID: "a", Devices: 4, Steps: 300}, spec.Job{ID: "b", Devices: 4, Steps: 400})
	c.Truth, c.Audit = sharedAt{"a": 0.75, "b": 0.5}, true
	var events []string
	c.Observe = func(e sim.Event) { events = append(events, fmt.Sprintf("%v %s %s", e.At, e.Kind, e.Job.ID)) }
	r := mustRun(t, c)
	// 10 s of start; then a makes 3 steps a second and b 2. At 110 s a is done, b has
	// 200 steps left and makes 4 a second.
	want := "0s submitted a,0s submitted b,0s started a,0s started b,1m50s completed a,1m50s shared b,2m40s completed b"
	if got := strings.Join(events, ","); got != want {
		t.Errorf("events %s, want %s", got, want)
	}
	if !r.Shared {
		t.Error("the result does not say that jobs shared devices")
	}
	for i, attained := range []float64{220, 220 + 200} {
		if j := r.Jobs[i]; j.Attained != attained || j.Restarts != 0 {
			t.Errorf("job %s: %g device-s and %d restarts, want %g and none", j.Job.ID, j.Attained, j.Restarts, attained)
		}
	}
	if u := r.Usage[0]; u.Held != 4 {
		t.Errorf("%d devices are held, want 4", u.Held)
	}
	if u := r.Usage[len(r.Usage)-1]; u.Held != 0 {
		t.Errorf("%d devices are held at the end", u.Held)
	}
}

// A change of the colocated job changes only the speed: checkpoints are written as before,
// and a failure undoes the progress since the last one.
func TestCompanyChanges(t *testing.T) {
	p := shares{
		{0, map[spec.JobID]string{"a": "0:4"}, 100 * time.Second},
		{100 * time.Second, map[spec.JobID]string{"a": "0:4&b", "b": "0:4&a"}, 250 * time.Second},
		{250 * time.Second, map[spec.JobID]string{"a": "0:4&c", "c": "0:4&a"}, 350 * time.Second},
		{350 * time.Second, map[spec.JobID]string{"a": "0:4", "b": "1:4"}, 0},
		{460 * time.Second, map[spec.JobID]string{"b": "1:4"}, 0},
	}
	c := config(p, spec.Job{ID: "a", Devices: 4, Steps: 2000}, spec.Job{ID: "b", Devices: 4, Steps: 1000}, spec.Job{ID: "c", Devices: 4, Steps: 5000})
	c.Truth, c.Audit, c.Costs, c.CheckpointEvery = sharedAt{"a": 0.5, "b": 0.25, "c": 0.75}, true, nil, 200*time.Second
	c.Failures = sim.OutageTable{0: {{Down: 460 * time.Second, Up: 1e6 * time.Second}}}
	c.Horizon = 500 * time.Second
	r := mustRun(t, c)
	a, b, cc := r.Jobs[0], r.Jobs[1], r.Jobs[2]
	// a trains from 0 on: 4 steps/s alone and 2 in pairs. Its last checkpoint before
	// 460 s is at 400 s; 60 s alone at 4 steps/s are lost.
	if a.Failures != 1 || a.LostSteps != 240 || a.LostSec != 240 || a.Restarts != 0 {
		t.Errorf("a: %d failures, %g steps and %g device-s lost, %d restarts; want 1, 240, 240 and 0", a.Failures, a.LostSteps, a.LostSec, a.Restarts)
	}
	if want := 100*4 + 250*2 + 110*4.0; a.Attained != want {
		t.Errorf("a: %g device-s, want %g", a.Attained, want)
	}
	if want := 150*2 + 150*4.0; b.Attained != want || b.Restarts != 1 {
		t.Errorf("b: %g device-s and %d restarts, want %g and 1", b.Attained, b.Restarts, want)
	}
	if cc.Attained != 200 || cc.Preemptions != 1 {
		t.Errorf("c: %g device-s and %d preemptions, want 200 and 1", cc.Attained, cc.Preemptions)
	}
}

// A failure before the first checkpoint undoes all received time, alone and shared.
func TestCompanyFails(t *testing.T) {
	p := shares{
		{0, map[spec.JobID]string{"a": "0:4"}, 100 * time.Second},
		{100 * time.Second, map[spec.JobID]string{"a": "0:4&b", "b": "0:4&a"}, 0},
	}
	c := config(p, spec.Job{ID: "a", Devices: 4, Steps: 2000}, spec.Job{ID: "b", Devices: 4, Steps: 1000})
	c.Truth, c.Audit, c.Costs = sharedAt{"a": 0.5, "b": 0.25}, true, nil
	c.Failures = sim.OutageTable{0: {{Down: 150 * time.Second, Up: 1e6 * time.Second}}}
	c.Policy = until{p, 150 * time.Second}
	r := mustRun(t, c)
	for i, lost := range [][2]float64{{400 + 100, 400 + 100}, {50, 100}} {
		if j := r.Jobs[i]; j.LostSteps != lost[0] || j.LostSec != lost[1] || j.Failures != 1 {
			t.Errorf("job %s: %g steps and %g device-s lost in %d failures, want %v in 1", j.Job.ID, j.LostSteps, j.LostSec, j.Failures, lost)
		}
	}
}

// until grants nothing from a time on.
type until struct {
	scheduler.Policy
	end time.Duration
}

func (u until) Decide(ctx context.Context, s *scheduler.Snapshot) (scheduler.Decision, error) {
	if s.Now >= u.end {
		return scheduler.Decision{}, nil
	}
	return u.Policy.Decide(ctx, s)
}

// Colocated jobs can end at the same time.
func TestSharingEndsTogether(t *testing.T) {
	p := shares{{0, map[spec.JobID]string{"a": "0:4&b", "b": "0:4&a"}, 0}}
	c := config(p, spec.Job{ID: "a", Devices: 4, Steps: 200}, spec.Job{ID: "b", Devices: 4, Steps: 200})
	c.Truth, c.Audit = sharedAt{"a": 0.5, "b": 0.5}, true
	r := mustRun(t, c)
	for _, j := range r.Jobs {
		if j.End != 110*time.Second {
			t.Errorf("job %s ends at %v, want 1m50s", j.Job.ID, j.End)
		}
	}
}

// Invalid decisions about jobs that share devices are errors that name them.
func TestSharingRefused(t *testing.T) {
	jobs := []spec.Job{{ID: "a", Devices: 4, Steps: 300}, {ID: "b", Devices: 4, Steps: 400}, {ID: "c", Devices: 4, Steps: 400}}
	pair := target{0, map[spec.JobID]string{"a": "0:4&b", "b": "0:4&a"}, time.Minute}
	for want, c := range map[string]struct {
		truth sim.Truth
		p     shares
	}{
		"job a shares its devices with job b in the decision, but not the reverse": {sharedAt{}, shares{
			{0, map[spec.JobID]string{"a": "0:4&b", "b": "1:4"}, 0}}},
		"job b shares its devices with job a in the decision, but not the reverse": {sharedAt{}, shares{
			{0, map[spec.JobID]string{"b": "0:4&a"}, 0}}},
		"job c shares its devices with job a in the decision, but not the reverse": {sharedAt{}, shares{
			{0, map[spec.JobID]string{"a": "0:4&b", "b": "0:4&a", "c": "0:4&a"}, 0}}},
		"job a shares its devices with job a in the decision, but not the reverse": {sharedAt{}, shares{{0, map[spec.JobID]string{"a": "0:4&a"}, 0}}},
		"job b changes, but job a shares its devices and does not: give that one a grant without sharing, or stop it": {sharedAt{"a": 0.5, "b": 0.5}, shares{
			pair, {time.Minute, map[spec.JobID]string{"a": "0:4&b"}, 0}}},
		"beside job b: not measured":                                     {sharedAt{"b": 1}, shares{pair}},
		"beside job b: the truth has 0 steps/s":                          {sharedAt{"a": 0, "b": 1}, shares{pair}},
		"with job b: the truth has no speeds of jobs that do":            {perDevice{}, shares{pair}},
		"beside job b: the truth has no speeds of jobs that share devic": {sim.Predicted{Predictor: fourPerSec{}}, shares{pair}},
	} {
		cfg := config(c.p, jobs...)
		cfg.Truth = c.truth
		if _, err := sim.Run(t.Context(), cfg); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q", err, want)
		}
	}
}

// fourPerSec predicts four samples a second.
type fourPerSec struct{}

func (fourPerSec) Predict(context.Context, spec.Config) (spec.Prediction, error) {
	return spec.Prediction{Throughput: 4}, nil
}
