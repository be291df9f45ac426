package sim_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/scheduler"
	"github.com/pacer-ml/pacer/scheduler/sim"
)

// script is a policy with a table of decisions by time: the last entry at or before now
// applies.
type script []target

type target struct {
	at     time.Duration
	grants map[spec.JobID]string // slots as 0:4+1:4
	wake   time.Duration
}

func (s script) Decide(_ context.Context, snap *scheduler.Snapshot) (scheduler.Decision, error) {
	var d scheduler.Decision
	for _, t := range s {
		if t.at > snap.Now {
			continue
		}
		d = scheduler.Decision{}
		if t.wake > snap.Now {
			d.Wake = t.wake
		}
		for _, j := range snap.Jobs() {
			if slots, ok := t.grants[j.Job.ID]; ok {
				d.Grants = append(d.Grants, grant(j.Job.ID, slots))
			}
		}
	}
	return d, nil
}

func grant(id spec.JobID, slots string) *scheduler.Grant {
	g := &scheduler.Grant{Job: id}
	var counts []int
	for _, part := range strings.Split(slots, "+") {
		var s scheduler.Slot
		if _, err := fmt.Sscanf(part, "%d:%d", &s.Node, &s.Devices); err != nil {
			panic(fmt.Sprintf("grant(%q): %v", slots, err)) // a mistake in the test
		}
		g.Slots = append(g.Slots, s)
		counts = append(counts, s.Devices)
	}
	g.Shape = spec.NewShape(counts...)
	g.Plan = spec.Plan{DP: g.Devices()}.Normal()
	return g
}

// perDevice is a truth in which a job makes one step per second and device.
type perDevice struct{}

func (perDevice) Steps(_ context.Context, j *spec.Job) (float64, error) { return j.Steps, nil }
func (perDevice) StepsPerSec(_ context.Context, _ *spec.Job, g *scheduler.Grant, _ *spec.NodeGroup) (float64, error) {
	return float64(g.Devices()), nil
}

func config(p scheduler.Policy, jobs ...spec.Job) sim.Config {
	return sim.Config{
		Cluster: spec.Cluster{Groups: []spec.NodeGroup{{Count: 2, Devices: 4}}},
		Jobs:    jobs, Policy: p, PolicyName: "script", Truth: perDevice{},
		Costs: sim.PerStart(func(spec.Job) time.Duration { return 10 * time.Second }),
	}
}

func job(id spec.JobID, submit time.Duration, devices int, steps float64) spec.Job {
	return spec.Job{ID: id, Submit: submit, Devices: devices, Steps: steps}
}

