package sim_test

import (
	"testing"
	"time"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/scheduler"
	"github.com/pacer-ml/pacer/scheduler/sim"
)

var costTable = &sim.CostTable{
	Models: map[string]sim.ModelCosts{"m": {Launch: 1 * s, Checkpoint: 10 * s, Restore: 100 * s, Reshard: 1000 * s}},
	Others: &sim.ModelCosts{Launch: 7 * s},
}

func TestCostTable(t *testing.T) {
	m := &spec.Job{Model: spec.Model{Name: "m"}}
	four, other := grant("j", "0:4"), grant("j", "1:4")
	tensor := grant("j", "0:4")
	tensor.Plan = spec.Plan{TP: 4}.Normal()
	for _, c := range []struct {
		name string
		is   sim.Start
		want time.Duration
	}{
		{"first", sim.Start{Job: m, To: four}, 1 * s},
		{"first, not known where", sim.Start{Job: m}, 1 * s},
		{"again", sim.Start{Job: m, From: four, To: four}, 111 * s},
		{"elsewhere", sim.Start{Job: m, From: four, To: other}, 111 * s},
		{"another plan", sim.Start{Job: m, From: four, To: tensor}, 1111 * s},
		{"not known what", sim.Start{Job: m, From: four}, 1111 * s},
		{"after a failure", sim.Start{Job: m, From: four, To: four, Failed: true}, 101 * s},
		{"after a failure, another plan", sim.Start{Job: m, From: four, To: tensor, Failed: true}, 1101 * s},
		{"another model", sim.Start{Job: &spec.Job{}, From: four, To: tensor}, 7 * s},
	} {
		if got := costTable.Start(c.is); got != c.want {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
	if got := costTable.Checkpoint(m, four); got != 10*s {
		t.Errorf("a checkpoint takes %v, want 10s", got)
	}
}

// A running job that keeps a node pays the cost of a change, all others that of a start.
func TestResizing(t *testing.T) {
	costs := sim.Resizing{Costs: sim.PerStart(func(spec.Job) time.Duration { return 30 * s }), Resize: 2 * s}
	one, two, other := grant("j", "0:4"), grant("j", "0:2+1:2"), grant("j", "2:4")
	cpu := psJob("j", 0, 100)
	for _, c := range []struct {
		name string
		is   sim.Start
		want time.Duration
	}{
		{"first", sim.Start{To: one}, 30 * s},
		{"again", sim.Start{From: one, To: one}, 30 * s},
		{"while it runs", sim.Start{From: one, To: two, Running: true}, 2 * s},
		{"while it runs, not known where", sim.Start{From: one, Running: true}, 2 * s},
		{"elsewhere", sim.Start{From: one, To: other, Running: true}, 30 * s},
		{"one parameter server stays", sim.Start{From: psGrant(cpu, scheduler.Slot{Node: 0, Workers: 1}, scheduler.Slot{Node: 1, Servers: 1}),
			To: psGrant(cpu, scheduler.Slot{Node: 1, Servers: 1}, scheduler.Slot{Node: 2, Workers: 2}), Running: true}, 2 * s},
	} {
		c.is.Job = &spec.Job{}
		if got := costs.Start(c.is); got != c.want {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
	costs.Resize = time.Minute
	if got := costs.Start(sim.Start{Job: &spec.Job{}, From: one, To: two, Running: true}); got != 30*s {
		t.Errorf("a change costs %v, a start 30s", got)
	}
}

// The engine charges less for resizing a running job than for a start, and JobState has
// that cost beforehand: of 200 steps at 2 steps/s, 20 are done 10 s after the first, and
// the others take 45 s on 4 devices.
func TestResizeWhileRunning(t *testing.T) {
	var costs []time.Duration
	c := config(policyFunc(func(snap *scheduler.Snapshot) scheduler.Decision {
		if len(snap.Jobs()) == 0 {
			return scheduler.Decision{}
		}
		costs = append(costs, snap.Jobs()[0].StartCost)
		if snap.Now < 20*s {
			return scheduler.Decision{Grants: []*scheduler.Grant{grant("j", "0:2")}, Wake: 20 * s}
		}
		return scheduler.Decision{Grants: []*scheduler.Grant{grant("j", "0:2+1:2")}}
	}), job("j", 0, 2, 200))
	c.Costs = sim.Resizing{Costs: c.Costs, Resize: s}
	r := mustRun(t, c)
	if got, want := r.Jobs[0].End, 66*s; got != want || costs[0] != 10*s || costs[1] != s {
		t.Errorf("the job ends at %v, want %v; costs %v", got, want, costs)
	}
}

// 14 bytes of each of 1e9 parameters at 2 GB/s and node, 30 s of restart.
func TestStateCosts(t *testing.T) {
	j := &spec.Job{Model: spec.Model{Name: "m", ParamCount: 1e9}}
	one, two := grant("j", "0:4"), grant("j", "0:4+1:4")
	costs := &sim.StateCosts{}
	for _, c := range []struct {
		name string
		is   sim.Start
		want time.Duration
	}{
		{"first", sim.Start{Job: j, To: two}, 30 * s},
		{"again", sim.Start{Job: j, From: one, To: one}, 44 * s},
		{"on more nodes", sim.Start{Job: j, From: one, To: two}, 40500 * time.Millisecond},
		{"not known where", sim.Start{Job: j, From: two}, 37 * s},
		{"after a failure", sim.Start{Job: j, From: two, To: one, Failed: true}, 37 * s},
		{"of unknown size", sim.Start{Job: &spec.Job{}, From: one, To: one}, 30 * s},
	} {
		if got := costs.Start(c.is); got != c.want {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
	if got := costs.Checkpoint(j, two); got != 3500*time.Millisecond {
		t.Errorf("a checkpoint takes %v, want 3.5s", got)
	}
	costs = &sim.StateCosts{RestartSec: 5, NodeBps: 1e9}
	if got := costs.Start(sim.Start{Job: j, From: one, To: two}); got != 26*s {
		t.Errorf("at 1 GB/s with 5 s of restart: %v, want 26s", got)
	}
}

// A job pays the start cost of its JobState: 1 s at first, 1111 s for a change while it
// runs, 111 s after a stop.
func TestCostsAreToldAndPaid(t *testing.T) {
	var told []time.Duration
	p := policyFunc(func(snap *scheduler.Snapshot) scheduler.Decision {
		var d scheduler.Decision
		for _, j := range snap.Jobs() {
			told = append(told, j.StartCost)
			if snap.Now < 20*s || snap.Now >= 30*s {
				d.Grants = append(d.Grants, grant("a", "0:4"))
			}
		}
		for _, wake := range []time.Duration{5 * s, 20 * s, 30 * s} {
			if d.Wake == 0 && wake > snap.Now {
				d.Wake = wake
			}
		}
		return d
	})
	a := job("a", 0, 4, 100)
	a.Model.Name = "m"
	c := config(p, a)
	c.Costs = costTable
	r := mustRun(t, c)
	// 19 s of training before 20 s, 6 s after 30 s and 111 s more.
	if r.Jobs[0].End != 147*s || r.Jobs[0].Attained != 4*(20+117) {
		t.Errorf("ends at %v with %g device-s, want 2m27s with 548", r.Jobs[0].End, r.Jobs[0].Attained)
	}
	want := []time.Duration{1 * s, 1111 * s, 1111 * s, 111 * s}
	if len(told) != len(want) {
		t.Fatalf("told %v, want %v", told, want)
	}
	for i := range want {
		if told[i] != want[i] {
			t.Errorf("told %v, want %v", told, want)
		}
	}
}

// A job stopped before it trained has no checkpoint to restore: its start at 2 s costs as
// much as the first.
func TestNothingTrainedNothingRestored(t *testing.T) {
	p := policyFunc(func(snap *scheduler.Snapshot) (d scheduler.Decision) {
		for range snap.Jobs() {
			if snap.Now < s/2 || snap.Now >= 2*s {
				d.Grants = append(d.Grants, grant("a", "0:4"))
			}
		}
		for _, wake := range []time.Duration{2 * s, s / 2} {
			if snap.Now < wake {
				d.Wake = wake
			}
		}
		return d
	})
	a := job("a", 0, 4, 100)
	a.Model.Name = "m"
	c := config(p, a)
	c.Costs = costTable
	if r := mustRun(t, c); r.Jobs[0].End != 28*s || r.Jobs[0].Attained != 4*(0.5+26) {
		t.Errorf("ends at %v with %g device-s, want 28s with 106", r.Jobs[0].End, r.Jobs[0].Attained)
	}
}

// A checkpoint of 10 s after every 10 s of training: three pauses in 40 s of
// training from 1 s on, none at the end.
func TestCheckpointsPauseTraining(t *testing.T) {
	a := job("a", 0, 4, 160)
	a.Model.Name = "m"
	c := config(script{{grants: map[spec.JobID]string{"a": "0:4"}}}, a)
	c.Costs, c.CheckpointEvery = costTable, 10*s
	if r := mustRun(t, c); r.Jobs[0].End != 71*s {
		t.Errorf("ends at %v, want 1m11s", r.Jobs[0].End)
	}
}
