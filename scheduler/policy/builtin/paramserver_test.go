package builtin_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/scheduler"
	"github.com/pacer-ml/pacer/scheduler/compat/dl2"
	"github.com/pacer-ml/pacer/scheduler/policy"
	"github.com/pacer-ml/pacer/scheduler/policy/builtin"
	"github.com/pacer-ml/pacer/scheduler/policy/optimus"
	"github.com/pacer-ml/pacer/scheduler/policy/paramserver"
	"github.com/pacer-ml/pacer/scheduler/schedulertest"
)

// serverCluster returns a number of nodes of 2 devices and 8 CPUs.
func serverCluster(nodes int) spec.Cluster {
	c := schedulertest.Nodes(nodes, 2)
	c.Groups[0].CPUs = 8
	return c
}

// serverWorld returns a world in which a model runs with up to 4 replicas and servers.
func serverWorld(rates map[string]func(replicas, servers int) float64) *schedulertest.World {
	w := &schedulertest.World{}
	j := spec.Job{GlobalBatch: 12}
	for _, model := range []string{"m", "n"} {
		rate := rates[model]
		if rate == nil {
			continue
		}
		for r := 1; r <= 4; r++ {
			for s := 1; s <= 4; s++ {
				w.Add(model, "x", j.ParamServerPlan(r, s), spec.Shape{}, rate(r, s))
			}
		}
	}
	return w
}

// serverWorldOf returns a world in which a model runs with the listed numbers of replicas and
// servers; more are faster.
func serverWorldOf(model string, at [][2]int) *schedulertest.World {
	w, j := &schedulertest.World{}, spec.Job{GlobalBatch: 12}
	for _, n := range at {
		w.Add(model, "x", j.ParamServerPlan(n[0], n[1]), spec.Shape{}, both(n[0], n[1]))
	}
	return w
}

// serverJob returns a waiting job with done steps and left more to do. Each replica, on a
// device or not, and each server needs 2 CPUs.
func serverJob(id, model string, devices int, done, left float64) *scheduler.JobState {
	j := &spec.Job{ID: spec.JobID(id), Model: spec.Model{Name: model}, GlobalBatch: 12, Devices: devices,
		Host: spec.Host{MilliCPUs: 2000}, ServerHost: spec.Host{MilliCPUs: 2000}, Steps: done + left}
	j.Plan = j.ParamServerPlan(1, 1)
	return &scheduler.JobState{Job: j, Done: done, Remaining: left}
}

// serverGrants returns the grants of a policy, and their text as "job replicas+servers on
// nodes".
func serverGrants(t *testing.T, name string, w *schedulertest.World, q policy.Variants, c spec.Cluster, jobs ...*scheduler.JobState) (string, []*scheduler.Grant) {
	t.Helper()
	d := serverDecision(t, name, policy.Deps{Oracle: w.Oracle(0, 1), Servers: w, Variants: q}, scheduler.NewSnapshot(time.Hour, c, jobs))
	return grantsText(d), d.Grants
}