func mustRun(t *testing.T, c sim.Config) *sim.Result {
	t.Helper()
	r, err := sim.Run(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

const s = time.Second

// A start costs 10 s, then 100 steps at 4 steps/s take 25 s.
func TestStartCostThenWork(t *testing.T) {
	r := mustRun(t, config(script{{at: 0, grants: map[spec.JobID]string{"a": "0:4"}}}, job("a", 5*s, 4, 100)))
	want := sim.JobRecord{Job: job("a", 5*s, 4, 100), Start: 5 * s, End: 40 * s, Finished: true, Scored: true, Attained: 140}
	if diff := gocmp.Diff(want, r.Jobs[0], cmpopts.EquateApprox(0, 1e-9)); diff != "" {
		t.Error(diff)
	}
	if diff := gocmp.Diff([]sim.Usage{{At: 5 * s, Held: 4}, {At: 40 * s}}, r.Usage); diff != "" {
		t.Error(diff)
	}
}

// a works 10 s of 20 (40 steps) before it is stopped, resumes at 50 s, pays
// again and has 60 steps left: 15 s. Progress is kept, devices are counted while
// held.
func TestStopKeepsProgress(t *testing.T) {
	p := script{
		{at: 0, grants: map[spec.JobID]string{"a": "0:4"}, wake: 20 * s},
		{at: 20 * s, wake: 50 * s},
		{at: 50 * s, grants: map[spec.JobID]string{"a": "0:4"}},
	}
	r := mustRun(t, config(p, job("a", 0, 4, 100)))
	got := r.Jobs[0]
	if got.End != 75*s || got.Restarts != 1 || got.Preemptions != 1 || got.Attained != 4*45 {
		t.Errorf("end %v, %d restarts, %d preemptions, %g device-s; want 1m15s, 1, 1, 180", got.End, got.Restarts, got.Preemptions, got.Attained)
	}
}

// Another node of the same shape, another shape, and another plan each cost a
// start, the same grant written anew does not.
func TestWhatCountsAsAChange(t *testing.T) {
	base := grant("a", "0:4")
	otherPlan := grant("a", "0:4")
	otherPlan.Plan = spec.Plan{TP: 4}.Normal()
	sparse := grant("a", "0:4")
	sparse.Plan = spec.Plan{DP: 4} // the same plan, defaults not written out
	for _, c := range []struct {
		name     string
		to       *scheduler.Grant
		restarts int
		end      time.Duration
	}{
		{"same", grant("a", "0:4"), 0, 35 * s},
		{"same plan in short", sparse, 0, 35 * s},
		{"node", grant("a", "1:4"), 1, 45 * s},
		{"shape", grant("a", "0:2+1:2"), 1, 45 * s},
		{"plan", otherPlan, 1, 45 * s},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := policyFunc(func(snap *scheduler.Snapshot) scheduler.Decision {
				switch {
				case len(snap.Jobs()) == 0:
					return scheduler.Decision{}
				case snap.Now < 20*s:
					return scheduler.Decision{Grants: []*scheduler.Grant{base}, Wake: 20 * s}
				}
				return scheduler.Decision{Grants: []*scheduler.Grant{c.to}}
			})
			r := mustRun(t, config(p, job("a", 0, 4, 100)))
			if got := r.Jobs[0]; got.Restarts != c.restarts || got.End != c.end || got.Preemptions != 0 {
				t.Errorf("%d restarts, end %v, %d preemptions, want %d, %v, 0", got.Restarts, got.End, got.Preemptions, c.restarts, c.end)
			}
		})
	}
}

type policyFunc func(*scheduler.Snapshot) scheduler.Decision

func (f policyFunc) Decide(_ context.Context, s *scheduler.Snapshot) (scheduler.Decision, error) {
	return f(s), nil
}

// A snapshot in the middle of a run has the right phases, steps and device-seconds.
func TestSnapshot(t *testing.T) {
	var seen []scheduler.JobState
	p := policyFunc(func(snap *scheduler.Snapshot) scheduler.Decision {
		for _, j := range snap.Jobs() {
			if j.Job.ID == "a" {
				seen = append(seen, *j)
			}
		}
		if len(snap.Jobs()) == 0 || snap.Now >= 30*s {
			return scheduler.Decision{Grants: keep(snap)}
		}
		d := scheduler.Decision{Grants: keep(snap), Wake: snap.Now + 4*s}
		if snap.Now >= 2*s && snap.Jobs()[0].Grant == nil {
			d.Grants = append(d.Grants, grant("a", "0:2+1:1"))
		}
		return d
	})
	mustRun(t, config(p, job("a", 0, 3, 60)))
	type view struct {
		Phase           scheduler.Phase
		Done, Remaining float64
		Attained        float64
	}
	var got []view
	for _, j := range seen[:5] {
		got = append(got, view{j.Phase, j.Done, j.Remaining, j.Attained})
	}
	want := []view{
		{scheduler.Waiting, 0, 60, 0},   // 0 s
		{scheduler.Waiting, 0, 60, 0},   // 4 s: starts
		{scheduler.Starting, 0, 60, 12}, // 8 s
		{scheduler.Starting, 0, 60, 24}, // 12 s
		{scheduler.Running, 6, 54, 36},  // 16 s: 2 s of work at 3 steps/s
	}
	if diff := gocmp.Diff(want, got, cmpopts.EquateApprox(0, 1e-9)); diff != "" {
		t.Error(diff)
	}
}

