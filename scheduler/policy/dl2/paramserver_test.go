package dl2

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/scheduler"
	"github.com/pacer-ml/pacer/scheduler/policy"
	"github.com/pacer-ml/pacer/scheduler/policy/paramserver"
	"github.com/pacer-ml/pacer/scheduler/schedulertest"
)

// scripted chooses actions in order and then ends the slot. It records the views.
type scripted struct {
	actions []int
	saw     []string
}

func (c *scripted) Choose(v *View) (int, error) {
	var b strings.Builder
	for i := range v.Seats {
		s := &v.Seats[i]
		fmt.Fprintf(&b, "%s has %d+%d of %d+%d, share %.3g, %.3g s, least %.3g s, gains %.3g; ", s.Job.Job.ID, s.Workers, s.Servers, s.heldW, s.heldS, s.share, s.sec, s.least, s.gains)
	}
	fmt.Fprintf(&b, "free %.3g, may %v", v.State[len(v.State)-1], v.Allowed)
	c.saw = append(c.saw, b.String())
	if len(c.actions) == 0 {
		return v.Void, nil
	}
	a := c.actions[0]
	c.actions = c.actions[1:]
	return a, nil
}

// TestDL2ParamServer checks the views of jobs with parameter servers, and the grants that the
// actions lead to: a replica, a server, or one of each for a job, or the end of the slot.
func TestDL2ParamServer(t *testing.T) {
	w, like := &schedulertest.World{}, spec.Job{GlobalBatch: 12}
	for n, rate := range map[paramserver.Counts]float64{paramserver.OneOfEach: 1, {Replicas: 2, Servers: 1}: 2, {Replicas: 1, Servers: 2}: 1.5, {Replicas: 2, Servers: 2}: 4} {
		w.Add("a", "x", like.ParamServerPlan(n.Replicas, n.Servers), spec.Shape{}, rate)
		w.Add("other", "x", like.ParamServerPlan(n.Replicas, n.Servers), spec.Shape{}, rate)
	}
	cluster := schedulertest.Nodes(1, 2)
	cluster.Groups[0].CPUs = 8
	job := func(id spec.JobID, model string) *scheduler.JobState {
		j := idlePS(id).JobState
		j.Job.Model.Name, j.Remaining = model, 100
		return j
	}
	holds := func(id spec.JobID, n paramserver.Counts) *scheduler.JobState {
		j := holdingPS(id, n).JobState
		j.Job.Model.Name, j.Remaining = "a", 100
		return j
	}
	for _, c := range []struct {
		name    string
		down    bool
		actions []int
		jobs    []*scheduler.JobState
		saw     []string
		want    string
	}{
		{"one after the other", false, []int{2, 0, 1}, []*scheduler.JobState{job("j", "a")}, []string{
			"j has 0+0 of 0+0, share 0, 0 s, least 1 s, gains [0 0 1]; free 1, may [false false true true]",
			"j has 1+1 of 0+0, share 0.5, 1 s, least 1 s, gains [0.693 0.405 1.39]; free 0.5, may [true true true true]",
			"j has 2+1 of 0+0, share 1, 0.5 s, least 1 s, gains [0 0.693 0]; free 0, may [false true false true]",
		}, "j 2+2: 2 replicas and 2 parameter servers: by the network's preferences"},
		{"nothing said is one of each", false, nil, []*scheduler.JobState{job("j", "a")}, []string{
			"j has 0+0 of 0+0, share 0, 0 s, least 1 s, gains [0 0 1]; free 1, may [false false true true]",
		}, "j 1+1: 1 replica and 1 parameter server: "},
		{"what it holds", false, []int{2, 0}, []*scheduler.JobState{holds("j", paramserver.Counts{Replicas: 2, Servers: 1})}, []string{
			"j has 0+0 of 2+1, share 0, 0 s, least 1 s, gains [0 0 1]; free 1, may [false false true true]",
			"j has 1+1 of 2+1, share 0.5, 1 s, least 1 s, gains [0.693 0.405 1.39]; free 0.5, may [true true true true]",
			"j has 2+1 of 2+1, share 1, 0.5 s, least 1 s, gains [0 0.693 0]; free 0, may [false true false true]",
		}, "j 2+1: "},
		{"unknown models first, at their fastest", false, nil, []*scheduler.JobState{job("j", "a"), job("u", "other")}, nil,
			"u 2+2: 2 replicas and 2 parameter servers: fastest that fits: the network was not trained for its model\ndl2 was not trained for other, such jobs get the fastest numbers of replicas and servers that fit; " +
				"pacer learn dl2 trains a policy for the models of a workload"},
	} {
		t.Run(c.name, func(t *testing.T) {
			chooser := &scripted{actions: c.actions}
			p, err := New(policy.Deps{Oracle: w.Oracle(0, 1), Servers: w}, Form{Jobs: 1, Types: []string{"a"}, Servers: true, SlotSec: 300}, chooser)
			if err != nil {
				t.Fatal(err)
			}
			s := scheduler.NewSnapshot(0, cluster, c.jobs)
			s.Reasons = true
			d, err := p.Decide(t.Context(), s)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, g := range d.Grants {
				got = append(got, fmt.Sprintf("%s %d+%d: %s", g.Job, g.Plan.DP, g.Plan.ParamServers, d.Why[g.Job]))
			}
			if text := strings.Join(append(got, d.Warnings...), "\n"); text != c.want {
				t.Errorf("%s, want %s", text, c.want)
			}
			if saw, want := strings.Join(chooser.saw, "\n"), strings.Join(c.saw, "\n"); saw != want {
				t.Errorf("it was shown\n%s\nwant\n%s", saw, want)
			}
		})
	}
}

