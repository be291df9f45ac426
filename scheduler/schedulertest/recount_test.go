package schedulertest_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/scheduler"
	"github.com/pacer-ml/pacer/scheduler/policy"
	"github.com/pacer-ml/pacer/scheduler/policy/builtin"
	"github.com/pacer-ml/pacer/scheduler/schedulertest"
	"github.com/pacer-ml/pacer/scheduler/sim"
)

// TestRecountFinds checks that a recount finds errors in the events and in the result.
func TestRecountFinds(t *testing.T) {
	p, err := builtin.Policies.New(policy.Spec{Name: "fifo"}, policy.Deps{})
	if err != nil {
		t.Fatal(err)
	}
	// a is on node 0, which fails at 100 s; b waits, as c does for both nodes.
	c := sim.Config{
		Cluster: schedulertest.Nodes(2, 4), Policy: p, Truth: sim.Durations{}, CheckpointEvery: 30 * time.Second,
		Failures: sim.OutageTable{0: {{Down: 100 * time.Second, Up: 1000 * time.Second}}},
		Jobs: []spec.Job{
			{ID: "a", Devices: 4, Duration: 200 * time.Second}, {ID: "b", Devices: 4, Duration: 300 * time.Second},
			{ID: "c", Devices: 8, Duration: 50 * time.Second}, {ID: "d", Devices: 99, Duration: time.Second},
		},
	}
	var events []sim.Event
	c.Observe = func(e sim.Event) { events = append(events, e) }
	result, err := sim.Run(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	recount := func(events []sim.Event, result *sim.Result) error {
		r := &schedulertest.Recount{
			Cluster: c.Cluster, Jobs: c.Jobs, Every: c.CheckpointEvery,
			Rate:  func(*spec.Job, *scheduler.Grant) float64 { return 1 },
			Costs: func(*spec.Job) sim.ModelCosts { return sim.ModelCosts{} },
		}
		for _, e := range events {
			r.Observe(e)
		}
		return r.Check(result)
	}
	if err := recount(events, result); err != nil {
		t.Fatalf("%v; events %v", err, events)
	}
	find := func(events []sim.Event, k sim.EventKind, job spec.JobID) int {
		return slices.IndexFunc(events, func(e sim.Event) bool { return e.Kind == k && (job == "" || e.Job != nil && e.Job.ID == job) })
	}
	for want, spoil := range map[string]func(e []sim.Event, r *sim.Result) []sim.Event{
		"events are not in order": func(e []sim.Event, _ *sim.Result) []sim.Event {
			e[find(e, sim.Started, "a")].At = time.Hour
			return e
		},
		`job a: started after it was "holding"`: func(e []sim.Event, _ *sim.Result) []sim.Event {
			i := find(e, sim.Started, "a")
			return slices.Insert(e, i, e[i])
		},
		"8 devices of node 0 are held": func(e []sim.Event, _ *sim.Result) []sim.Event {
			e[find(e, sim.Started, "b")].Grant = &scheduler.Grant{Job: "b", Plan: spec.Plan{DP: 4}, Shape: spec.NewShape(4), Slots: []scheduler.Slot{{Node: 0, Devices: 4}}}
			return e
		},
		"holds devices of node 0, which is down": func(e []sim.Event, _ *sim.Result) []sim.Event {
			return slices.Delete(e, find(e, sim.Failed, "a"), find(e, sim.Failed, "a")+1)
		},
		"node 0, which is down": func(e []sim.Event, _ *sim.Result) []sim.Event {
			up := e[find(e, sim.NodeUp, "")]
			e = slices.DeleteFunc(e, func(e sim.Event) bool { return e.Kind == sim.NodeUp })
			return append(e, up)
		},
		"node 0 goes down for the second time": func(e []sim.Event, _ *sim.Result) []sim.Event {
			i := find(e, sim.NodeDown, "")
			return slices.Insert(e, i, e[i])
		},
		"job b completes after": func(e []sim.Event, _ *sim.Result) []sim.Event {
			i := find(e, sim.Completed, "b")
			e[i].At -= time.Millisecond
			return e
		},
		"ga=1 on 8":     func(e []sim.Event, _ *sim.Result) []sim.Event { return spoilShape(e, find(e, sim.Started, "a")) },
		"two records":   func(e []sim.Event, r *sim.Result) []sim.Event { r.Jobs[1] = r.Jobs[0]; return e },
		"want one of":   func(e []sim.Event, r *sim.Result) []sim.Event { r.Jobs[2].Unfinished = "for no reason"; return e },
		"3 records of":  func(e []sim.Event, r *sim.Result) []sim.Event { r.Jobs = r.Jobs[:3]; return e },
		"recounted 0s":  func(e []sim.Event, r *sim.Result) []sim.Event { r.Jobs[0].Start = time.Second; return e },
		"device-s, rec": func(e []sim.Event, r *sim.Result) []sim.Event { r.Jobs[0].Attained++; return e },
		"steps and":     func(e []sim.Event, r *sim.Result) []sim.Event { r.Jobs[0].LostSteps++; return e },
		"failures; rec": func(e []sim.Event, r *sim.Result) []sim.Event { r.Jobs[0].Failures++; return e },
		"usage":         func(e []sim.Event, r *sim.Result) []sim.Event { r.Usage[1].Held++; return e },
	} {
		e, r := slices.Clone(events), *result
		r.Jobs, r.Usage = slices.Clone(result.Jobs), slices.Clone(result.Usage)
		if err := recount(spoil(e, &r), &r); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q", err, want)
		}
	}
}