func keep(snap *scheduler.Snapshot) []*scheduler.Grant {
	var out []*scheduler.Grant
	for _, j := range snap.Jobs() {
		if j.Grant != nil {
			out = append(out, j.Grant)
		}
	}
	return out
}

// Invalid decisions end the run with an error that names the policy, the time, the job and
// the node.
func TestBrokenTargets(t *testing.T) {
	two := config(nil).Cluster
	two.Groups = append(two.Groups, spec.NodeGroup{Count: 1, Devices: 4, Accelerator: spec.Accelerator{Name: "other"}})
	wrongPlan := grant("a", "0:4")
	wrongPlan.Plan.DP = 2
	wrongShape := grant("a", "0:4")
	wrongShape.Shape = spec.NewShape(2, 2)
	for _, c := range []struct {
		name   string
		grants []*scheduler.Grant
		wake   time.Duration
		want   string
	}{
		{"node over capacity", []*scheduler.Grant{grant("a", "0:4"), grant("b", "0:1")}, 0, "job b: node 0 has 4 devices, 5 are granted"},
		{"one job over capacity", []*scheduler.Grant{grant("a", "1:5")}, 0, "job a: node 1 has 4 devices, 5 are granted"},
		{"granted twice", []*scheduler.Grant{grant("a", "0:1"), grant("a", "1:1")}, 0, "job a is granted devices twice"},
		{"unknown job", []*scheduler.Grant{grant("c", "0:1")}, 0, "job c is granted devices but is not in the queue"},
		{"node beyond the cluster", []*scheduler.Grant{grant("a", "3:1")}, 0, "job a: node 3 is not in 0..2"},
		{"negative node", []*scheduler.Grant{grant("a", "-1:1")}, 0, "job a: node -1 is not in 0..2"},
		{"no devices of a node", []*scheduler.Grant{grant("a", "0:0")}, 0, "job a: 0 devices of node 0"},
		{"no slots", []*scheduler.Grant{{Job: "a"}}, 0, "job a: a grant without devices"},
		{"slots out of order", []*scheduler.Grant{grant("a", "1:1+0:1")}, 0, "job a: node 0 follows node 1"},
		{"a node twice", []*scheduler.Grant{grant("a", "1:1+1:1")}, 0, "job a: node 1 follows node 1"},
		{"two groups", []*scheduler.Grant{grant("a", "1:1+2:1")}, 0, "job a: nodes 1 and 2 are of different groups"},
		{"another type than requested", []*scheduler.Grant{grant("b", "0:1")}, 0, "job b: node 0 has , the job requests other"},
		{"plan for fewer", []*scheduler.Grant{wrongPlan}, 0, "is for 2 devices, 4 are granted"},
		{"shape not that of the slots", []*scheduler.Grant{wrongShape}, 0, "slots are 4, but the shape is 2+2"},
		{"nil", []*scheduler.Grant{nil}, 0, "a nil grant"},
		{"wake-up now", nil, 3 * s, "wake-up at 3s is not after now"},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := job("b", 3*s, 4, 100)
			if c.name == "another type than requested" {
				b.Accelerator = "other"
			}
			cfg := config(policyFunc(func(*scheduler.Snapshot) scheduler.Decision {
				return scheduler.Decision{Grants: c.grants, Wake: c.wake}
			}), job("a", 3*s, 4, 100), b)
			cfg.Cluster = two
			_, err := sim.Run(t.Context(), cfg)
			if err == nil || !strings.Contains(err.Error(), c.want) || !strings.HasPrefix(err.Error(), "sim: policy script at 3s: ") {
				t.Errorf("error %v, want sim: policy script at 3s: ... %s", err, c.want)
			}
		})
	}
}

// A policy that writes seconds as nanoseconds is refused, where it would decide for hours.
func TestWakeInNanoseconds(t *testing.T) {
	for _, every := range []time.Duration{60, time.Second / 20_000} {
		c := config(policyFunc(func(snap *scheduler.Snapshot) scheduler.Decision {
			d := scheduler.Decision{Wake: snap.Now + every}
			for range snap.Jobs() {
				d.Grants = append(d.Grants, grant("a", "0:4"))
			}
			return d
		}), job("a", 0, 4, 100))
		_, err := sim.Run(t.Context(), c)
		if want := every < time.Microsecond; (err != nil) != want || want && !strings.Contains(err.Error(), "policy script at 6ms: more than 100000 wake-ups") {
			t.Errorf("wake-ups every %v: %v", every, err)
		}
	}
}