func serverDecision(t *testing.T, name string, deps policy.Deps, s *scheduler.Snapshot) scheduler.Decision {
	t.Helper()
	p, err := builtin.Policies.New(policy.Spec{Name: name}, deps)
	if err != nil {
		t.Fatal(err)
	}
	d, err := p.Decide(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// grantsText writes grants as "job replicas+servers on nodes".
func grantsText(d scheduler.Decision) string {
	var out []string
	for _, g := range d.Grants {
		nodes := []string{}
		for _, s := range g.Slots {
			nodes = append(nodes, fmt.Sprint(s.Node))
		}
		out = append(out, fmt.Sprintf("%s %d+%d on %s", g.Job, g.Plan.DP, g.Plan.ParamServers, strings.Join(nodes, ",")))
	}
	return strings.Join(out, "; ")
}

// both is a speed that grows with the numbers of replicas and servers.
func both(replicas, servers int) float64 { return float64(replicas + servers) }

// TestParamServerRules checks the grants of each policy in a case worked out by hand.
func TestParamServerRules(t *testing.T) {
	grows := serverWorld(map[string]func(int, int) float64{"m": both, "n": both})
	peak := serverWorld(map[string]func(int, int) float64{ // m is fastest with two and one, and four and four are better than one and one
		"m": func(r, s int) float64 { return map[bool]float64{true: 9, false: 1 + 0.1*both(r, s)}[r == 2 && s == 1] },
	})
	// One more server saves m 50 s of 100, one more replica 52 s; a replica takes half of the
	// node's devices, a server a quarter of its CPUs.
	dear := serverWorld(map[string]func(int, int) float64{
		"m": func(r, s int) float64 {
			switch {
			case r == 1 && s == 1:
				return 1
			case r == 2 && s == 1:
				return 1 / 0.48
			}
			return 2
		},
	})
	short, long := serverJob("short", "m", 1, 90, 10), serverJob("long", "n", 1, 0, 50)
	for _, c := range []struct {
		name, policy string
		w            *schedulertest.World
		q            policy.Variants
		nodes        int
		jobs         []*scheduler.JobState
		want         string
	}{
		{"one pair each, then one more each", "drf", grows, nil, 2, []*scheduler.JobState{short, long}, "short 2+2 on 0; long 2+2 on 1"},
		{"no more pairs than it may have", "drf", grows, nil, 8, []*scheduler.JobState{short}, "short 4+4 on 0,1"},
		{"first come, at its fastest", "fifo", peak, nil, 1, []*scheduler.JobState{serverJob("a", "m", 1, 0, 9), serverJob("b", "m", 1, 0, 9)}, "a 2+1 on 0"},
		{"the quirk: to the most", "fifo", peak, policy.Variants{&paramserver.Variant{LeastLoaded: true, UpToLimit: true}}, 2, []*scheduler.JobState{short}, "short 4+4 on 0,1"},
		{"and no more than it may have", "fifo", grows, policy.Variants{&paramserver.Variant{LeastLoaded: true, UpToLimit: true}}, 9, []*scheduler.JobState{short}, "short 4+4 on 0,1"},
		{"less time left", "srtf", grows, nil, 1, []*scheduler.JobState{serverJob("a", "m", 0, 0, 9), serverJob("b", "m", 0, 0, 8)}, "b 1+3 on 0"},
		{"the quirk: a smaller part left", "srtf", grows, policy.Variants{&paramserver.Variant{UpToLimit: true, LeastLoaded: true, Left: dl2.ShareLeft}}, 1, []*scheduler.JobState{serverJob("a", "m", 0, 91, 9), serverJob("b", "m", 0, 0, 8)}, "a 2+2 on 0"},
		{"little left", "tetris", grows, nil, 1, []*scheduler.JobState{long, short}, "short 2+2 on 0"},
		{"the quirk: much left", "tetris", grows, policy.Variants{&paramserver.Variant{TetrisScore: dl2.TetrisSum}}, 1, []*scheduler.JobState{short, long}, "long 2+2 on 0"},
		{"what saves most for its share", "optimus-oracle", dear, policy.Variants{&optimus.Variant{NextOnly: true}}, 1, []*scheduler.JobState{serverJob("a", "m", 1, 0, 100)}, "a 1+2 on 0"},
		{"the quirk: what saves most", "optimus-oracle", dear, policy.Variants{&optimus.Variant{NextOnly: true, RawGain: true}}, 1, []*scheduler.JobState{serverJob("a", "m", 1, 0, 100)}, "a 2+1 on 0"},
		{"over a dent", "optimus-oracle", serverWorld(map[string]func(int, int) float64{"m": func(r, s int) float64 {
			return map[bool]float64{true: 5, false: 1}[r == 3 && s == 3]
		}}), nil, 2, []*scheduler.JobState{serverJob("a", "m", 1, 0, 100)}, "a 3+3 on 0,1"},
		{"at its fastest, node by node", "tetris", peak, nil, 2, []*scheduler.JobState{serverJob("a", "m", 1, 0, 9)}, "a 2+1 on 0"},
		{"less, where the way to the fastest has no room", "tetris", serverWorldOf("m", [][2]int{{1, 1}, {2, 1}, {3, 1}, {3, 2}, {3, 3}}), nil, 1,
			[]*scheduler.JobState{serverJob("a", "m", 0, 0, 9)}, "a 2+1 on 0"},
		{"less time left", "tetris", grows, nil, 1, []*scheduler.JobState{serverJob("a", "m", 1, 90, 10), serverJob("b", "m", 1, 1, 9)}, "b 2+2 on 0"},
		{"the quirk: a smaller part left", "tetris", grows, policy.Variants{&paramserver.Variant{Left: dl2.ShareLeft}}, 1, []*scheduler.JobState{serverJob("a", "m", 1, 1, 9), serverJob("b", "m", 1, 90, 10)}, "b 2+2 on 0"},
		{"on CPUs no devices are taken", "drf", grows, nil, 1, []*scheduler.JobState{serverJob("a", "m", 0, 0, 9)}, "a 2+2 on 0"},
	} {
		t.Run(c.policy+": "+c.name, func(t *testing.T) {
			got, grants := serverGrants(t, c.policy, c.w, c.q, serverCluster(c.nodes), c.jobs...)
			if got != c.want {
				t.Errorf("%s, want %s", got, c.want)
			}
			for _, g := range grants {
				if j := c.jobs[slices.IndexFunc(c.jobs, func(j *scheduler.JobState) bool { return j.Job.ID == g.Job })].Job; j.OnCPUs() != (g.Devices() == 0) {
					t.Errorf("job %s holds %v", g.Job, g.Slots)
				}
			}
		})
	}
}

// TestParamServerTogether checks that a job is placed on the fewest nodes, in equal parts,
// and stays there while its numbers of replicas and servers do not change.
func TestParamServerTogether(t *testing.T) {
	w := serverWorld(map[string]func(int, int) float64{"m": both})
	a := serverJob("a", "m", 1, 0, 100)
	_, grants := serverGrants(t, "drf", w, nil, serverCluster(4), a)
	want := []scheduler.Slot{
		{Node: 0, Devices: 2, Servers: 2, Host: spec.Host{MilliCPUs: 8000}},
		{Node: 1, Devices: 2, Servers: 2, Host: spec.Host{MilliCPUs: 8000}},
	}
	if !slices.Equal(grants[0].Slots, want) || grants[0].Shape.Devices != "2+2" {
		t.Errorf("%v on %s, want %v", grants[0].Slots, grants[0].Shape, want)
	}
	held := serverJob("held", "m", 1, 0, 100)
	moved := *grants[0]
	moved.Job, moved.Slots = "held", []scheduler.Slot{{Node: 2, Devices: 2, Servers: 2, Host: spec.Host{MilliCPUs: 8000}}, {Node: 3, Devices: 2, Servers: 2, Host: spec.Host{MilliCPUs: 8000}}}
	held.Grant = &moved
	got, _ := serverGrants(t, "drf", w, nil, serverCluster(4), a, held)
	if got != "a 4+4 on 0,1; held 4+4 on 2,3" {
		t.Error(got)
	}
}

// TestParamServerOptimusStays checks that a job changes only if that saves more time than a
// restart costs.
func TestParamServerOptimusStays(t *testing.T) {
	w := serverWorld(map[string]func(int, int) float64{"m": func(r, s int) float64 { return 1 + 0.001*both(r, s) }})
	_, grants := serverGrants(t, "drf", w, nil, serverCluster(1), serverJob("a", "m", 1, 0, 100))
	for _, c := range []struct {
		cost time.Duration
		want string
	}{{time.Minute, "a 2+2 on 0"}, {0, "a 4+4 on 0,1"}} {
		a := serverJob("a", "m", 1, 0, 100)
		a.Grant, a.StartCost = grants[0], c.cost
		if got, _ := serverGrants(t, "optimus-oracle", w, nil, serverCluster(2), a); got != c.want {
			t.Errorf("restarts cost %v: %s, want %s", c.cost, got, c.want)
		}
	}
}

// twoGroups is a cluster of one node with 2 devices x and one with 2 devices y.
func twoGroups() spec.Cluster {
	c := serverCluster(1)
	c.Groups = append(c.Groups, c.Groups[0])
	c.Groups[1].Accelerator.Name = "y"
	return c
}

// TestParamServerBlind checks that a job without a prediction gets one replica and one server
// under every policy. It gets more only from policies that ignore speeds.
func TestParamServerBlind(t *testing.T) {
	w := serverWorld(map[string]func(int, int) float64{"m": both})
	for name, want := range map[string]string{
		"fifo": "a 1+1 on 0; b 1+1 on 1", "srtf": "a 1+1 on 0; b 1+1 on 1", "optimus": "a 1+1 on 0; b 1+1 on 1", "optimus-oracle": "a 1+1 on 0; b 1+1 on 1",
		"tetris": "a 1+1 on 0; b 1+1 on 1", "drf": "a 2+2 on 0; b 2+2 on 1",
	} {
		s := scheduler.NewSnapshot(0, serverCluster(2), []*scheduler.JobState{serverJob("a", "m", 1, 0, 9), serverJob("b", "m", 1, 0, 9)})
		if got := grantsText(serverDecision(t, name, policy.Deps{Servers: w}, s)); got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
}

// TestParamServerTypes checks that policies compare all types of devices that a job accepts.
func TestParamServerTypes(t *testing.T) {
	w := serverWorld(map[string]func(int, int) float64{"m": func(int, int) float64 { return 1 }})
	j := spec.Job{GlobalBatch: 12}
	w.Add("m", "y", j.ParamServerPlan(1, 1), spec.Shape{}, 2)
	w.Add("n", "y", j.ParamServerPlan(1, 1), spec.Shape{}, 5)
	w.Add("o", "x", j.ParamServerPlan(1, 1), spec.Shape{}, 3)
	w.Add("o", "y", j.ParamServerPlan(1, 1), spec.Shape{}, 3)
	picky := serverJob("picky", "m", 1, 0, 9)
	picky.Job.Accelerator = "x"
	for _, c := range []struct {
		name, policy string
		jobs         []*scheduler.JobState
		want         string
	}{
		{"the faster", "fifo", []*scheduler.JobState{serverJob("a", "m", 1, 0, 9)}, "a 1+1 on 1"},
		{"of equal ones the first", "fifo", []*scheduler.JobState{serverJob("a", "o", 1, 0, 9)}, "a 1+1 on 0"},
		{"the one it accepts", "fifo", []*scheduler.JobState{picky}, "picky 1+1 on 0"},
		{"the one it can have", "fifo", []*scheduler.JobState{serverJob("a", "n", 1, 0, 9)}, "a 1+1 on 1"},
		{"time left on the fastest", "srtf", []*scheduler.JobState{serverJob("a", "m", 0, 0, 9), serverJob("b", "m", 0, 0, 9), serverJob("c", "m", 0, 0, 9), serverJob("d", "n", 0, 0, 20)},
			"a 1+1 on 1; b 1+1 on 0; c 1+1 on 0; d 1+1 on 1"},
		{"and not the steps", "srtf", []*scheduler.JobState{serverJob("a", "m", 0, 0, 9), serverJob("b", "m", 0, 0, 9), serverJob("c", "m", 0, 0, 9), serverJob("d", "n", 0, 0, 40)},
			"a 1+1 on 1; b 1+1 on 1; c 1+1 on 0"},
		{"everywhere", "drf", []*scheduler.JobState{serverJob("a", "o", 1, 0, 9), serverJob("b", "o", 1, 0, 9), serverJob("c", "o", 1, 0, 9)}, "a 1+1 on 0; b 1+1 on 1; c 1+1 on 0"},
		{"left with one of each on the faster", "tetris", []*scheduler.JobState{serverJob("a", "n", 1, 0, 20), serverJob("b", "m", 1, 0, 9)}, "a 1+1 on 1; b 1+1 on 0"},
	} {
		s := scheduler.NewSnapshot(0, twoGroups(), c.jobs)
		if got := grantsText(serverDecision(t, c.policy, policy.Deps{Oracle: w.Oracle(0, 1), Servers: w}, s)); got != c.want {
			t.Errorf("%s, %s: %s, want %s", c.policy, c.name, got, c.want)
		}
	}
}

// TestParamServerTurns checks which jobs block others under each policy.
func TestParamServerTurns(t *testing.T) {
	w := serverWorld(map[string]func(int, int) float64{"m": both, "n": both})
	large := func() *scheduler.JobState {
		j := serverJob("large", "m", 1, 0, 1)
		j.Job.Host.MilliCPUs, j.Job.ServerHost.MilliCPUs = 7000, 7000
		return j
	}
	for _, c := range []struct{ policy, want string }{
		{"fifo", ""}, {"srtf", "small 1+3 on 0"}, {"drf", "small 2+2 on 0"}, {"tetris", "small 2+2 on 0"}, {"optimus-oracle", "small 1+3 on 0"},
	} {
		if got, _ := serverGrants(t, c.policy, w, nil, serverCluster(1), large(), serverJob("small", "n", 1, 0, 9)); got != c.want {
			t.Errorf("%s: %q, want %q", c.policy, got, c.want)
		}
	}
	// There is room for one replica and one server of only one of two equal jobs.
	tight := serverCluster(1)
	tight.Groups[0].CPUs = 4
	for _, name := range []string{"fifo", "srtf", "drf", "tetris", "optimus-oracle"} {
		if got, _ := serverGrants(t, name, w, nil, tight, serverJob("first", "m", 1, 0, 9), serverJob("second", "m", 1, 0, 9)); got != "first 1+1 on 0" {
			t.Errorf("%s: %s, want the first of two equal jobs", name, got)
		}
	}
}

// TestParamServerWakes checks that policies wake when the order of jobs may have changed
// through their progress, and with quirk every-round in every round.
func TestParamServerWakes(t *testing.T) {
	w := serverWorld(map[string]func(int, int) float64{"m": both})
	jobs := func() []*scheduler.JobState { return []*scheduler.JobState{serverJob("a", "m", 1, 0, 9)} }
	for _, c := range []struct {
		policy string
		q      policy.Variants
		jobs   []*scheduler.JobState
		want   time.Duration
	}{
		{"fifo", nil, jobs(), 0}, {"drf", nil, jobs(), 0},
		{"srtf", nil, jobs(), time.Hour + 600*time.Second}, {"tetris", nil, jobs(), time.Hour + 600*time.Second},
		{"optimus", nil, jobs(), time.Hour + 600*time.Second}, {"srtf", nil, nil, 0},
		{"drf", policy.Variants{&paramserver.Variant{EveryRound: true}}, jobs(), time.Hour + time.Second}, {"srtf", policy.Variants{&paramserver.Variant{EveryRound: true}}, jobs(), time.Hour + time.Second},
	} {
		s := scheduler.NewSnapshot(time.Hour, serverCluster(1), c.jobs)
		if got := serverDecision(t, c.policy, policy.Deps{Oracle: w.Oracle(0, 1), Servers: w, Variants: c.q}, s).Wake; got != c.want {
			t.Errorf("%s, %d jobs, in every round %v: wakes at %v, want %v", c.policy, len(c.jobs), c.q != nil, got, c.want)
		}
	}
}

// TestParamServerQuirkMost checks that with the quirk of DL2 a job gets at most 16 replicas and
// 16 servers.
func TestParamServerQuirkMost(t *testing.T) {
	w, j := &schedulertest.World{}, spec.Job{GlobalBatch: 12}
	for r := 1; r <= 20; r++ {
		for s := 1; s <= 20; s++ {
			w.Add("m", "x", j.ParamServerPlan(r, s), spec.Shape{}, both(r, s))
		}
	}
	for q, want := range map[int]string{0: "a 20+20", dl2.Most: "a 16+16"} {
		got, _ := serverGrants(t, "drf", w, policy.Variants{&paramserver.Variant{LeastLoaded: q > 0, Limit: q}}, serverCluster(20), serverJob("a", "m", 1, 0, 9))
		if !strings.HasPrefix(got, want+" ") {
			t.Errorf("quirk %v: %s, want %s", q, got, want)
		}
	}
}

// TestParamServerWhy checks that every job with a changed grant, or without a grant, has a
// reason.
func TestParamServerWhy(t *testing.T) {
	w := serverWorld(map[string]func(int, int) float64{"m": both})
	apart := serverCluster(2)
	apart.Groups[0].CPUs = 2
	for _, c := range []struct {
		policy string
		c      spec.Cluster
		want   string
	}{
		{"fifo", serverCluster(1), "1 replica and 3 parameter servers: next in order of submission"},
		{"srtf", serverCluster(1), "1 replica and 3 parameter servers: next in order of remaining time"},
		{"drf", serverCluster(1), "1 replica and 1 parameter server: progressive filling by dominant share"},
		{"tetris", serverCluster(1), "2 replicas and 2 parameter servers: highest score of alignment and remaining work on its node"},
		{"tetris", apart, "1 replica and 1 parameter server: one replica and one server on different nodes, since no node has room for both"},
		{"optimus", apart, "1 replica and 1 parameter server: the first of each that every job gets"},
		{"optimus-oracle", serverCluster(4), "4 replicas and 4 parameter servers: by marginal gain"},
	} {
		s := scheduler.NewSnapshot(0, c.c, []*scheduler.JobState{serverJob("a", "m", 1, 0, 9), serverJob("b", "m", 1, 0, 99)})
		s.Reasons = true
		d := serverDecision(t, c.policy, policy.Deps{Oracle: w.Oracle(0, 1), Servers: w}, s)
		if got := d.Why["a"]; got != c.want {
			t.Errorf("%s: a: %q, want %q", c.policy, got, c.want)
		}
		if got, want := d.Why["b"], "no room for one replica and one parameter server"; len(d.Grants) == 1 && got != want {
			t.Errorf("%s: b: %q, want %q", c.policy, got, want)
		}
	}
	a, deps := serverJob("a", "m", 1, 0, 9), policy.Deps{Oracle: w.Oracle(0, 1), Servers: w}
	for i := range 2 {
		s := scheduler.NewSnapshot(0, serverCluster(1), []*scheduler.JobState{a})
		s.Reasons = true
		d := serverDecision(t, "drf", deps, s)
		if i == 1 && (len(d.Why) > 0 || d.Grants[0] != a.Grant) {
			t.Errorf("a job with an unchanged grant has reason %q and granted %v for %v", d.Why, d.Grants[0], a.Grant)
		}
		a.Grant = d.Grants[0]
	}
}