// The recount finds a job that fails although its node gave notice, one that is evicted without
// notice, and one on a node that is planned to be down.
func TestRecountFindsOutages(t *testing.T) {
	jobs := []spec.Job{{ID: "a", Devices: 4, Steps: 20}}
	for want, spoil := range map[string]func(e []sim.Event, r *sim.Result){
		"":                                    func([]sim.Event, *sim.Result) {},
		"job a loses work with node 0":        func(e []sim.Event, _ *sim.Result) { e[3].Kind = sim.Failed },
		"job a is evicted from node 0":        func(e []sim.Event, _ *sim.Result) { e[2].At, e[3].At = 9*time.Second, 9*time.Second },
		"node 0, which is planned":            func(e []sim.Event, _ *sim.Result) { e[4].At, e[5].At = 15*time.Second, 15*time.Second },
		"0 evictions, recounted 1":            func(_ []sim.Event, r *sim.Result) { r.Jobs[0].Evictions = 0 },
		"2 of them and of 0 failures by spot": func(_ []sim.Event, r *sim.Result) { r.Jobs[0].Reclaims = 2 },
	} {
		r := &schedulertest.Recount{
			Cluster: schedulertest.Nodes(1, 4), Jobs: jobs,
			Rate:  func(*spec.Job, *scheduler.Grant) float64 { return 1 },
			Costs: func(*spec.Job) sim.ModelCosts { return sim.ModelCosts{} },
			Away: func(_ int, at, _ time.Duration) (away, keeps, loses bool) {
				return at >= 10*time.Second && at < 20*time.Second, at == 10*time.Second, false
			},
		}
		g := &scheduler.Grant{Job: "a", Plan: spec.Plan{DP: 4}, Shape: spec.NewShape(4), Slots: []scheduler.Slot{{Devices: 4}}}
		events := []sim.Event{
			{Kind: sim.Submitted, Job: &jobs[0]}, {Kind: sim.Started, Job: &jobs[0], Grant: g},
			{At: 10 * time.Second, Kind: sim.NodeDown}, {At: 10 * time.Second, Kind: sim.Evicted, Job: &jobs[0], Grant: g},
			{At: 20 * time.Second, Kind: sim.NodeUp}, {At: 20 * time.Second, Kind: sim.Started, Job: &jobs[0], Grant: g},
			{At: 30 * time.Second, Kind: sim.Completed, Job: &jobs[0], Grant: g},
		}
		result := &sim.Result{Usage: []sim.Usage{{Held: 4}, {At: 10 * time.Second, Waiting: 1}, {At: 20 * time.Second, Held: 4}, {At: 30 * time.Second}}, Jobs: []sim.JobRecord{
			{Job: jobs[0], Finished: true, End: 30 * time.Second, Attained: 80, Restarts: 1, Preemptions: 1, Evictions: 1},
		}}
		spoil(events, result)
		for _, e := range events {
			r.Observe(e)
		}
		checkError(t, r.Check(result), want)
	}
}

// checkError reports an error without the text want, or any if that is "".
func checkError(t *testing.T, err error, want string) {
	t.Helper()
	switch {
	case want == "" && err != nil:
		t.Error(err)
	case want != "" && (err == nil || !strings.Contains(err.Error(), want)):
		t.Errorf("error %v, want %q", err, want)
	}
}

// The recount finds an overcommitted host, and a job that holds other host resources than
// it needs.
func TestRecountFindsHost(t *testing.T) {
	cluster := schedulertest.Nodes(1, 4)
	cluster.Groups[0].CPUs, cluster.Groups[0].HostBytes = 8, 1000
	need := spec.Host{MilliCPUs: 2500, Bytes: 200}
	for _, c := range []struct {
		a, b, holds spec.Host // of a and b each, and what a holds
		want        string
	}{
		{need, spec.Host{MilliCPUs: 1500}, need, ""},
		{need, spec.Host{MilliCPUs: 1501}, need, "8.002 CPUs of node 0 are held, it has 8"},
		{need, spec.Host{Bytes: 301}, need, "1002 bytes of the host of node 0 are held, it has 1000"},
		{need, spec.Host{}, spec.Host{MilliCPUs: 2500}, "job a is granted 5 CPUs and 0 bytes for 2 devices, and needs 5 CPUs and 400 bytes"},
	} {
		r := &schedulertest.Recount{
			Cluster: cluster, Jobs: []spec.Job{{ID: "a", Devices: 2, Steps: 10, Host: c.a}, {ID: "b", Devices: 2, Steps: 10, Host: c.b}},
			Rate:  func(*spec.Job, *scheduler.Grant) float64 { return 1 },
			Costs: func(*spec.Job) sim.ModelCosts { return sim.ModelCosts{} },
		}
		result := &sim.Result{Usage: []sim.Usage{{Held: 4}, {At: 10 * time.Second}}}
		grants := make([]*scheduler.Grant, len(r.Jobs))
		for i := range r.Jobs {
			j := &r.Jobs[i]
			holds := c.holds
			if i > 0 {
				holds = j.Host
			}
			grants[i] = &scheduler.Grant{Job: j.ID, Plan: spec.Plan{DP: 2}, Shape: spec.NewShape(2), Slots: []scheduler.Slot{{Devices: 2, Host: holds.Times(2)}}}
			r.Observe(sim.Event{Kind: sim.Submitted, Job: j})
			r.Observe(sim.Event{Kind: sim.Started, Job: j, Grant: grants[i]})
			result.Jobs = append(result.Jobs, sim.JobRecord{Job: *j, Finished: true, End: 10 * time.Second, Attained: 20})
		}
		for i := range r.Jobs {
			r.Observe(sim.Event{At: 10 * time.Second, Kind: sim.Completed, Job: &r.Jobs[i], Grant: grants[i]})
		}
		checkError(t, r.Check(result), c.want)
	}
}