func TestPolicyAndTruthErrorsAreNamed(t *testing.T) {
	boom := errors.New("boom")
	c := config(nil, job("a", 7*s, 4, 100))
	c.Policy = failing{boom}
	if _, err := sim.Run(t.Context(), c); !errors.Is(err, boom) || !strings.Contains(err.Error(), "policy script at 7s") {
		t.Errorf("policy error: %v", err)
	}
	c.Policy = script{{grants: map[spec.JobID]string{"a": "0:4"}}}
	c.Truth = failingTruth{boom}
	_, err := sim.Run(t.Context(), c)
	if !errors.Is(err, boom) || !strings.Contains(err.Error(), "policy script at 7s: job a") || !strings.Contains(err.Error(), "dp=4") {
		t.Errorf("truth error: %v", err)
	}
}

type failing struct{ err error }

func (f failing) Decide(context.Context, *scheduler.Snapshot) (scheduler.Decision, error) {
	return scheduler.Decision{}, f.err
}

type failingTruth struct{ err error }

func (failingTruth) Steps(context.Context, *spec.Job) (float64, error) { return 1, nil }
func (f failingTruth) StepsPerSec(context.Context, *spec.Job, *scheduler.Grant, *spec.NodeGroup) (float64, error) {
	return 0, f.err
}

// Jobs that can never run are rejected and counted; the others run.
func TestRejects(t *testing.T) {
	all := map[spec.JobID]string{"ok": "0:1"}
	typed := job("typed", 0, 1, 1)
	typed.Accelerator = "H100"
	jobs := []spec.Job{
		job("ok", s, 1, 5), job("large", 0, 9, 1), job("negative", 0, 1, -5), job("early", -s, 1, 1),
		job("none", 0, 0, 1), job("idle", 0, 1, 0), typed,
	}
	r := mustRun(t, config(script{{grants: all}}, jobs...))
	want := map[spec.JobID]string{
		"large": "asks for 9 devices", "negative": "-5 steps", "early": "negative", "none": "0 devices",
		"idle": "neither steps nor a duration", "typed": "asks for accelerator H100",
	}
	for _, j := range r.Jobs {
		switch why, bad := want[j.Job.ID]; {
		case bad && !strings.Contains(j.Rejected, why):
			t.Errorf("job %s rejected %q, want %q", j.Job.ID, j.Rejected, why)
		case !bad && (!j.Finished || j.Rejected != ""):
			t.Errorf("job %s: finished %v, rejected %q", j.Job.ID, j.Finished, j.Rejected)
		}
	}
}

type refuseAll struct{}

func (refuseAll) Admit(context.Context, *scheduler.Snapshot, spec.Job) (bool, string, error) {
	return false, "closed", nil
}

func TestAdmission(t *testing.T) {
	c := config(script{}, job("a", 0, 1, 1))
	c.Admission = refuseAll{}
	if r := mustRun(t, c); r.Jobs[0].Rejected != "closed" {
		t.Errorf("rejected %q, want closed", r.Jobs[0].Rejected)
	}
}

// The run ends although a policy grants nothing.
func TestDeadlock(t *testing.T) {
	for name, p := range map[string]scheduler.Policy{
		"idle": script{},
		"waking up for ever": policyFunc(func(snap *scheduler.Snapshot) scheduler.Decision {
			return scheduler.Decision{Wake: snap.Now + s}
		}),
	} {
		t.Run(name, func(t *testing.T) {
			r := mustRun(t, config(p, job("a", 0, 1, 1), job("b", 0, 1, 1)))
			for _, j := range r.Jobs {
				if j.Finished || !strings.Contains(j.Unfinished, "no devices") {
					t.Errorf("job %s: finished %v, unfinished %q", j.Job.ID, j.Finished, j.Unfinished)
				}
			}
		})
	}
}

