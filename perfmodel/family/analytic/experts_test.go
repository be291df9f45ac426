package analytic

import (
	"fmt"
	"math"
	"testing"

	"github.com/pacer-ml/pacer/perfmodel/internal/perftest"
	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// TestImbalance: an imbalance of 1 changes no bit, a larger one takes as much longer as the busiest device has more to do,
// up to the size of its group. Layers without routed experts, shared experts and models without experts stay as they are.
func TestImbalance(t *testing.T) {
	for _, plan := range []spec.Plan{
		{DP: 8, EP: 8, MicroBatch: 1, AccumSteps: 2, Precision: spec.BF16},
		{DP: 4, TP: 2, EP: 4, PP: 2, MicroBatch: 2, AccumSteps: 4, ZeRO: 1, Precision: spec.FP8, Recompute: spec.RecomputeFull},
		{DP: 16, EP: 4, MicroBatch: 1, ZeRO: 1, Precision: spec.BF16, Recompute: spec.RecomputeSelective},
		{DP: 8, EP: 1, MicroBatch: 1, Precision: spec.BF16},
	} {
		for _, stack := range []string{"Megatron Core@0.13", "Megatron Core recompute=moe", "Megatron Core recompute=moe_act dispatch=all-to-all", "Megatron Core activations=offloaded", ""} {
			for _, adapter := range []string{"none", "lora:16:mlp"} {
				c := perftest.GPT(plan)
				c.Model = sparse()
				c.Model.Experts, c.Model.ExpertFFN, c.Framework = 64, 4096, stack
				c.Model.Adapter, _ = spec.ParseAdapter(adapter)
				even := stepSec(t, c)
				last := even
				for _, factor := range []float64{1, 1.25, 2, 4, 8, 32} {
					c.Model.Imbalance = factor
					sec := stepSec(t, c)
					more := factor > 1 && factor <= float64(plan.EP)
					if more != (sec > last) || !more && sec != last {
						t.Errorf("%s on %q, %s, imbalance %g: %g s, before %g, even %g", plan, stack, adapter, factor, sec, last, even)
					}
					last = sec
				}
			}
		}
	}
}

// TestImbalanceParts: twice the mean is twice the copies of the routed experts, in multiplications, passes and all-to-alls.
func TestImbalanceParts(t *testing.T) {
	k := plain()
	k.allToAll, k.groupedGEMM, k.groupedHalf = 1, 1, 0
	c := perftest.GPT(spec.Plan{DP: 8, EP: 8, MicroBatch: 1, Precision: spec.BF16, Recompute: spec.RecomputeSelective})
	c.Model, c.Framework = sparse(), "Megatron Core dispatch=all-to-all ep=none recompute=moe"
	c.Model.Experts = 16
	of := func(imbalance float64, perToken int) layer {
		c.Model.Imbalance, c.Model.ExpertsPerToken = imbalance, perToken
		pr, p := counted(t, k, c)
		return pr.work.layerOf(&pr.machine, p)
	}
	twice, four := of(2, 2), of(1, 4)
	same(t, "multiplications", twice.forward, four.forward)
	same(t, "passes", twice.passes, four.passes)
	same(t, "all-to-alls", twice.ep, four.ep)
	same(t, "attention", twice.attn, four.attn)
	same(t, "recomputed experts", twice.again.device, four.again.device)
	same(t, "recomputed all-to-alls", twice.again.ep, four.again.ep)
	c.Framework = "Megatron Core dispatch=all-to-all ep=none recompute=moe_act"
	same(t, "recomputed activations", of(2, 2).again.device, of(1, 4).again.device)
	c.Model.Adapter = spec.Adapter{Kind: spec.LoRA, Rank: 16, Modules: spec.AdaptMLP}
	if twice, four := of(2, 2).adapters, of(1, 4).adapters; !(twice > 0) || math.Abs(twice/four-1) > 1e-12 {
		t.Errorf("adapters take %g s, want %g", twice, four)
	}
}

// TestNodeLimit: with dispatch=per-node a token goes to the nodes of its experts, no more than the limit. A limit of all nodes
// of the group, and one on dispatch to each expert, change no bit.
func TestNodeLimit(t *testing.T) {
	k := plain()
	k.allToAll = 1
	of := func(limit, ep int, dispatch string) float64 {
		c := perftest.GPT(spec.Plan{DP: 64, EP: ep, MicroBatch: 1, Precision: spec.BF16})
		c.Model = sparse()
		c.Model.Experts, c.Model.ExpertsPerToken, c.Model.NodeLimit = 64, 8, limit
		c.Link.InterBps, c.Framework = 1e9, "Megatron Core ep=none dispatch="+dispatch // bound by the network
		pr, p := counted(t, k, c)
		return pr.work.layerOf(&pr.machine, p).ep
	}
	inside := func(limit int) float64 {
		c := perftest.GPT(spec.Plan{DP: 64, EP: 64, MicroBatch: 1, Precision: spec.BF16})
		c.Model = sparse()
		c.Model.Experts, c.Model.ExpertsPerToken, c.Model.NodeLimit = 64, 8, limit
		c.Link.IntraBps, c.Link.InterBps, c.Framework = 1e8, 1e13, "Megatron Core ep=none dispatch=per-node"
		pr, p := counted(t, k, c)
		return pr.work.layerOf(&pr.machine, p).ep
	}
	for limit, devices := range map[int]float64{0: 64, 2: 16, 4: 32} { // a copy for each device of eight experts
		same(t, fmt.Sprintf("inside nodes, limit %d", limit), inside(limit), devices*(1-math.Pow(1-1/devices, 8))*4*(7./64)*2*2048*1024/1e8)
	}
	free, last := of(0, 64, "per-node"), 0.0
	for limit := 1; limit <= 10; limit++ {
		got, m := of(limit, 64, "per-node"), float64(min(limit, 8))
		nodes := m * (1 - math.Pow(1-1/m, 8)) // of eight experts on m nodes
		same(t, fmt.Sprintf("%d nodes", limit), got, nodes*4*(7./8)*8*2*2048*1024/1e9)
		if got < last || limit >= 8 && got != free || nodes > m {
			t.Errorf("limit %d: %g s on %g nodes, with one less %g, without a limit %g", limit, got, nodes, last, free)
		}
		last = got
		if each := of(limit, 64, "all-to-all"); each != of(0, 64, "all-to-all") {
			t.Errorf("limit %d changes the dispatch to each expert: %g s", limit, each)
		}
		if inside := of(limit, 8, "per-node"); inside != of(0, 8, "per-node") {
			t.Errorf("limit %d changes a group on one node: %g s", limit, inside)
		}
	}
}
