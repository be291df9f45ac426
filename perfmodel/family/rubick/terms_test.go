package rubick

import (
	"math"
	"testing"

	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// tiny returns a configuration with round values: 1000 parameters of 2 bytes, links of 1 byte/s, a hidden state
// of 2·16·8 = 256 bytes, and 145152 FLOPs per sample, 49152 of them for attention scores.
func tiny(p spec.Plan, nodes ...int) spec.Config {
	p.Precision = spec.BF16
	return spec.Config{
		Model:       spec.Model{Name: "tiny", Kind: spec.Decoder, Layers: 4, Hidden: 8, Heads: 2, FFN: 32, SeqLen: 16, ParamCount: 1000},
		Accelerator: spec.Accelerator{Name: "unit", BF16: 1, MemBps: 1},
		Link:        spec.Link{IntraBps: 1, InterBps: 1},
		Shape:       spec.NewShape(nodes...), Plan: p,
	}
}

// TestRubickTermsByHand computes every term by hand, in bytes and FLOPs.
func TestRubickTermsByHand(t *testing.T) {
	compute := func(r *configTerms) float64 { return r.compute }
	inside := func(r *configTerms) float64 { return r.intra }
	between := func(r *configTerms) float64 { return r.inter }
	syncInside := func(r *configTerms) float64 { return r.syncIntra }
	syncBetween := func(r *configTerms) float64 { return r.syncInter }
	update := func(r *configTerms) float64 { return r.optim }
	onHost := func(r *configTerms) float64 { return r.hostStep }
	toHost := func(r *configTerms) float64 { return r.hostCopy }
	for _, tc := range []struct {
		name string
		c    spec.Config
		of   func(*configTerms) float64
		want float64
	}{
		{"compute", tiny(spec.Plan{MicroBatch: 2}, 1), compute, 2 * 145152},
		{"split by TP", tiny(spec.Plan{TP: 2}, 2), compute, 145152 / 2},
		{"full recomputation", tiny(spec.Plan{Recompute: spec.RecomputeFull}, 1), compute, 145152 * 4 / 3},
		{"selective recomputation", tiny(spec.Plan{Recompute: spec.RecomputeSelective}, 1), compute, 145152 + 49152/3},
		{"pipeline: (8 + 3)/4 micro-batch times", tiny(spec.Plan{PP: 4, AccumSteps: 8}, 4), compute, 145152 * 11.0 / 4},
		{"interleaved: (8 + 3/2)/4", tiny(spec.Plan{PP: 4, AccumSteps: 8, VirtualStages: 2}, 4), compute, 145152 * 9.5 / 4},

		{"4 layers x 4 all-reduces x 2·3/4", tiny(spec.Plan{TP: 4}, 4), inside, 4 * 4 * 1.5 * 256},
		{"6 with full recomputation", tiny(spec.Plan{TP: 4, Recompute: spec.RecomputeFull}, 4), inside, 4 * 6 * 1.5 * 256},
		{"a group on two nodes, nothing inside", tiny(spec.Plan{TP: 4}, 2, 2), inside, 0},
		{"all of it through one card of four", tiny(spec.Plan{TP: 4}, 2, 2), between, 4 * 4 * 1.5 * 256 * 4},

		{"boundaries on one node", tiny(spec.Plan{PP: 4, AccumSteps: 8}, 4), inside, 2 * 256 * (3 + 7)},
		{"one of three between nodes, two to a card", tiny(spec.Plan{PP: 4, AccumSteps: 8}, 2, 2), between, 2 * 256 * (3 + 7) / 3.0 * 4 * 2},

		{"2·3/4 of the gradients", tiny(spec.Plan{DP: 4}, 4), syncInside, 1.5 * 2000},
		{"half as much again with ZeRO-3", tiny(spec.Plan{DP: 4, ZeRO: 3}, 4), syncInside, 1.5 * 1.5 * 2000},
		{"no more with ZeRO-2", tiny(spec.Plan{DP: 4, ZeRO: 2}, 4), syncInside, 1.5 * 2000},
		{"context parallel replicas too", tiny(spec.Plan{DP: 2, CP: 2}, 4), syncInside, 1.5 * 2000},
		{"two devices share one card of four", tiny(spec.Plan{DP: 4}, 2, 2), syncBetween, 1.5 * 2000 * 4},
		{"four devices reach two cards", tiny(spec.Plan{DP: 8}, 4, 4), syncBetween, 1.75 * 2000 * 2},
		{"eight reach all", tiny(spec.Plan{DP: 16}, 8, 8), syncBetween, 1.875 * 2000},
		{"stages inside nodes stay there", tiny(spec.Plan{DP: 4, PP: 2}, 4, 4), syncBetween, 0},

		{"optimizer", tiny(spec.Plan{DP: 4}, 4), update, 1000},
		{"its shard, over DP and CP", tiny(spec.Plan{DP: 2, CP: 2, ZeRO: 1}, 4), update, 250},
		{"a stage's, a TP rank's", tiny(spec.Plan{TP: 2, PP: 2}, 4), update, 250},
		{"on the host", tiny(spec.Plan{DP: 4, ZeRO: 2, Offload: spec.OffloadOptimizer}, 4), onHost, 250},
		{"copied whole", tiny(spec.Plan{DP: 4, ZeRO: 2, Offload: spec.OffloadOptimizer}, 4), toHost, 1000},
	} {
		r := newTerms(&tc.c, false)
		if got := tc.of(&r); math.Abs(got-tc.want) > 1e-9*tc.want {
			t.Errorf("%s: %g, want %g", tc.name, got, tc.want)
		}
	}
	cpus := tiny(spec.Plan{DP: 4, ZeRO: 2, Offload: spec.OffloadOptimizer}, 4)
	cpus.Shape.CPUs = 16 // 4 threads per device; the default is 12
	if r := newTerms(&cpus, false); r.hostStep != 3*250 {
		t.Errorf("a third of the threads: %g, want %g", r.hostStep, 3*250.0)
	}
}