func TestHorizon(t *testing.T) {
	c := config(script{{grants: map[spec.JobID]string{"a": "0:1", "b": "0:2"}}}, job("a", 0, 1, 1e18), job("b", 0, 2, 10))
	for _, h := range []time.Duration{0, time.Hour} {
		c.Horizon = h
		r := mustRun(t, c)
		if a, b := r.Jobs[0], r.Jobs[1]; a.Finished || !b.Finished || !strings.Contains(a.Unfinished, "horizon") {
			t.Errorf("horizon %v: a %v %q, b %v", h, a.Finished, a.Unfinished, b.Finished)
		}
	}
}

// What is held at the horizon was held until then, work beyond every horizon
// does not end at it, and a start cost beyond it does not overflow.
func TestHorizonCutsHolding(t *testing.T) {
	for _, cost := range []time.Duration{0, 1 << 62} {
		for _, h := range []time.Duration{0, time.Hour} {
			c := config(script{{grants: map[spec.JobID]string{"a": "0:3"}}}, job("a", 0, 3, 1e18))
			c.Costs = sim.PerStart(func(spec.Job) time.Duration { return cost })
			c.Horizon = h
			until := h.Seconds()
			if h == 0 {
				until = 100 * 365 * 24 * 3600
			}
			if a := mustRun(t, c).Jobs[0]; a.Finished || a.Attained != 3*until {
				t.Errorf("start cost %v, horizon %v: finished %v, %g device-s, want %g", cost, h, a.Finished, a.Attained, 3*until)
			}
		}
	}
}

// A recorded duration is met to the nanosecond for any number of steps, so that planned
// coincidences of events happen.
func TestDurationIsExact(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		a := spec.Job{ID: "a", Devices: 4, Submit: time.Duration(rapid.Int64Range(0, 1e15).Draw(rt, "submit")),
			Duration: time.Duration(rapid.Int64Range(1, 1e14).Draw(rt, "duration")),
			Steps:    float64(rapid.IntRange(0, 1e6).Draw(rt, "steps"))}
		c := config(script{{grants: map[spec.JobID]string{"a": "0:4"}}}, a)
		c.Truth, c.Costs = sim.Durations{}, nil
		r, err := sim.Run(t.Context(), c)
		if err != nil {
			rt.Fatal(err)
		}
		if got := r.Jobs[0].JCT(); got != a.Duration {
			rt.Fatalf("%v takes %v", a.Duration, got)
		}
	})
}

// A policy may sort the slice of Snapshot.Jobs.
func TestShownJobsMayBeReordered(t *testing.T) {
	var jobs []spec.Job
	for i := range 20 {
		jobs = append(jobs, job(spec.JobID(fmt.Sprintf("j%02d", i)), time.Duration(i%7)*s, 1, float64(10+i*13%11)))
	}
	p := policyFunc(func(snap *scheduler.Snapshot) scheduler.Decision {
		if !slices.IsSortedFunc(snap.Jobs(), func(a, b *scheduler.JobState) int {
			return cmp.Or(cmp.Compare(a.Job.Submit, b.Job.Submit), cmp.Compare(a.Job.ID, b.Job.ID))
		}) {
			t.Errorf("at %v the snapshot is not sorted", snap.Now)
		}
		d := scheduler.Decision{Grants: keep(snap)}
		for node, slots := range snap.Free().Free {
			for _, j := range snap.Jobs() {
				if j.Grant == nil && slots > 0 && int(j.Job.ID[2])%2 == node {
					d.Grants = append(d.Grants, grant(j.Job.ID, fmt.Sprintf("%d:1", node)))
					slots--
				}
			}
		}
		slices.Reverse(snap.Jobs())
		return d
	})
	for _, j := range mustRun(t, config(p, jobs...)).Jobs {
		if !j.Finished {
			t.Errorf("job %s: %s", j.Job.ID, j.Unfinished)
		}
	}
}