// TestDL2ParamServerSlots checks that between slots running jobs keep their grants, and waiting
// jobs get free resources.
func TestDL2ParamServerSlots(t *testing.T) {
	w, like := &schedulertest.World{}, spec.Job{GlobalBatch: 12}
	for _, n := range []paramserver.Counts{paramserver.OneOfEach, {Replicas: 2, Servers: 2}, {Replicas: 1, Servers: 2}, {Replicas: 2, Servers: 1}} {
		w.Add("a", "x", like.ParamServerPlan(n.Replicas, n.Servers), spec.Shape{}, float64(n.Tasks()))
	}
	cluster := schedulertest.Nodes(1, 2)
	cluster.Groups[0].CPUs = 8
	chooser := &scripted{}
	p, err := New(policy.Deps{Oracle: w.Oracle(0, 1), Servers: w}, Form{Jobs: 2, Types: []string{"a"}, Servers: true, SlotSec: 300}, chooser)
	if err != nil {
		t.Fatal(err)
	}
	running, waiting := holdingPS("running", paramserver.OneOfEach).JobState, idlePS("waiting").JobState
	running.Job.Model.Name, waiting.Job.Model.Name, running.Remaining, waiting.Remaining = "a", "a", 9, 9
	for _, step := range []struct {
		at      time.Duration
		actions []int
		want    string
	}{
		{0, []int{2, 5}, "running 1+1, waiting 1+1"},
		{100 * time.Second, []int{2}, "running 1+1, waiting 1+1"}, // for the waiting job, the only one with actions
		{300 * time.Second, []int{5, 3, 4}, "waiting 2+2"},
	} {
		chooser.actions = step.actions
		d, err := p.Decide(t.Context(), scheduler.NewSnapshot(step.at, cluster, []*scheduler.JobState{running, waiting}))
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, g := range d.Grants {
			got = append(got, fmt.Sprintf("%s %d+%d", g.Job, g.Plan.DP, g.Plan.ParamServers))
			if kept := g == running.Grant; g.Job == "running" && !kept {
				t.Errorf("at %v: the running job is granted %v anew", step.at, g.Slots)
			}
		}
		if text := strings.Join(got, ", "); text != step.want {
			t.Errorf("at %v: %s, want %s", step.at, text, step.want)
		}
	}
}

// idlePS returns a job with parameter servers that holds nothing.
func idlePS(id spec.JobID) *paramserver.PackedJob {
	j := &spec.Job{ID: id, GlobalBatch: 12, Devices: 1, Host: spec.Host{MilliCPUs: 2000}, ServerHost: spec.Host{MilliCPUs: 2000}}
	j.Plan = j.ParamServerPlan(1, 1)
	return &paramserver.PackedJob{JobState: &scheduler.JobState{Job: j}, Group: -1}
}

// holdingPS returns a job that holds at on node 0.
func holdingPS(id spec.JobID, at paramserver.Counts) *paramserver.PackedJob {
	t := idlePS(id)
	t.Grant = &scheduler.Grant{Job: id, Plan: t.Job.ParamServerPlan(at.Replicas, at.Servers), Shape: spec.NewShape(at.Replicas),
		Slots: []scheduler.Slot{{Devices: at.Replicas, Servers: at.Servers, Host: t.Job.HostFor(at.Replicas, at.Servers)}}}
	return t
}
