package analytic

import (
	"testing"

	"github.com/pacer-ml/pacer/perfmodel/internal/perftest"
	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// sparse is a model of eight experts per layer, two for each token, and a shared one.
func sparse() spec.Model {
	return spec.Model{Name: "sparse", Kind: spec.Decoder, Layers: 4, Hidden: 1024, Heads: 8, HeadDim: 128, Vocab: 32000, SeqLen: 2048, GatedMLP: true,
		Experts: 8, ExpertsPerToken: 2, ExpertFFN: 512, SharedExperts: 1, QRank: 256, KVRank: 512}
}

// again returns the work that a stack with recompute=names repeats of a layer of m, and the whole layer.
func again(t *testing.T, m spec.Model, plan spec.Plan, stack, names string) (modules, layer) {
	t.Helper()
	k := plain()
	k.groupedGEMM, k.groupedHalf, k.fusedPasses = 1, 0, 1
	c := perftest.GPT(plan)
	c.Model = m
	c.Framework = stack + " recompute=" + names
	pr, p := counted(t, k, c)
	l := pr.work.layerOf(&pr.machine, p)
	return l.again, l
}

// TestModulesRepeat counts the forward pass of each module: multiplications at 312 TFLOP/s, passes at 2039 GB/s. n is
// 2048 tokens.
func TestModulesRepeat(t *testing.T) {
	const (
		n, rate, mem = 2048., 312e12, 2039e9
		megatron     = "Megatron Core@0.12"

		// Dense: h is 4096, f 16384. The activation reads and writes one tensor, a norm too.
		mlp       = 2*2*n*4096*16384/rate + 2*2*n*16384/mem
		denseNorm = 2 * 2 * n * 4096 / mem

		// Experts: h is 1024, f 512. A gated activation reads two tensors and writes one.
		routed = 2*3*(2*n)*1024*512/rate + 2*3*(2*n)*512/mem
		shared = 2*3*n*1024*512/rate + 2*3*n*512/mem
		act    = 2 * 3 * (2 * n) * 512 / mem
		norm   = 2 * 2 * n * 1024 / mem
		// Queries of 8 heads of 128 + 64 from 256, keys and values of 128 from 512.
		up = 2 * n * (8*192*256 + 8*256*512) / rate
	)
	sorted := base.moePasses / 3 * 2 * (2 * n) * 1024 / mem // passes over the copies of tokens
	one := spec.Plan{DP: 1, MicroBatch: 1, Precision: spec.BF16, Recompute: spec.RecomputeSelective}
	dense := perftest.GPTModel()
	dense.ParamCount = 0
	for _, c := range []struct {
		model   spec.Model
		stack   string
		modules string
		sec     float64
	}{
		{dense, megatron, "mlp", mlp + denseNorm}, // with its fused norm
		{dense, megatron, "layernorm", 0},         // both are fused
		{dense, megatron, "moe+moe_act+shared_experts+mla_up_proj", 0},
		{dense, "FSDP", "mlp", mlp},
		{dense, "FSDP", "layernorm", 2 * denseNorm},
		{dense, "FSDP", "mlp+layernorm", mlp + 2*denseNorm},
		{sparse(), megatron, "mlp", 0}, // no dense layers
		{sparse(), megatron, "moe", routed + sorted + shared},
		{sparse(), megatron, "moe_act", act},
		{sparse(), megatron, "shared_experts", shared},
		{sparse(), megatron, "layernorm", 2 * norm}, // before latent attention and experts
		{sparse(), megatron, "mla_up_proj", up},
		{sparse(), megatron, "moe+moe_act+shared_experts", routed + sorted + shared},
		{sparse(), megatron, "moe_act+layernorm", act + 2*norm},
		{sparse(), megatron, "moe+mla_up_proj", routed + sorted + shared + up},
	} {
		got, _ := again(t, c.model, one, c.stack, c.modules)
		same(t, c.model.Name+", "+c.stack+" recompute="+c.modules, got.device, c.sec)
	}
}

// TestModulesRepeatTraffic: experts repeat the two all-to-alls of their forward pass, MLPs and experts one of the two
// all-reduces of a layer's. In a hybrid, a layer that is an MLP alone has one all-reduce, and half the launches.
func TestModulesRepeatTraffic(t *testing.T) {
	plan := spec.Plan{DP: 4, TP: 2, EP: 4, MicroBatch: 1, Precision: spec.BF16, Recompute: spec.RecomputeSelective}
	got, l := again(t, sparse(), plan, "Megatron Core@0.12", "moe")
	same(t, "all-to-alls", got.ep, l.ep/2)
	same(t, "all-reduces of experts", got.tp, 1)
	same(t, "launch of experts", got.launch, l.launch)
	if got, _ := again(t, sparse(), plan, "Megatron Core@0.12", "moe_act+shared_experts+layernorm+mla_up_proj"); got.ep != 0 || got.tp != 0 {
		t.Errorf("modules without dispatch repeat %+v", got)
	}

	plan.EP = 1
	dense := perftest.GPTModel()
	got, l = again(t, dense, plan, "Megatron Core@0.12", "mlp")
	same(t, "all-reduces of an MLP", got.tp*l.tp, l.tp)
	same(t, "launch of an MLP", got.launch, l.launch/2)

	dense.SSMLayers, dense.MLPLayers, dense.SSMHeads, dense.SSMHeadDim, dense.SSMState, dense.SSMGroups = 12, 16, 64, 64, 128, 8
	half, h := again(t, dense, plan, "Megatron Core@0.12", "mlp") // half of the layers are an MLP
	same(t, "all-reduces of a hybrid's layer", h.tp, l.tp/2)
	same(t, "all-reduces of its MLPs, one for each pair of layers", half.tp*h.tp, l.tp/2)
	same(t, "launch of its MLPs", half.launch, h.launch/2)
}

// TestModulesInStep: a step takes longer by the repeated work of all layers and micro-batches.
func TestModulesInStep(t *testing.T) {
	c := perftest.GPT(spec.Plan{DP: 1, MicroBatch: 1, AccumSteps: 4, Precision: spec.BF16})
	c.Framework = "Megatron Core@0.12 recompute=mlp"
	none, p := counted(t, plain(), c)
	before := none.parts(p)
	c.Plan.Recompute = spec.RecomputeSelective
	pr, p := counted(t, plain(), c)
	after := pr.parts(p)
	l := pr.work.layerOf(&pr.machine, p)
	same(t, "recomputation", after.Recompute-before.Recompute, 4*32*l.again.device)
	same(t, "computation", after.Compute, before.Compute)
}

// TestOffloadedExposed: activations that go to the host behind the next layer take no time on a fast link. On a slow one
// the step is longer, by no more than the bytes of both ways over the link's rate.
func TestOffloadedExposed(t *testing.T) {
	for m, activations := range map[spec.Model]string{perftest.GPTModel(): "offloaded", sparse(): "offloaded", sparse().WithPacked(1 << 20): "experts"} {
		last := 0.0
		for _, rate := range []float64{1e16, 256e9, 64e9, 32e9, 16e9, 4e9, 1e9, 1e6} {
			c := perftest.GPT(spec.Plan{DP: 1, MicroBatch: 1, Precision: spec.BF16})
			c.Model = m
			c.Link.HostBps = rate
			c.Framework = "Megatron Core@0.12 activations=" + activations
			k := plain()
			k.hostShare = 1
			pr, p := counted(t, k, c)
			got := pr.parts(p).Offload
			bytes := float64(m.Layers) * pr.Memory.Offloaded(p, pr.choice)
			most := 2 * bytes / rate
			compute := pr.parts(p).Compute
			switch {
			case !(bytes > 0):
				t.Fatalf("%s: sends %g bytes to the host", m.Name, bytes)
			case rate == 1e16 && got > 1e-9*compute:
				t.Errorf("%s: exposed %g s of %g s on a fast link, want 0", m.Name, got, compute)
			case got < last || rate < 64e9 && got == last || got > most*(1+1e-9):
				t.Errorf("%s at %g bytes/s: exposed %g s, want from %g to %g", m.Name, rate, got, last, most)
			case rate == 1e6 && got < most-compute:
				t.Errorf("%s: exposed %g s, want at least %g without %g of compute", m.Name, got, most, compute)
			}
			last = got
			c.Framework = "Megatron Core@0.12"
			kept, p := counted(t, k, c)
			if o := kept.parts(p).Offload; o != 0 {
				t.Errorf("%s: activations on the device take %g s", m.Name, o)
			}
		}
	}
}