// The run ends when the scored jobs are done; the others are reported.
func TestScore(t *testing.T) {
	grants := map[spec.JobID]string{"j1": "0:1", "j2": "0:1", "j3": "0:1"}
	c := config(script{{grants: grants}}, job("j1", 0, 1, 1000), job("j2", 0, 1, 10), job("j3", 500*s, 1, 10))
	c.Score = func(id spec.JobID) bool { return id == "j2" }
	r := mustRun(t, c)
	if j := r.Jobs[0]; j.Finished || j.Scored || !strings.Contains(j.Unfinished, "scored jobs were done") || j.Attained != 20 {
		t.Errorf("j1: %+v", j)
	}
	if j := r.Jobs[1]; !j.Finished || !j.Scored || j.End != 20*s {
		t.Errorf("j2: %+v", j)
	}
	if j := r.Jobs[2]; !strings.Contains(j.Unfinished, "not submitted") {
		t.Errorf("j3: %+v", j)
	}
}

func TestConfigValidate(t *testing.T) {
	ok := config(script{})
	for name, change := range map[string]func(*sim.Config){
		"no nodes":  func(c *sim.Config) { c.Cluster = spec.Cluster{} },
		"no policy": func(c *sim.Config) { c.Policy = nil },
		"no truth":  func(c *sim.Config) { c.Truth = nil },
		"horizon":   func(c *sim.Config) { c.Horizon = -1 },
		"too long":  func(c *sim.Config) { c.Horizon = 101 * 365 * 24 * time.Hour },
		"twice":     func(c *sim.Config) { c.Jobs = []spec.Job{job("a", 0, 1, 1), job("a", 0, 1, 1)} },
		"stages": func(c *sim.Config) {
			c.Round, c.Lockstep, c.Truth = time.Minute, &sim.Lockstep{}, ramp{}
		},
	} {
		c := ok
		change(&c)
		if _, err := sim.Run(t.Context(), c); err == nil || !strings.HasPrefix(err.Error(), "sim: ") {
			t.Errorf("%s: error %v", name, err)
		}
	}
	if r := mustRun(t, ok); len(r.Jobs) != 0 {
		t.Error("an empty workload has no records")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	ok.Jobs = []spec.Job{job("a", 0, 1, 1)}
	if _, err := sim.Run(ctx, ok); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}

// Two jobs end and one arrives at the same instant: the policy decides once, with the
// new job and without the other two.
func TestOneInstantOneDecision(t *testing.T) {
	var at []string
	p := policyFunc(func(snap *scheduler.Snapshot) scheduler.Decision {
		names := fmt.Sprint(snap.Now)
		for _, j := range snap.Jobs() {
			names += " " + string(j.Job.ID)
		}
		at = append(at, names)
		d := scheduler.Decision{Grants: keep(snap)}
		for _, j := range snap.Jobs() {
			if j.Grant == nil {
				d.Grants = append(d.Grants, grant(j.Job.ID, map[spec.JobID]string{"a": "0:2", "b": "1:2", "c": "0:4"}[j.Job.ID]))
			}
		}
		return d
	})
	r := mustRun(t, config(p, job("b", 0, 2, 40), job("a", 0, 2, 40), job("c", 30*s, 4, 40)))
	want := []string{"0s a b", "30s c", "50s"}
	if diff := gocmp.Diff(want, at); diff != "" {
		t.Error(diff)
	}
	if r.Jobs[2].End != 50*s {
		t.Errorf("c ends at %v, want 50s", r.Jobs[2].End)
	}
}

func TestWarningsOnce(t *testing.T) {
	p := policyFunc(func(snap *scheduler.Snapshot) scheduler.Decision {
		d := scheduler.Decision{Warnings: []string{"careful"}}
		for _, j := range snap.Jobs() {
			d.Grants = append(d.Grants, grant(j.Job.ID, "0:1"))
		}
		return d
	})
	if r := mustRun(t, config(p, job("a", 0, 1, 1))); !gocmp.Equal(r.Warnings, []string{"careful"}) {
		t.Errorf("warnings %q", r.Warnings)
	}
}
