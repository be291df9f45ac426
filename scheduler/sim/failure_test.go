package sim_test

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/scheduler"
	"github.com/pacer-ml/pacer/scheduler/sim"
)

// firstFit starts each job on its devices of the first node that has them free,
// and leaves it there.
var firstFit = policyFunc(func(snap *scheduler.Snapshot) scheduler.Decision {
	free := snap.Free()
	d := scheduler.Decision{Grants: keep(snap)}
	for _, j := range snap.Jobs() {
		for node := 0; node < len(free.Free) && j.Grant == nil; node++ {
			if g := grant(j.Job.ID, fmt.Sprintf("%d:%d", node, j.Job.Devices)); free.Take(g.Slots) {
				d.Grants = append(d.Grants, g)
				break
			}
		}
	}
	return d
})

// lines returns the events, a line each.
func lines(c *sim.Config) *[]string {
	var out []string
	c.Observe = func(e sim.Event) {
		line := fmt.Sprintf("%v %s", e.At, e.Kind)
		if e.Job != nil {
			line += " " + string(e.Job.ID)
		}
		if e.Kind == sim.NodeDown || e.Kind == sim.NodeUp || e.Kind == sim.Failed || e.Kind == sim.Evicted {
			line += fmt.Sprintf(" node %d", e.Node)
		}
		if e.Grant != nil {
			line += fmt.Sprintf(" %v", e.Grant.Slots)
		}
		out = append(out, line)
	}
	return &out
}

// Node 0 is down from 35 s to 100 s. a trained from 10 s on with a checkpoint of
// 2 s every 10 s: complete at 22 s and, the next, at 34 s, so that 4 steps and a
// second are lost. It pays its start on node 1, which b leaves at 68 s, and has
// 120 steps to go: 30 s and two checkpoints.
func TestFailure(t *testing.T) {
	c := config(firstFit, job("a", 0, 4, 200), job("b", 0, 4, 200))
	c.Costs, c.CheckpointEvery = &sim.CostTable{Others: &sim.ModelCosts{Launch: 10 * s, Checkpoint: 2 * s, Restore: 5 * s}}, 10*s
	c.Failures = sim.OutageTable{0: {{Down: 35 * s, Up: 100 * s}}}
	got := lines(&c)
	r := mustRun(t, c)
	want := []string{
		"0s submitted a", "0s submitted b", "0s started a [{0 4}]", "0s started b [{1 4}]",
		"35s down node 0", "35s failed a node 0 [{0 4}]",
		"1m8s completed b [{1 4}]", "1m8s started a [{1 4}]", "1m40s up node 0", "1m57s completed a [{1 4}]",
	}
	if diff := gocmp.Diff(want, *got); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
	a := sim.JobRecord{Job: job("a", 0, 4, 200), End: 117 * s, Finished: true, Scored: true, Attained: 4 * (35 + 49), Failures: 1, LostSteps: 4, LostSec: 4}
	if diff := gocmp.Diff(a, r.Jobs[0], cmpopts.EquateApprox(0, 1e-9)); diff != "" {
		t.Errorf("a (-want +got):\n%s", diff)
	}
}

