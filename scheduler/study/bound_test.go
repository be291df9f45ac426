package study

import (
	"context"
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/scheduler"
	"github.com/pacer-ml/pacer/scheduler/policy"
	"github.com/pacer-ml/pacer/scheduler/policy/builtin"
	"github.com/pacer-ml/pacer/scheduler/report"
	"github.com/pacer-ml/pacer/scheduler/schedulertest"
	"github.com/pacer-ml/pacer/scheduler/sim"
)

func near(t *testing.T, what string, got report.Number, want float64) {
	t.Helper()
	if !(math.Abs(float64(got)-want) <= 1e-9*math.Max(1, math.Abs(want))) {
		t.Errorf("%s: %v, want %v", what, float64(got), want)
	}
}

// TestLowerBounds has two devices. A needs both for 4 s from 0 on, B one for 2 s from
// 1 on, C one for 10 s from 2 on. On one machine of speed 2, A takes 4 s, B 1 s, C 5 s;
// SRPT runs A 0-1, B 1-2, A 2-5, C 5-10.
func TestLowerBounds(t *testing.T) {
	needs := []Need{{2, 10, 10}, {0, 4, 8}, {1, 2, 2}}
	b := LowerBounds(needs, 2, 0)
	near(t, "isolated", b.Isolated, (4.+2+10)/3)
	near(t, "SRPT", b.SRPT, (5.+1+8)/3)
	near(t, "area", b.Area, 10) // all 20 device-seconds from 0 on
	near(t, "longest", b.Longest, 12)
	near(t, "JCT", b.JCT(), 16./3)
	near(t, "makespan", b.Makespan(), 12)
	if needs[0].SubmitSec != 2 || needs[0].AreaSec != 10 {
		t.Error("the needs were changed")
	}
	// A late burst: 0 + 26/2 is before 5 + 20/2.
	near(t, "area with release times", LowerBounds([]Need{{0, 1, 6}, {5, 1, 10}, {5, 1, 10}}, 2, 0).Area, 15)
	near(t, "makespan from the first submission", LowerBounds([]Need{{7, 3, 3}}, 1, 5).Makespan(), 5)
	if LowerBounds(nil, 2, 0).JCT().Defined() {
		t.Error("no jobs have a bound")
	}
}

// TestSRPTIsTheOptimum checks that on one device with equal submissions, the bound is
// the least sum over all orders of jobs.
func TestSRPTIsTheOptimum(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		lengths := rapid.SliceOfN(rapid.Float64Range(0.1, 100), 1, 6).Draw(t, "lengths")
		var needs []Need
		for _, l := range lengths {
			needs = append(needs, Need{AloneSec: l, AreaSec: l})
		}
		best := math.Inf(1)
		permute(lengths, func(order []float64) {
			var now, sum float64
			for _, l := range order {
				now += l
				sum += now
			}
			best = math.Min(best, sum)
		})
		if got := fluidSRPT(needs, 1); math.Abs(got-best) > 1e-9*best {
			t.Fatalf("bound %v, best order %v", got, best)
		}
	})
}

func permute(x []float64, use func([]float64)) {
	var rec func(k int)
	x = slices.Clone(x)
	rec = func(k int) {
		if k == len(x) {
			use(x)
		}
		for i := k; i < len(x); i++ {
			x[k], x[i] = x[i], x[k]
			rec(k + 1)
			x[k], x[i] = x[i], x[k]
		}
	}
	rec(0)
}

// unbeaten fails if a run is better than a bound by more than rounding errors.
func unbeaten(t *rapid.T, what string, c sim.Config, candidates Candidates) {
	r, err := sim.Run(context.Background(), c)
	if err != nil {
		t.Fatalf("%s: %v", what, err)
	}
	b, err := boundsOf(context.Background(), &c, r, report.Score{}, candidates)
	if err != nil {
		t.Fatalf("%s: %v", what, err)
	}
	if r.Shared {
		if b.JCT().Defined() || b.Makespan().Defined() {
			t.Fatalf("%s: bounds %v of jobs that shared devices", what, b)
		}
		return
	}
	s := report.Summarize(r, report.Score{})
	if s.Finished == 0 {
		t.Fatalf("%s: no job finished", what)
	}
	for _, f := range []struct {
		name       string
		got, bound report.Number
	}{
		{"isolated", s.AvgJCT, b.Isolated}, {"SRPT", s.AvgJCT, b.SRPT}, {"area", s.Makespan, b.Area}, {"longest", s.Makespan, b.Longest},
	} {
		if !f.bound.Defined() || !(float64(f.bound) <= float64(f.got)*(1+1e-9)+1e-9) {
			t.Fatalf("%s: %s bound %v, the schedule has %v", what, f.name, float64(f.bound), float64(f.got))
		}
	}
}

