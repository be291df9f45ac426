package rubick

import (
	"context"
	"fmt"
	"reflect"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/scheduler"
	"github.com/pacer-ml/pacer/scheduler/internal/candidate"
	"github.com/pacer-ml/pacer/scheduler/policy"
	"github.com/pacer-ml/pacer/scheduler/schedulertest"
	"github.com/pacer-ml/pacer/scheduler/sim"
)

var variants = policy.NewRegistry(Info, InfoE, InfoN, InfoR)

// On any workload a guaranteed job never runs slower than its own plan would at
// its own size.
func TestRubickGuarantee(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		c := schedulertest.DrawCase(rt)
		truth := c.World.Truth(c.Cluster)
		promised := map[spec.JobID]float64{}
		for i := range c.Jobs {
			promised[c.Jobs[i].ID] = slowestDue(t.Context(), c, &c.Jobs[i])
		}
		p, err := variants.New(policy.Spec{Name: "rubick"}, policy.Deps{Oracle: c.World.Oracle(0, 0)})
		if err != nil {
			rt.Fatal(err)
		}
		groups := scheduler.NewInventory(c.Cluster).Group
		_, err = sim.Run(t.Context(), sim.Config{
			Cluster: c.Cluster, Jobs: c.Jobs, Policy: p, PolicyName: "rubick", Truth: truth,
			Costs: sim.PerStart(func(spec.Job) time.Duration { return c.StartCost }),
			Observe: func(e sim.Event) {
				if !e.Job.Guaranteed || e.Kind != sim.Started && e.Kind != sim.Moved {
					return
				}
				group := &c.Cluster.Groups[groups[e.Grant.Slots[0].Node]]
				rate, err := truth.StepsPerSec(t.Context(), e.Job, e.Grant, group)
				if err != nil || rate < promised[e.Job.ID] {
					rt.Fatalf("guaranteed job %s runs at %g steps/s on %s (%v), due %g", e.Job.ID, rate, e.Grant.Shape.Devices, err, promised[e.Job.ID])
				}
			},
		})
		if err != nil {
			rt.Fatal(err)
		}
	})
}

// slowestDue returns the speed of j at its own plan and size, on the group where that is
// fastest.
func slowestDue(ctx context.Context, c schedulertest.Case, j *spec.Job) float64 {
	w, err := candidate.NewFinder(policy.Deps{Oracle: c.World.Oracle(0, 0)}).AsSubmitted(ctx, c.Cluster, j)
	if err != nil || len(w.Configs) == 0 {
		panic(fmt.Sprint("a drawn job cannot run as submitted: ", j.ID, err))
	}
	return w.Configs[0].Rate
}

// A job without a prediction that has no step left completes at this instant, which frees its
// devices: no job shrinks for another.
func TestRubickWaitsForRunningJobsToEnd(t *testing.T) {
	w := &schedulertest.World{}
	w.Add("m", "x", schedulertest.OnePlan(2), spec.NewShape(2), 1)
	p, err := variants.New(policy.Spec{Name: "rubick"}, policy.Deps{Oracle: w.Oracle(0, 0)})
	if err != nil {
		t.Fatal(err)
	}
	job := func(id, model string, node int, left float64) *scheduler.JobState {
		j := &spec.Job{ID: spec.JobID(id), Model: spec.Model{Name: model}, Plan: schedulertest.OnePlan(2), Devices: 2, Steps: 1e5}
		s := &scheduler.JobState{Job: j, Done: 1e5 - left, Remaining: left, StartCost: time.Minute}
		if node >= 0 {
			s.Grant = &scheduler.Grant{Job: j.ID, Plan: j.Plan, Shape: spec.NewShape(2), Slots: []scheduler.Slot{{Node: node, Devices: 2}}}
		}
		return s
	}
	d, err := p.Decide(t.Context(), scheduler.NewSnapshot(5e4*time.Second, schedulertest.Nodes(2, 2), []*scheduler.JobState{
		job("done", "unheard-of", 0, 0), job("long", "m", 1, 5e4), job("short", "m", -1, 10),
	}))
	if err != nil || len(d.Grants) != 2 || d.Grants[0].Job != "done" || d.Grants[1].Job != "long" {
		t.Errorf("grants %v (%v), want done and long as they are", d.Grants, err)
	}
}

// The listed default options are those in use.
func TestRubickDefaults(t *testing.T) {
	info, err := variants.Lookup("rubick")
	if err != nil {
		t.Fatal(err)
	}
	listed := policy.Spec{Name: "rubick", Options: map[string]string{}}
	for _, o := range info.Options {
		listed.Options[o.Name] = o.Default
	}
	a, err1 := variants.New(listed, policy.Deps{})
	b, err2 := variants.New(policy.Spec{Name: "rubick"}, policy.Deps{})
	if err1 != nil || err2 != nil {
		t.Fatal(err1, err2)
	}
	x, y := *a.(*rubick), *b.(*rubick)
	x.finder, y.finder = nil, nil
	if !reflect.DeepEqual(x, y) {
		t.Errorf("with the listed defaults %+v, without options %+v", x, y)
	}
}

func TestSizes(t *testing.T) {
	small := candidate.Sizes(&spec.NodeGroup{Count: 2, Devices: 4})
	if fmt.Sprint(small) != "[1 2 3 4 5 6 7 8]" {
		t.Errorf("sizes of 2x4: %v", small)
	}
	large := candidate.Sizes(&spec.NodeGroup{Count: 1000, Devices: 8})
	if n := len(large); n > 300 {
		t.Errorf("%d sizes for 8000 devices", n)
	}
	if last := large[len(large)-1]; last != 512*8 {
		t.Errorf("largest size %d, want the last power of two of nodes", last)
	}
}

func BenchmarkDecide(b *testing.B) {
	for _, name := range []string{"fifo-backfill", "rubick"} {
		for _, jobs := range []int{100, 1000} {
			b.Run(fmt.Sprintf("policy=%s/jobs=%d/devices=256", name, jobs), func(b *testing.B) {
				p, s := crowd(b, name, jobs)
				for b.Loop() {
					if _, err := p.Decide(b.Context(), s); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}

// crowd returns a policy and a snapshot of a cluster of 32x8, where 32 jobs run and the others
// wait.
func crowd(b *testing.B, name string, jobs int) (scheduler.Policy, *scheduler.Snapshot) {
	b.Helper()
	w := &schedulertest.World{}
	for n := 1; n <= 64; n *= 2 {
		w.Add("m", "x", schedulertest.OnePlan(n), spec.Packed(n, 8), 1+0.8*float64(n-1))
	}
	p, err := variants.New(policy.Spec{Name: name}, policy.Deps{Oracle: w.Oracle(0, 0)})
	if err != nil {
		b.Fatal(err)
	}
	states := make([]*scheduler.JobState, 0, jobs)
	for i := range jobs {
		n := 1 << (i % 4)
		j := &spec.Job{ID: spec.JobID(fmt.Sprintf("j%04d", i)), Model: spec.Model{Name: "m"}, Plan: schedulertest.OnePlan(n),
			Devices: n, Steps: float64(1000 + 37*i%5000), Submit: time.Duration(i) * time.Second}
		st := &scheduler.JobState{Job: j, Remaining: j.Steps, StartCost: time.Minute}
		if i < 32 {
			st.Grant = &scheduler.Grant{Job: j.ID, Plan: j.Plan, Shape: spec.NewShape(n), Slots: []scheduler.Slot{{Node: i, Devices: n}}}
		}
		states = append(states, st)
	}
	return p, scheduler.NewSnapshot(time.Hour, schedulertest.Nodes(32, 8), states)
}