// Without checkpoints everything since the start is lost, the start included; so
// is a start that was not over.
func TestFailureWithoutCheckpoints(t *testing.T) {
	c := config(firstFit, job("a", 0, 4, 100))
	c.Failures = sim.OutageTable{0: {{Down: 30 * s, Up: 1000 * s}}, 1: {{Down: 35 * s, Up: 40 * s}, {Down: 80 * s, Up: 90 * s}}}
	r := mustRun(t, c)
	// On node 1 from 30 s to 35 s, again from 40 s: 10 s to start, 25 s of training.
	want := sim.JobRecord{Job: job("a", 0, 4, 100), End: 75 * s, Finished: true, Scored: true, Attained: 4 * 70, Failures: 2, LostSteps: 80, LostSec: 4 * 35}
	if diff := gocmp.Diff(want, r.Jobs[0], cmpopts.EquateApprox(0, 1e-9)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// A job that ends when its node fails counts as completed. A job that starts at that time
// starts on another node. A node that is repaired and fails at the same time is down.
func TestFailureAtTheSameInstant(t *testing.T) {
	c := config(firstFit, job("a", 0, 4, 100), job("b", 35*s, 4, 100))
	c.Failures = sim.OutageTable{0: {{Down: 35 * s, Up: 40 * s}, {Down: 40 * s, Up: 50 * s}}}
	got := lines(&c)
	r := mustRun(t, c)
	if r.Jobs[0].End != 35*s || r.Jobs[0].Failures != 0 || r.Jobs[1].End != 70*s {
		t.Errorf("a ends at %v with %d failures, b at %v; want 35s, 0, 1m10s", r.Jobs[0].End, r.Jobs[0].Failures, r.Jobs[1].End)
	}
	want := []string{"40s up node 0", "40s down node 0", "50s up node 0"}
	if i := slices.Index(*got, want[0]); i < 0 || !slices.Equal((*got)[i:i+3], want) {
		t.Errorf("events %q, want %q among them", *got, want)
	}
}

// Devices of a node that is down are not free, and granting them ends the run.
func TestDownNodesCannotBeGranted(t *testing.T) {
	var free []int
	p := policyFunc(func(snap *scheduler.Snapshot) scheduler.Decision {
		free = append(free, snap.Free().Free...)
		d := scheduler.Decision{Wake: 10 * s}
		if snap.Now == 10*s {
			return scheduler.Decision{Grants: []*scheduler.Grant{grant("a", "1:1")}}
		}
		return d
	})
	c := config(p, job("a", 0, 1, 1))
	c.Failures = sim.OutageTable{1: {{Down: 0, Up: 20 * s}}}
	if _, err := sim.Run(t.Context(), c); err == nil || !strings.Contains(err.Error(), "job a: node 1 is down") {
		t.Errorf("error %v", err)
	}
	if !slices.Equal(free, []int{4, 0, 4, 0}) {
		t.Errorf("free devices %v, want none of node 1", free)
	}
}

// With rounds, devices are lost at once, and granted again when a round begins.
func TestFailureWithinRound(t *testing.T) {
	c := config(firstFit, job("a", 0, 4, 100))
	c.Round = 60 * s
	c.Failures = sim.OutageTable{0: {{Down: 30 * s, Up: math.MaxInt64}}}
	if r := mustRun(t, c); r.Jobs[0].End != 95*s || r.Jobs[0].Attained != 4*(30+35) {
		t.Errorf("ends at %v with %g device-s, want 1m35s with 260", r.Jobs[0].End, r.Jobs[0].Attained)
	}
}

// A run without progress ends although nodes fail forever.
func TestFailuresEnd(t *testing.T) {
	never := policyFunc(func(*scheduler.Snapshot) scheduler.Decision { return scheduler.Decision{} })
	c := config(never, job("a", 0, 4, 100))
	life, err := sim.NewLifetimes(c.Cluster, 1, func(*spec.NodeGroup) sim.Lifetime { return sim.Lifetime{Up: time.Hour, Down: time.Hour} })
	if err != nil {
		t.Fatal(err)
	}
	c.Failures = life
	if r := mustRun(t, c); r.Jobs[0].Finished || !strings.Contains(r.Jobs[0].Unfinished, "gave it no devices") {
		t.Errorf("%+v", r.Jobs[0])
	}
}

// Up and down times have the configured means in each group.
func TestLifetimes(t *testing.T) {
	cl := spec.Cluster{Groups: []spec.NodeGroup{{Count: 1, Devices: 1}, {Count: 2, Devices: 1}}}
	l, err := sim.NewLifetimes(cl, 5, func(g *spec.NodeGroup) sim.Lifetime {
		if g.Count == 1 {
			return sim.Lifetime{}
		}
		return sim.Lifetime{Up: 10 * time.Hour, Down: time.Hour}
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, ok := l.Outages(0)(); ok {
		t.Error("a node without lifetime goes down")
	}
	first, again, other := l.Outages(1), l.Outages(1), l.Outages(2)
	var up, down, last time.Duration
	const n = 2000
	for range n {
		o, ok := first()
		same, _ := again()
		different, _ := other()
		if !ok || o != same || o == different || o.Down <= last || o.Up <= o.Down {
			t.Fatalf("%v %v, again %v, of another node %v, after %v", o, ok, same, different, last)
		}
		up, down, last = up+o.Down-last, down+o.Up-o.Down, o.Up
	}
	within := 4 / math.Sqrt(n) // four standard errors of an exponential's mean
	if u, d := up.Hours()/n, down.Hours()/n; math.Abs(u-10) > 10*within || math.Abs(d-1) > within {
		t.Errorf("up for %g h and down for %g h on average, want 10 and 1", u, d)
	}
	if _, err := sim.NewLifetimes(cl, 1, func(*spec.NodeGroup) sim.Lifetime { return sim.Lifetime{Up: time.Hour} }); err == nil {
		t.Error("down for 0 s is no error")
	}
}

// A policy that wakes every minute decides after any outage, however long, and a job
// that progresses between failures, however many, ends.
func TestOutagesAreWaitedFor(t *testing.T) {
	watchful := policyFunc(func(snap *scheduler.Snapshot) scheduler.Decision {
		d, err := firstFit.Decide(context.Background(), snap)
		d.Wake = snap.Now + 60*s
		if err != nil {
			t.Error(err)
		}
		return d
	})
	for _, round := range []time.Duration{0, 60 * s} {
		c := config(watchful, job("a", 0, 4, 400))
		c.Cluster, c.Round, c.Failures = spec.Cluster{Groups: []spec.NodeGroup{{Count: 1, Devices: 4}}}, round, sim.OutageTable{0: {{Down: 5 * s, Up: 1_000_015 * s}}}
		want := 1_000_125 * s // 10 s to start, 100 s of training
		if round > 0 {
			want = 1_000_130 * s
		}
		if a := mustRun(t, c).Jobs[0]; a.End != want {
			t.Errorf("rounds of %v: ends at %v, want %v; unfinished %q", round, a.End, want, a.Unfinished)
		}
	}
	c := config(firstFit, job("a", 0, 4, 4*50_000))
	c.CheckpointEvery, c.Failures = 30*s, sim.OutageTable{}
	c.Cluster = spec.Cluster{Groups: []spec.NodeGroup{{Count: 1, Devices: 4}}}
	for i := range time.Duration(2000) {
		c.Failures.(sim.OutageTable)[0] = append(c.Failures.(sim.OutageTable)[0], sim.Outage{Down: (i + 1) * 60 * s, Up: (i+1)*60*s + s})
	}
	if a := mustRun(t, c).Jobs[0]; !a.Finished || a.Failures < 1000 {
		t.Errorf("with checkpoints: finished %v after %d failures, want more than 1000; unfinished %q", a.Finished, a.Failures, a.Unfinished)
	}
}

// A run without progress is given up whether the job holds devices at that moment or not:
// if the first outage coincides with the arrival, the last one is over.
func TestHopelessFailures(t *testing.T) {
	for _, first := range []time.Duration{0, 20 * s} {
		c := config(firstFit, job("a", 0, 4, 4000))
		c.Cluster = spec.Cluster{Groups: []spec.NodeGroup{{Count: 1, Devices: 4}}}
		var outages []sim.Outage
		for i := range time.Duration(3000) {
			outages = append(outages, sim.Outage{Down: first + 21*i*s, Up: first + (21*i+1)*s})
		}
		c.Failures = sim.OutageTable{0: outages}
		if a := mustRun(t, c).Jobs[0]; a.Finished || a.Failures > 1000 || !strings.Contains(a.Unfinished, "without progress of any job") {
			t.Errorf("first at %v: finished %v after %d failures, unfinished %q", first, a.Finished, a.Failures, a.Unfinished)
		}
	}
}