// TestNoScheduleBeatsTheBounds runs all policies on random clusters, workloads, speeds,
// noise and failures, with jobs of fixed and of several sizes.
func TestNoScheduleBeatsTheBounds(t *testing.T) {
	for _, info := range append(builtin.Policies.Placing(false), policy.Info{Name: "restless"}) {
		make := func(d policy.Deps, w *schedulertest.World) scheduler.Policy {
			if info.New == nil {
				return restless{w}
			}
			p, err := builtin.Policies.New(policy.Spec{Name: info.Name}, d)
			if err != nil {
				t.Fatal(err)
			}
			return p
		}
		t.Run(info.Name, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				c := schedulertest.DrawCase(t)
				sc := Scenario{Seed: rapid.Uint64().Draw(t, "seed"), Noise: rapid.SampledFrom([]float64{0, 0.5}).Draw(t, "noise")}
				config := sim.Config{Cluster: c.Cluster, Jobs: c.Jobs, PolicyName: info.Name, Costs: sim.PerStart(func(spec.Job) time.Duration { return c.StartCost })}
				if rapid.Bool().Draw(t, "trouble") {
					trouble(&config, c.StartCost, sc.Seed)
				}
				config.Policy = make(policy.Deps{Oracle: c.World.Oracle(0.2, 7)}, c.World)
				config.Truth = sc.Truth(c.World.Truth(c.Cluster))
				unbeaten(t, "table", config, Listed(c.Cluster, c.World.Configs()))

				config.Jobs = slices.Clone(c.Jobs)
				for i := range config.Jobs {
					j := &config.Jobs[i]
					j.Duration, j.Steps = time.Duration(j.Steps*float64(time.Second)), 0
				}
				config.Policy, config.Truth = make(policy.Deps{}, nil), sc.Truth(sim.Durations{})
				unbeaten(t, "durations", config, AsRequested(c.Cluster))
			})
		})
	}
}

// TestNoScheduleBeatsTheBoundsParamServer is the same of jobs with parameter servers.
func TestNoScheduleBeatsTheBoundsParamServer(t *testing.T) {
	for _, info := range builtin.Policies.Placing(true) {
		if info.Name == "dl2" {
			continue // its model was trained for jobs without parameter servers
		}
		t.Run(info.Name, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				c := schedulertest.DrawParamServerCase(t)
				p, err := builtin.Policies.New(policy.Spec{Name: info.Name}, policy.Deps{Oracle: c.World.Oracle(0.2, 7), Servers: c.World})
				if err != nil {
					t.Fatal(err)
				}
				config := sim.Config{Cluster: c.Cluster, Jobs: c.Jobs, Policy: p, PolicyName: info.Name, Truth: c.World.Truth(c.Cluster)}
				if rapid.Bool().Draw(t, "trouble") {
					trouble(&config, c.StartCost, 1)
				}
				unbeaten(t, "table", config, ParamServer(c.Cluster, c.World.Configs()))
			})
		})
	}
}

// TestParamServerNeeds has the fewest devices, the least device-seconds and the shortest time
// in different candidates; replicas on CPUs hold no devices.
func TestParamServerNeeds(t *testing.T) {
	w := &schedulertest.World{}
	cl := schedulertest.Nodes(1, 4)
	j := spec.Job{ID: "j", Model: spec.Model{Name: "m"}, Devices: 1, GlobalBatch: 12, Steps: 60}
	for at, rate := range map[[2]int]float64{{1, 1}: 1, {1, 2}: 2, {2, 1}: 3, {3, 3}: 4, {6, 1}: 100} { // 6 devices there are not
		w.Add("m", "x", j.ParamServerPlan(at[0], at[1]), spec.Shape{}, rate)
	}
	w.Add("n", "x", j.ParamServerPlan(1, 1), spec.Shape{}, 1000)
	onCPUs := j
	onCPUs.Devices = 0
	for _, c := range []struct {
		name        string
		job         spec.Job
		alone, area float64
	}{{"on devices", j, 15 + 9, 9*1 + 60/2}, {"on CPUs", onCPUs, 0.6 + 9, 0}} {
		config := sim.Config{Cluster: cl, Truth: w.Truth(cl), Costs: sim.PerStart(func(spec.Job) time.Duration { return 9 * time.Second })}
		got, err := needOf(t.Context(), &c.job, ParamServer(cl, w.Configs())(&c.job), &config)
		if err != nil || math.Abs(got.AloneSec-c.alone) > 1e-6 || math.Abs(got.AreaSec-c.area) > 1e-6 {
			t.Errorf("%s: %+v, error %v; want %g s alone and %g device-s", c.name, got, err, c.alone, c.area)
		}
	}
}

