package sim_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/scheduler"
	"github.com/pacer-ml/pacer/scheduler/policy"
	"github.com/pacer-ml/pacer/scheduler/policy/builtin"
	"github.com/pacer-ml/pacer/scheduler/sim"
)

// recorder keeps the state of every job at each decision.
type recorder struct {
	scheduler.Policy
	at     []time.Duration
	inside [][]scheduler.JobState
}

func (r *recorder) Decide(ctx context.Context, s *scheduler.Snapshot) (scheduler.Decision, error) {
	var states []scheduler.JobState
	for _, j := range s.Jobs() {
		states = append(states, *j)
	}
	r.at, r.inside = append(r.at, s.Now), append(r.inside, states)
	return r.Policy.Decide(ctx, s)
}

func lasOf(t *testing.T) scheduler.Policy {
	t.Helper()
	p, err := builtin.Policies.New(policy.Spec{Name: "las", Options: map[string]string{"quantum": "7"}}, policy.Deps{})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// A run that resumes at any time ends every job as the uninterrupted run does: jobs that
// run, pay their start cost, were stopped, or wait.
func TestResumeIsTheRestOfTheRun(t *testing.T) {
	var jobs []spec.Job
	for i := range 24 {
		jobs = append(jobs, spec.Job{ID: spec.JobID(fmt.Sprintf("j%02d", i)), Submit: time.Duration(i*11) * s, Devices: 1 + i*i%4,
			Duration: time.Duration(20+i*i*37%200) * s})
	}
	for _, round := range []time.Duration{0, 30 * s} {
		cfg := config(nil, jobs...)
		cfg.Cluster = spec.Cluster{Groups: []spec.NodeGroup{{Count: 2, Devices: 4}}}
		cfg.Truth, cfg.Costs, cfg.Round = sim.Durations{}, sim.PerStart(func(spec.Job) time.Duration { return 3 * s }), round
		all := &recorder{Policy: lasOf(t)}
		cfg.Policy = all
		whole := mustRun(t, cfg)
		stopped, starting := 0, 0
		for k, at := range all.at {
			rest := cfg
			rest.Policy, rest.Resume, rest.Jobs = lasOf(t), &sim.Resume{At: at, Jobs: all.inside[k]}, nil
			for i, r := range whole.Jobs {
				if r.End > at {
					rest.Jobs = append(rest.Jobs, whole.Jobs[i].Job)
				}
			}
			for _, j := range all.inside[k] {
				stopped += min(j.Restarts, 1)
				if j.Phase == scheduler.Starting {
					starting++
				}
			}
			got := mustRun(t, rest)
			for _, g := range got.Jobs {
				for _, w := range whole.Jobs {
					if w.Job.ID == g.Job.ID && (w.End != g.End || w.Start != g.Start || w.Restarts != g.Restarts || w.Attained != g.Attained) {
						t.Fatalf("round %v, from %v on: job %s starts %v, ends %v, %d restarts, %g device-s; want %v, %v, %d, %g",
							round, at, w.Job.ID, g.Start, g.End, g.Restarts, g.Attained, w.Start, w.End, w.Restarts, w.Attained)
					}
				}
			}
		}
		if stopped == 0 || starting == 0 && round == 0 || len(all.at) < 20 {
			t.Errorf("round %v: %d moments, %d jobs stopped before, %d starting: the test sees too little", round, len(all.at), stopped, starting)
		}
	}
}

// Outages before the resumption are over. A node that is down at that time stays down until
// its repair.
func TestResumeWithinAnOutage(t *testing.T) {
	a := spec.Job{ID: "a", Devices: 1, Duration: 10 * s}
	cfg := config(lasOf(t), a)
	cfg.Cluster, cfg.Truth, cfg.Costs = spec.Cluster{Groups: []spec.NodeGroup{{Count: 1, Devices: 1}}}, sim.Durations{}, nil
	cfg.Failures = sim.OutageTable{0: {{Down: 5 * s, Up: 20 * s}, {Down: 40 * s, Up: 70 * s}}}
	for at, want := range map[time.Duration]time.Duration{30 * s: 36 * s, 40 * s: 76 * s, 50 * s: 76 * s, 70 * s: 76 * s} {
		cfg.Policy, cfg.Resume = lasOf(t), &sim.Resume{At: at, Jobs: []scheduler.JobState{{Job: &a, Done: 4, Remaining: 6}}}
		if got := mustRun(t, cfg).Jobs[0].End; got != want {
			t.Errorf("from %v on: ends at %v, want %v", at, got, want)
		}
	}
}

// An invalid state is an error that names the mistake.
func TestResumeFaults(t *testing.T) {
	a := spec.Job{ID: "a", Submit: 5 * s, Devices: 1, Duration: 10 * s}
	b := spec.Job{ID: "b", Devices: 1, Duration: 10 * s}
	for _, c := range []struct {
		at   time.Duration
		jobs []scheduler.JobState
		want string
	}{
		{4 * s, []scheduler.JobState{{Job: &a, Remaining: 10}}, "job a at 4s, want one of the jobs of the run, submitted by then"},
		{5 * s, []scheduler.JobState{{Job: &a, Remaining: 10}, {Job: &a, Remaining: 10}}, "job a at 5s"},
		{5 * s, []scheduler.JobState{{Job: &spec.Job{ID: "c"}, Remaining: 10}}, "job c at 5s"},
		{5 * s, []scheduler.JobState{{Job: &a, Done: 10}}, "10 steps done and 0 to go"},
		{5 * s, []scheduler.JobState{{Job: &a, Remaining: 10, Grant: grant("a", "0:1")}, {Job: &b, Remaining: 10, Grant: grant("b", "0:1")}}, "node 0 has 1 devices, 2 are granted"},
		{5 * s, []scheduler.JobState{{Job: &a, Remaining: 10, Grant: grant("a", "3:1")}}, "node 3 is not in 0..0"},
		{-s, nil, "resume at -1s"},
	} {
		cfg := config(lasOf(t), a, b)
		cfg.Cluster, cfg.Truth, cfg.Resume = spec.Cluster{Groups: []spec.NodeGroup{{Count: 1, Devices: 1}}}, sim.Durations{}, &sim.Resume{At: c.at, Jobs: c.jobs}
		if _, err := sim.Run(t.Context(), cfg); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("at %v with %d jobs inside: error %v, want %s", c.at, len(c.jobs), err, c.want)
		}
	}
}
