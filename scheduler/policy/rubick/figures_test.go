package rubick

import (
	"cmp"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/scheduler"
	"github.com/pacer-ml/pacer/scheduler/policy"
	"github.com/pacer-ml/pacer/scheduler/schedulertest"
	"github.com/pacer-ml/pacer/scheduler/sim"
)

// plan3D returns a plan with dp replicas, tp tensor and pp pipeline stages for a global batch
// of 16 samples.
func plan3D(pp, tp, dp int) spec.Plan {
	return spec.Plan{PP: pp, TP: tp, DP: dp, MicroBatch: 1, AccumSteps: 16 / dp}.Normal()
}

var offloadGC = spec.Plan{DP: 1, MicroBatch: 1, AccumSteps: 16, ZeRO: 2, Offload: spec.OffloadOptimizer, Recompute: spec.RecomputeFull}.Normal()

// figure7 has the measurements behind figure 7 of Rubick:
// LLaMA-2-7B with a global batch of 16 on A800 (artifact/72 of
// AlibabaPAI/reconfigurable-dl-scheduler at 80e8524): seconds a step by plan, on 32
// devices of four nodes, on 16 of four, on 4 and on 1 with 2 and 4 CPUs.
func figure7() *schedulertest.World {
	w := &schedulertest.World{}
	for _, m := range []struct {
		plan  spec.Plan
		shape spec.Shape
		sec   float64
	}{
		{plan3D(2, 4, 4), spec.NewShape(8, 8, 8, 8), 1.165},
		{plan3D(4, 4, 1), spec.NewShape(4, 4, 4, 4), 1.803},
		{plan3D(2, 4, 2), spec.NewShape(4, 4, 4, 4), 1.955},
		{plan3D(2, 2, 4), spec.NewShape(4, 4, 4, 4), 2.084},
		{plan3D(1, 4, 4), spec.NewShape(4, 4, 4, 4), 2.372},
		{plan3D(2, 2, 1), spec.NewShape(4), 5.107},
		{plan3D(1, 4, 1), spec.NewShape(4), 5.704},
		{offloadGC, spec.Shape{Devices: "1", CPUs: 2}, 66},
		{offloadGC, spec.Shape{Devices: "1", CPUs: 4}, 46},
	} {
		w.Add("llama7", "x", m.plan, m.shape, 1/m.sec)
	}
	return w
}

func figure7Job() spec.Job {
	return spec.Job{ID: "llama", Model: spec.Model{Name: "llama7"}, GlobalBatch: 16, Plan: plan3D(2, 4, 4), Devices: 32, Steps: 5000}
}

func nodesWithCPUs(count, devices, cpus int) spec.Cluster {
	c := schedulertest.Nodes(count, devices)
	c.Groups[0].CPUs = cpus
	return c
}

// Figure 7: the best plan depends on the resources. The best plan on 32 devices cannot run on
// fewer. On one device only offloading fits; a step takes 66 s with 2 CPUs and 46 s with 4.
func TestRubickFigure7(t *testing.T) {
	for _, c := range []struct {
		name    string
		cluster spec.Cluster
		plan    spec.Plan
		sec     float64
	}{
		{"32 devices", nodesWithCPUs(4, 8, 96), plan3D(2, 4, 4), 1.165},
		{"16 devices", nodesWithCPUs(4, 4, 48), plan3D(4, 4, 1), 1.803},
		{"4 devices", nodesWithCPUs(1, 4, 48), plan3D(2, 2, 1), 5.107},
		{"1 device, 2 CPUs", nodesWithCPUs(1, 1, 2), offloadGC, 66},
		{"1 device, 4 CPUs", nodesWithCPUs(1, 1, 4), offloadGC, 46},
	} {
		w := figure7()
		p, err := variants.New(policy.Spec{Name: "rubick", Options: map[string]string{"price": "0"}}, policy.Deps{Oracle: w.Oracle(0, 0)})
		if err != nil {
			t.Fatal(err)
		}
		job := figure7Job()
		d, err := p.Decide(t.Context(), scheduler.NewSnapshot(0, c.cluster, []*scheduler.JobState{{Job: &job, Remaining: job.Steps, StartCost: time.Minute}}))
		if err != nil || len(d.Grants) != 1 {
			t.Fatalf("%s: grants %v, %v", c.name, d.Grants, err)
		}
		rate, err := w.Truth(c.cluster).StepsPerSec(t.Context(), &job, d.Grants[0], &c.cluster.Groups[0])
		if got := 1 / rate; err != nil || d.Grants[0].Plan != c.plan || math.Abs(got-c.sec) > 1e-9 {
			t.Errorf("%s: plan %s on %+v, %.4g s a step (%v), want %s, %.4g s", c.name, d.Grants[0].Plan, d.Grants[0].Shape, got, err, c.plan, c.sec)
		}
	}
}