// trouble makes nodes differ in speed and be slow at times, makes one fail, and makes
// checkpoints and later starts cost more.
func trouble(c *sim.Config, first time.Duration, seed uint64) {
	c.Costs = &sim.CostTable{Others: &sim.ModelCosts{Launch: first, Checkpoint: 5 * time.Second, Restore: 10 * time.Second}}
	c.CheckpointEvery = 5 * time.Minute
	c.Speeds = sim.Variation{Sigma: 0.3, Every: 30 * time.Minute, Last: 10 * time.Minute, Slow: 0.5, Seed: seed}
	c.Failures = sim.OutageTable{0: {{Down: 20 * time.Minute, Up: 50 * time.Minute}}}
}

// restless grants devices to jobs in an order that rotates, so that jobs are stopped,
// moved and resumed often. The first job is sometimes alone, so that all jobs end.
type restless struct {
	world *schedulertest.World // nil = any shape runs
}

const turn = 20 * time.Minute

func (p restless) Decide(_ context.Context, s *scheduler.Snapshot) (scheduler.Decision, error) {
	d := scheduler.Decision{Wake: s.Now.Truncate(turn) + turn}
	free := s.Idle()
	jobs := s.Jobs()
	for i := range jobs {
		j := jobs[(i+int(s.Now/turn))%len(jobs)]
		g := j.Grant
		if g == nil || !free.Take(g.Slots) {
			if g = p.place(free, s.Cluster, j.Job); g == nil {
				continue
			}
		}
		d.Grants = append(d.Grants, g)
	}
	return d, nil
}

// place takes the requested devices of j from one group, packed; nil if there is no
// room.
func (p restless) place(free *scheduler.Inventory, cl spec.Cluster, j *spec.Job) *scheduler.Grant {
	for i, group := range cl.Groups {
		g := &scheduler.Grant{Job: j.ID, Plan: schedulertest.OnePlan(j.Devices), Shape: spec.Packed(j.Devices, group.Devices)}
		if p.world != nil {
			if _, err := p.world.Predict(context.Background(), spec.Config{Model: j.Model, Accelerator: group.Accelerator, Plan: g.Plan, Shape: g.Shape}); err != nil {
				continue
			}
		}
		left := j.Devices
		for n, end := free.Nodes(i); n < end && left > 0; n++ {
			take := min(left, group.Devices)
			if s := (scheduler.Slot{Node: n, Devices: take, Host: j.Host.Times(take)}); free.Take([]scheduler.Slot{s}) {
				g.Slots = append(g.Slots, s)
				left -= s.Devices
			}
		}
		if left == 0 {
			return g
		}
		free.Give(g.Slots)
	}
	return nil
}

// TestBoundsAreReached checks that jobs which do not overlap reach the bound.
func TestBoundsAreReached(t *testing.T) {
	cl := schedulertest.Nodes(2, 4)
	var jobs []spec.Job
	for i := range 5 {
		jobs = append(jobs, spec.Job{ID: spec.JobID(fmt.Sprint("j", i)), Submit: time.Duration(i) * time.Hour, Devices: 8, Duration: 20 * time.Minute})
	}
	info, err := builtin.Policies.Lookup("fifo")
	if err != nil {
		t.Fatal(err)
	}
	p, err := info.New(policy.Deps{})
	if err != nil {
		t.Fatal(err)
	}
	rec, err := new(Runner).simulate(t.Context(), Setup{Candidates: AsRequested(cl), Config: sim.Config{
		Cluster: cl, Jobs: jobs, Policy: p, Truth: sim.Durations{}, Costs: sim.PerStart(func(spec.Job) time.Duration { return time.Minute }),
	}}, Scenario{})
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range [][2]report.Number{
		{rec.Summary.AvgJCT, rec.Bounds.Isolated}, {rec.Summary.AvgJCT, rec.Bounds.SRPT},
		{rec.Summary.Makespan, rec.Bounds.Area}, {rec.Summary.Makespan, rec.Bounds.Longest},
	} {
		if d := float64(f[0] - f[1]); !(d >= 0 && d < 1e-6) {
			t.Errorf("figure %v, bound %v", float64(f[0]), float64(f[1]))
		}
	}
}
