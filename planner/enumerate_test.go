package planner_test

import (
	"errors"
	"maps"
	"strings"
	"testing"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/planner"
)

func TestSpaceOptions(t *testing.T) {
	plans := func(e planner.Enumerate, r planner.Request) (tp, cp, mb int, zero map[int]bool) {
		zero = map[int]bool{}
		if r.PerNode == 0 {
			r.PerNode = 8
		}
		for c := range e.Configs(ctx, r) {
			tp, cp, mb = max(tp, c.Plan.TP), max(cp, c.Plan.CP), max(mb, c.Plan.MicroBatch)
			zero[c.Plan.ZeRO] = true
		}
		return tp, cp, mb, zero
	}
	r := request(16, 16)
	if tp, cp, mb, zero := plans(planner.Enumerate{}, r); tp != 8 || cp != 1 || mb != 16 || len(zero) != 4 {
		t.Errorf("by default tp to %d, cp to %d, micro-batch to %d, zero %v", tp, cp, mb, zero)
	}
	if tp, _, _, _ := plans(planner.Enumerate{TPAcrossNodes: true}, r); tp != 16 {
		t.Errorf("across nodes tp to %d, want 16", tp)
	}
	if _, _, mb, zero := plans(planner.Enumerate{MaxMicroBatch: 2, ZeRO: []int{1}}, r); mb != 2 || !zero[1] || len(zero) != 1 {
		t.Errorf("micro-batch to %d, zero %v", mb, zero)
	}
	r.SeqLen = 65536
	if _, cp, _, _ := plans(planner.Enumerate{}, r); cp != 16 {
		t.Errorf("with 65536 tokens cp to %d, want 16", cp)
	}
	r.Shape = spec.NewShape(8, 6, 2)
	if tp, _, _, _ := plans(planner.Enumerate{}, r); tp != 2 {
		t.Errorf("on 8+6+2 devices tp to %d, want 2", tp)
	}
}

// TestNoOffloadOnCPUs: no plan with offload is proposed on CPUs. A request that
// fixes such a plan is still answered.
func TestNoOffloadOnCPUs(t *testing.T) {
	r := request(4, 8)
	offloaded := func() (n int) {
		for c := range (planner.Enumerate{}).Configs(ctx, r) {
			if c.Plan.Offload != spec.OffloadNone {
				n++
			}
		}
		return n
	}
	if offloaded() == 0 {
		t.Error("none on GPUs: the test is empty")
	}
	r.Accelerator.Name = "CPU of some kind, 1 thread"
	if n := offloaded(); n > 0 {
		t.Errorf("%d plans offload on CPUs", n)
	}
	r.Accelerator.MemBytes /= 1e4
	if _, err := planner.New(analyticModel(t), planner.Options{}).Best(ctx, r); !errors.Is(err, planner.ErrInfeasible) || strings.Contains(err.Error(), "offload") {
		t.Errorf("error %v, want one without offload", err)
	}
	r.Plan = &spec.Plan{DP: 4, MicroBatch: 2, ZeRO: 1, Offload: spec.OffloadOptimizer}
	if offloaded() != 1 {
		t.Error("a plan that was named is not answered")
	}
}

// TestContextParallelChunks: load-balanced ring attention splits a sample in 2·CP
// chunks.
func TestContextParallelChunks(t *testing.T) {
	r := request(16, 16)
	r.PerNode, r.SeqLen = 8, 16384+8
	most := 0
	for c := range (planner.Enumerate{}).Configs(ctx, r) {
		most = max(most, c.Plan.CP)
	}
	if most != 4 {
		t.Errorf("cp to %d for %d tokens, want 4", most, r.SeqLen)
	}
}

// plansIn lists the space of r.
func plansIn(e planner.Enumerate, r planner.Request) (out []spec.Plan) {
	for c := range e.Configs(ctx, r) {
		out = append(out, c.Plan)
	}
	return out
}

func TestSchedulesConsidered(t *testing.T) {
	r := request(4, 16)
	r.PerNode = 8
	count := func(e planner.Enumerate) map[spec.Schedule]int {
		n := map[spec.Schedule]int{}
		for _, p := range plansIn(e, r) {
			if err := p.Check(r.Model); err != nil {
				t.Errorf("%s: %v", p, err)
			}
			n[p.Schedule]++
		}
		return n
	}
	if n := count(planner.Enumerate{}); len(n) != 1 || n[spec.ScheduleDefault] == 0 {
		t.Errorf("by default %v, want 1f1b", n)
	}
	if n := count(planner.Enumerate{Schedules: []spec.Schedule{spec.Schedule1F1B, spec.ScheduleDefault}}); len(n) != 1 {
		t.Errorf("1f1b alone: %v", n)
	}
	n := count(planner.Enumerate{Schedules: append(spec.Schedules(), "dualpipe")})
	if len(n) != 6 || n["dualpipe"] > 0 {
		t.Errorf("all: %v, want the six there are", n)
	}
}

// Uneven stages are proposed where PP does not divide the layers. Where it does, each
// plan has one name.
func TestUnevenStagesConsidered(t *testing.T) {
	r := request(12, 12)
	r.PerNode, r.Model = 8, testModel(7, 128*12, 12)
	most := 0
	interleaved := map[[2]int]bool{}
	for _, p := range plansIn(planner.Enumerate{}, r) {
		most = max(most, p.PP)
		if p.PP > 1 && p.VirtualStages > 1 {
			interleaved[[2]int{p.PP, p.VirtualStages}] = true
		}
	}
	if most != 6 {
		t.Errorf("pp to %d of 12 devices for 7 layers, want 6", most)
	}
	// 7 layers, embedding and head are 3 x 3.
	if want := map[[2]int]bool{{3, 3}: true}; !maps.Equal(interleaved, want) {
		t.Errorf("7 layers are interleaved with pp, vp of %v, want %v", interleaved, want)
	}
}

func TestShardGroupsConsidered(t *testing.T) {
	r := request(16, 16)
	r.PerNode = 8
	groups := map[[2]int]bool{}
	for _, p := range plansIn(planner.Enumerate{}, r) {
		if p.Shard == 0 {
			continue
		}
		groups[[2]int{p.TP, p.Shard}] = true
		if p.ZeRO == 0 || p.PP > 1 || p.Shard*p.TP != 8 {
			t.Errorf("%s shards over %d", p, p.Shard)
		}
	}
	if len(groups) != 3 {
		t.Errorf("groups of %v, want 8, 4 and 2 with tp 1, 2 and 4", groups)
	}
}

// Tensor parallel groups span nodes that a scale-up link joins, by default, and no others.
func TestPlansInScaleUpDomain(t *testing.T) {
	for _, tc := range []struct {
		accelerator string
		devices     int
		perNode     int
		most        int // tensor parallel degree
	}{
		{"H100-80GB-SXM", 64, 8, 8}, {"GB200", 64, 4, 64}, {"GB200", 8, 4, 8}, {"GB300", 144, 4, 72}, {"GB200", 128, 4, 64}, {"VR200", 4, 4, 4},
	} {
		r := planner.Request{Model: testModel(8, 128*576, 576), Devices: tc.devices, PerNode: tc.perNode, GlobalBatch: 1024, Accelerator: spec.Accelerator{Name: tc.accelerator}}
		most := 0
		for c := range (planner.Enumerate{}).Configs(ctx, r) {
			most = max(most, c.Plan.TP)
		}
		if want := tc.most; most != want {
			t.Errorf("%d x %s, %d a node: tp=%d, want %d", tc.devices, tc.accelerator, tc.perNode, most, want)
		}
	}
}