// Figure 7 in one run: while a guaranteed job runs on half of every node, the other job shrinks
// from 32 to 16 devices and changes its plan. Afterwards it grows again. Without the choice of
// plans it has to wait, since its own plan cannot run on 16 devices.
func TestRubickReconfiguresAsLimitsChange(t *testing.T) {
	for name, want := range map[string][]spec.Plan{
		"rubick":   {plan3D(2, 4, 4), plan3D(4, 4, 1), plan3D(2, 4, 4)},
		"rubick-r": {plan3D(2, 4, 4), plan3D(2, 4, 2), plan3D(2, 4, 4)}, // another number of replicas is the same plan
		"rubick-n": {plan3D(2, 4, 4), plan3D(2, 4, 4)},
	} {
		w := figure7()
		rival := spec.Plan{DP: 16, MicroBatch: 1}.Normal()
		w.Add("rival", "x", rival, spec.NewShape(4, 4, 4, 4), 1)
		p, err := variants.New(policy.Spec{Name: name, Options: map[string]string{"price": "0"}}, policy.Deps{Oracle: w.Oracle(0, 0)})
		if err != nil {
			t.Fatal(err)
		}
		cluster := nodesWithCPUs(4, 8, 96)
		var got []spec.Plan
		_, err = sim.Run(t.Context(), sim.Config{
			Cluster: cluster, Policy: p, PolicyName: name, Truth: w.Truth(cluster), Costs: sim.PerStart(func(spec.Job) time.Duration { return time.Minute }),
			Jobs: []spec.Job{figure7Job(), {ID: "rival", Model: spec.Model{Name: "rival"}, GlobalBatch: 16, Plan: rival, Devices: 16, Steps: 1000,
				Submit: 20 * time.Minute, Guaranteed: true}},
			Observe: func(e sim.Event) {
				if e.Job.ID == "llama" && (e.Kind == sim.Started || e.Kind == sim.Moved) {
					got = append(got, e.Grant.Plan)
				}
			},
		})
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("%s: plans %v, %v, want %v", name, got, err, want)
		}
	}
}

// Figure 8: RoBERTa and T5-3B each request two of four devices. Split evenly they reach 0.53
// and 0.25 of their throughput on all four, 0.78 together. With one and three devices they
// reach 0.55 (RoBERTa with ZeRO) and 0.89 (T5 with tensor parallelism over three), 1.44
// together. The sensitivity curves find that split. The choice of plans alone changes nothing;
// the choice of resources alone finds that RoBERTa is as fast on one device.
func TestRubickFigure8(t *testing.T) {
	zero := func(n int) spec.Plan { return spec.Plan{DP: n, MicroBatch: 12 / n, ZeRO: 2}.Normal() }
	tensor := func(n int) spec.Plan { return spec.Plan{TP: n, MicroBatch: 12}.Normal() }
	offload := func(n int) spec.Plan {
		return spec.Plan{DP: n, MicroBatch: 12 / n, ZeRO: 2, Offload: spec.OffloadOptimizer}.Normal()
	}
	w := &schedulertest.World{}
	for _, m := range []struct {
		model string
		plan  spec.Plan
		part  float64
	}{
		{"roberta", zero(1), 0.55}, {"roberta", zero(2), 0.53}, {"roberta", zero(4), 1},
		{"t5", offload(2), 0.25}, {"t5", tensor(3), 0.89}, {"t5", tensor(4), 1},
	} {
		w.Add(m.model, "x", m.plan, spec.NewShape(m.plan.Devices()), m.part)
	}
	for name, want := range map[string]float64{"rubick": 1.44, "rubick-e": 0.78, "rubick-r": 0.80, "rubick-n": 0.78} {
		p, err := variants.New(policy.Spec{Name: name}, policy.Deps{Oracle: w.Oracle(0, 0)})
		if err != nil {
			t.Fatal(err)
		}
		cluster := schedulertest.Nodes(1, 4)
		jobs := []spec.Job{
			{ID: "roberta", Model: spec.Model{Name: "roberta"}, GlobalBatch: 12, Plan: zero(2), Devices: 2, Steps: 10000},
			{ID: "t5", Model: spec.Model{Name: "t5"}, GlobalBatch: 12, Plan: offload(2), Devices: 2, Steps: 10000},
		}
		var states []*scheduler.JobState
		for i := range jobs {
			states = append(states, &scheduler.JobState{Job: &jobs[i], Remaining: jobs[i].Steps, StartCost: time.Minute})
		}
		d, err := p.Decide(t.Context(), scheduler.NewSnapshot(0, cluster, states))
		if err != nil {
			t.Fatal(err)
		}
		slices.SortFunc(d.Grants, func(a, b *scheduler.Grant) int { return cmp.Compare(a.Job, b.Job) })
		sum := 0.0
		for i, g := range d.Grants {
			rate, err := w.Truth(cluster).StepsPerSec(t.Context(), &jobs[i], g, &cluster.Groups[0])
			if err != nil {
				t.Fatal(err)
			}
			sum += rate
		}
		if math.Abs(sum-want) > 1e-9 {
			t.Errorf("%s: normalised throughputs of %.2f together, want %.2f: %v", name, sum, want, d.Grants)
		}
	}
}