// The recount finds errors of jobs that share devices: a and b share four at half their
// speeds from 0 to 10 s, when a ends; b ends at 15 s.
func TestRecountFindsSharing(t *testing.T) {
	jobs := []spec.Job{{ID: "a", Devices: 4, Steps: 5}, {ID: "b", Devices: 4, Steps: 10}}
	for want, spoil := range map[string]func(e []sim.Event, r *sim.Result){
		"": func([]sim.Event, *sim.Result) {},
		"job a shares devices with job b, but not the reverse": func(e []sim.Event, _ *sim.Result) {
			e[3].Grant = e[3].Grant.Beside("")
		},
		"8 devices of node 0 are held": func(e []sim.Event, _ *sim.Result) {
			e[2].Grant, e[3].Grant = e[2].Grant.Beside(""), e[3].Grant.Beside("")
		},
		"which shares [{0 3}]": func(e []sim.Event, _ *sim.Result) {
			g := *e[3].Grant
			g.Slots, g.Shape, g.Plan = []scheduler.Slot{{Devices: 3}}, spec.NewShape(3), spec.Plan{DP: 3}
			e[3].Grant = &g
		},
		`job b shares devices with "c"`:        func(e []sim.Event, _ *sim.Result) { e[3].Grant = e[3].Grant.Beside("c") },
		"job b continues with":                 func(e []sim.Event, _ *sim.Result) { e[5].Grant = e[3].Grant },
		"job b completes after 9 of 10":        func(e []sim.Event, _ *sim.Result) { e[6].At = 14 * time.Second },
		"40 device-s, recounted 20":            func(_ []sim.Event, r *sim.Result) { r.Jobs[0].Attained = 40 },
		"usage [{0s 8 0} {15s 0 0}], recounte": func(_ []sim.Event, r *sim.Result) { r.Usage[0].Held = 8 },
	} {
		r := &schedulertest.Recount{
			Cluster: schedulertest.Nodes(1, 4), Jobs: jobs,
			Rate:   func(*spec.Job, *scheduler.Grant) float64 { return 1 },
			Beside: func(*spec.Job, *scheduler.Grant, *spec.Job) float64 { return 0.5 },
			Costs:  func(*spec.Job) sim.ModelCosts { return sim.ModelCosts{} },
		}
		grant := func(job, with spec.JobID) *scheduler.Grant {
			return &scheduler.Grant{Job: job, With: with, Plan: spec.Plan{DP: 4}, Shape: spec.NewShape(4), Slots: []scheduler.Slot{{Devices: 4}}}
		}
		a, b := grant("a", "b"), grant("b", "a")
		alone := b.Beside("")
		events := []sim.Event{
			{Kind: sim.Submitted, Job: &jobs[0]}, {Kind: sim.Submitted, Job: &jobs[1]},
			{Kind: sim.Started, Job: &jobs[0], Grant: a}, {Kind: sim.Started, Job: &jobs[1], Grant: b},
			{At: 10 * time.Second, Kind: sim.Completed, Job: &jobs[0], Grant: a}, {At: 10 * time.Second, Kind: sim.Shared, Job: &jobs[1], Grant: alone},
			{At: 15 * time.Second, Kind: sim.Completed, Job: &jobs[1], Grant: alone},
		}
		result := &sim.Result{Usage: []sim.Usage{{Held: 4}, {At: 15 * time.Second}}, Jobs: []sim.JobRecord{
			{Job: jobs[0], Finished: true, End: 10 * time.Second, Attained: 20}, {Job: jobs[1], Finished: true, End: 15 * time.Second, Attained: 40},
		}}
		spoil(events, result)
		for _, e := range events {
			r.Observe(e)
		}
		checkError(t, r.Check(result), want)
	}
}

// spoilShape gives a grant a shape that differs from its slots.
func spoilShape(events []sim.Event, i int) []sim.Event {
	g := *events[i].Grant
	g.Shape = spec.NewShape(8)
	events[i].Grant = &g
	return events
}
