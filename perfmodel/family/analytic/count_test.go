package analytic

import (
	"fmt"
	"math"
	"testing"

	"github.com/pacer-ml/pacer/perfmodel/internal/perftest"
	"github.com/pacer-ml/pacer/perfmodel/memory"
	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// These tests count the parts of a step by hand, with constants that make the count simple.

// plain returns constants with which kernels and links reach their datasheet rates, nothing overlaps and nothing
// saturates.
func plain() *constants {
	k := base
	for i := range k.shares {
		k.shares[i] = shares{gemm: 1, gemm8: 1, gemm4: 1, flash: 1, ring: 1}
	}
	k.waveHalf, k.depthHalf, k.misaligned = 0, 0, 1
	k.memShare, k.netShare, k.torchFlash, k.hopperFlash, k.flashHalf, k.hiddenCost = 1, 1, 1, 1, 0, 0
	k.dpHidden, k.fsdpHidden, k.zero3Hidden, k.zero3Traffic = 0, 0, 0, 1
	return &k
}

// counted returns c prepared with constants k, and its normal plan.
func counted(t *testing.T, k *constants, c spec.Config) (*Prepared, *spec.Plan) {
	t.Helper()
	pr := &Prepared{}
	if c.Framework == "" {
		c.Framework = "Megatron Core"
	}
	if err := (&Physics{any: k, Memory: memory.Prior()}).Open(&c, "", pr); err != nil {
		t.Fatal(err)
	}
	p := c.Plan.Normal()
	return pr, &p
}

func same(t *testing.T, what string, got, want float64) {
	t.Helper()
	if !(math.Abs(got-want) <= 1e-9*math.Abs(want)) {
		t.Errorf("%s: %g, counted %g", what, got, want)
	}
}

func TestCountHead(t *testing.T) {
	k := plain()
	k.passesLogits = 0
	c := perftest.GPT(spec.Plan{DP: 2, TP: 4, MicroBatch: 2, Precision: spec.BF16})
	pr, p := counted(t, k, c)
	m := perftest.GPTModel()
	same(t, "6·n·h·V/t FLOPs", pr.work.headSec(&pr.machine, p), 6*2*2048*4096*float64(m.Vocab)/4/312e12)
}

func TestCountGEMM(t *testing.T) {
	k := plain()
	k.misaligned, k.mxGEMM, k.rowwiseGEMM = 1.5, 0.9, 0.6
	c := perftest.GPT(spec.Plan{DP: 1, MicroBatch: 1, Precision: spec.BF16})
	c.Accelerator.FP8 = 624e12
	pr, _ := counted(t, k, c)
	m := &pr.machine
	even := m.gemm(m.peak16, 4096, 4096, 4096, 2)
	same(t, "2MNK", even, 2*4096*4096*4096/312e12)
	same(t, "a width of 4095", m.gemm(m.peak16, 4096, 4095, 4096, 2), 1.5*even*4095/4096)
	same(t, "one row moves the matrix", m.gemm(m.peak16, 1, 4096, 4096, 2), 2*(4096+4096+4096*4096)/2039e9)
	for p, share := range map[spec.Precision]float64{spec.FP8: 1, spec.MXFP8: 0.9, spec.FP8Rowwise: 0.6} {
		rate, quantized := m.matmul(p)
		same(t, string(p), rate, 624e12*share)
		if !quantized {
			t.Errorf("%s is not quantized", p)
		}
	}
}

func TestCountAttention(t *testing.T) {
	c := perftest.GPT(spec.Plan{DP: 1, CP: 4, MicroBatch: 1, Precision: spec.BF16})
	flops := 4 * 2048.0 / 4 * 2048 * 4096
	for _, framework := range []string{"Megatron-Bridge", "torchtitan"} { // both balance the causal half of the scores
		c.Framework = framework
		pr, p := counted(t, plain(), c)
		var l layer
		pr.work.attention(&pr.machine, p, &l, 2048.0/4, 2)
		same(t, framework+" forward", l.attn, 0.5*flops/312e12)
		same(t, framework+" backward", l.attnBack, 2.5*l.attn)
	}
	pr, p := counted(t, plain(), c)
	var l layer
	pr.work.exchange(&pr.machine, p, &l, 2048.0/4, 2)
	// Keys and values of the other three ranks, three times.
	same(t, "ring attention", l.cp, 3*3*(2*2*2048.0/4*4096)/300e9)
}

// TestCountHeadsForTokens: each of four ranks sends three quarters of its queries, keys, values and outputs to the others, and
// their gradients back. Of 32 heads, 8 have keys and values; latent attention gives each head its own, with rotated parts of 64.
func TestCountHeadsForTokens(t *testing.T) {
	at := func(plan spec.Plan, change func(m *spec.Model)) float64 {
		plan.MicroBatch, plan.Precision = 1, spec.BF16
		c := perftest.GPT(plan)
		c.Framework = "Megatron Core@0.12 cp=a2a"
		change(&c.Model)
		pr, p := counted(t, plain(), c)
		var l layer
		pr.work.exchange(&pr.machine, p, &l, 512, 2)
		return l.cp
	}
	same(t, "four equal widths", at(spec.Plan{CP: 4}, func(*spec.Model) {}), 2*3/4.*(2*512*4*4096)/300e9)
	same(t, "half of the heads", at(spec.Plan{CP: 4, TP: 2}, func(*spec.Model) {}), 3/4.*(2*512*4*4096)/300e9)
	same(t, "fewer keys", at(spec.Plan{CP: 4}, func(m *spec.Model) { m.KVHeads = 8 }), 2*3/4.*(2*512*2.5*4096)/300e9)
	latent := at(spec.Plan{CP: 4}, func(m *spec.Model) { m.QRank, m.KVRank = 1536, 512 })
	same(t, "latent", latent, 2*3/4.*(2*512*32*(2*(128+64)+2*128))/300e9)
	// Eight ranks on two nodes send half of it over a network link that four share.
	same(t, "two nodes", at(spec.Plan{DP: 1, TP: 2, CP: 8}, func(*spec.Model) {}), 2*(1/2.*(2*512*2*4096)*8/200e9))
}

// TestCountExponentials: a score takes one exponential, whatever the width of its head.
func TestCountExponentials(t *testing.T) {
	at := func(a spec.Accelerator, heads int) layer {
		c := perftest.GPT(spec.Plan{DP: 1, MicroBatch: 1, Precision: spec.BF16})
		c.Accelerator = a
		c.Model.Heads, c.Model.HeadDim = heads, c.Model.Hidden/heads
		pr, p := counted(t, plain(), c)
		var l layer
		pr.work.attention(&pr.machine, p, &l, 2048, 2)
		return l
	}
	a100 := perftest.GPT(spec.Plan{}).Accelerator
	b200 := a100
	b200.Name, b200.Arch = "B200", "Blackwell"
	if a, b := at(a100, 32), at(b200, 32); a != b {
		t.Errorf("heads of 128 take %+v on Blackwell and %+v on Ampere at the same rates", b, a)
	}
	wide, narrow := at(b200, 32), at(b200, 64)
	// As many exponentials as multiplications at 128, twice as many at 64; smoothMax(1, 2)/smoothMax(1, 1).
	same(t, "forward", narrow.attn, wide.attn*math.Pow(17.0/2, 0.25))
	// The backward pass multiplies 2.5 times as much for the same exponentials.
	same(t, "backward", narrow.attnBack, wide.attnBack*math.Pow((1+math.Pow(0.8, 4))/(1+math.Pow(0.4, 4)), 0.25))
	if grow := at(a100, 64).attn / at(a100, 32).attn; grow > 1.02 {
		t.Errorf("on Ampere heads of 64 take %.2f times as long, want little more", grow)
	}
}

// TestCountAhead: a module for multi-token prediction is a layer more, a projection of twice the width, and the head
// once more; adapters do not train it.
func TestCountAhead(t *testing.T) {
	k := plain()
	c := perftest.GPT(spec.Plan{DP: 1, MicroBatch: 1, Precision: spec.BF16})
	c.Model.ParamCount = 0
	pr, p := counted(t, k, c)
	more := c
	more.Model.MTPLayers = 2
	ahead, _ := counted(t, k, more)
	n, h := 2048.0, float64(c.Model.Hidden)
	same(t, "head", ahead.work.headSec(&ahead.machine, p), 3*pr.work.headSec(&pr.machine, p)+2*6*n*2*h*h/312e12)
	same(t, "layers", ahead.work.layers, pr.work.layers+2)
	same(t, "each", ahead.work.layerOf(&ahead.machine, p).forward, pr.work.layerOf(&pr.machine, p).forward)

	hybrid := more
	hybrid.Model.SSMLayers, hybrid.Model.MLPLayers = 12, 12
	hybrid.Model.SSMHeads, hybrid.Model.SSMHeadDim, hybrid.Model.SSMState, hybrid.Model.SSMGroups = 64, 64, 128, 8
	pr, _ = counted(t, k, hybrid)
	m := &hybrid.Model
	same(t, "layers of a hybrid", pr.work.layers, float64(m.Layers+2*2))
	same(t, "with attention", pr.work.attn*pr.work.layers, float64(m.AttentionLayers()+2))
	same(t, "with an MLP", pr.work.dense*pr.work.layers, float64(m.MLPLayers+2))
	same(t, "with a state-space mixer", pr.work.ssm*pr.work.layers, float64(m.SSMLayers))
	same(t, "mixers and MLPs", 2*pr.work.halves*pr.work.layers, float64(m.Layers+2*2))

	only := c
	only.Model.Heads, only.Model.KVHeads, only.Model.HeadDim, only.Model.FFN = 0, 0, 0, 0
	only.Model.SSMLayers, only.Model.SSMHeads, only.Model.SSMHeadDim, only.Model.SSMState, only.Model.SSMGroups = c.Model.Layers, 64, 64, 128, 8
	pr, p = counted(t, k, only)
	if l := pr.work.layerOf(&pr.machine, p); !(l.forward > 0) || l.attn != 0 || l.attnBack != 0 || !(l.passes > 0) {
		t.Errorf("a layer without attention: %+v", l)
	}

	more.Model.Adapter = spec.Adapter{Kind: spec.LoRA, Rank: 16, Modules: spec.AdaptQKV}
	pr, _ = counted(t, k, more)
	same(t, "layers with adapters", pr.work.layers, float64(c.Model.Layers))
}

// TestCountLatentAttention: all tensor parallel ranks compress, the rest is split over them; scores are of heads
// with their rotated parts.
func TestCountLatentAttention(t *testing.T) {
	k := plain()
	c := perftest.GPT(spec.Plan{DP: 2, TP: 4, MicroBatch: 2, Precision: spec.BF16})
	c.Model.QRank, c.Model.KVRank = 1536, 512
	pr, p := counted(t, k, c)
	h, a, d := float64(c.Model.Hidden), float64(c.Model.Heads), float64(c.Model.Head())
	n := 2 * float64(c.Seq())
	params := h*(1536+512+64) + (1536*a*(d+64)+512*a*2*d+h*a*d)/4
	same(t, "projections", pr.work.projections(&pr.machine, 312e12, n, 4, 2), 2*n*params/312e12)
	l := pr.work.layerOf(&pr.machine, p)
	same(t, "scores", l.attn, n*float64(c.Seq())*a*(2*d+64)/4/312e12*slowHeads(0.25, d+32))

	c = perftest.GPT(spec.Plan{DP: 1, CP: 4, MicroBatch: 1, Precision: spec.BF16})
	pr, p = counted(t, k, c)
	full, ring := &pr.work, layer{}
	full.exchange(&pr.machine, p, &ring, 512, 2)
	c.Model.QRank, c.Model.KVRank = 1536, 512
	latentRing := layer{}
	pr2, p2 := counted(t, k, c)
	pr2.work.exchange(&pr2.machine, p2, &latentRing, 512, 2)
	same(t, "ring of keys and values, and of one rotated key", latentRing.cp, ring.cp*(2*a*d+64)/(2*a*d))
}

// TestCountAccumulation: gradients are accumulated if there are several micro-batches; under ZeRO-2 only those
// of the shard.
func TestCountAccumulation(t *testing.T) {
	k := plain()
	k.accumBytes = 8
	at := func(zero, accum int) float64 {
		pr, p := counted(t, k, perftest.GPT(spec.Plan{DP: 4, ZeRO: zero, MicroBatch: 1, AccumSteps: accum, Precision: spec.BF16}))
		own := pr.owned(p)
		return pr.accumulateSec(p, &own)
	}
	pr, p := counted(t, k, perftest.GPT(spec.Plan{DP: 1, MicroBatch: 1, Precision: spec.BF16}))
	own := pr.owned(p).all.Dense
	same(t, "three micro-batches", at(1, 3), 3*8*own/2039e9)
	same(t, "of a shard", at(2, 3), 3*8*own/4/2039e9)
	pr, p = counted(t, k, perftest.GPT(spec.Plan{DP: 4, ZeRO: 2, Shard: 2, MicroBatch: 1, AccumSteps: 3, Precision: spec.BF16}))
	all := pr.owned(p)
	same(t, "of a shard of two groups", pr.accumulateSec(p, &all), 3*8*own/2/2039e9)
	same(t, "one micro-batch", at(1, 1), 0)
}

func TestCountExperts(t *testing.T) {
	c := perftest.GPT(spec.Plan{DP: 8, EP: 8, MicroBatch: 1, Precision: spec.BF16})
	c.Model.Experts, c.Model.ExpertsPerToken, c.Model.ExpertFFN = 16, 2, 4096
	k := plain()
	k.allToAll, k.groupedGEMM, k.groupedHalf = 0.5, 1, 0
	pr, p := counted(t, k, c)
	var l layer
	pr.work.dispatch(&pr.machine, p, &l, 2048, 2)
	// Four times, half of 7/8 of two copies of each token leave the device.
	same(t, "all-to-alls", l.ep, 4*0.5*7.0/8*2*2048*2*4096/300e9)
	full := pr.work.experts(&pr.machine, p, 312e12, 2048, 2)
	k.groupedHalf = 2048 // rows of each of the two experts here
	pr, p = counted(t, k, c)
	same(t, "half the rate at the half size", pr.work.experts(&pr.machine, p, 312e12, 2048, 2), 2*full)
}

func TestCountHiddenTraffic(t *testing.T) {
	k := plain()
	k.hiddenCost = 0.1
	m := machine{k: k}
	same(t, "nothing to hide behind", m.exposed(3, 0), 3)
	if got := m.exposed(1, 100); math.Abs(got-0.1) > 1e-6 {
		t.Errorf("all hidden: %g, want its cost, 0.1", got)
	}
	if got := m.exposed(100, 1); math.Abs(got-(99+0.1)) > 1e-6 {
		t.Errorf("hardly hidden: %g, want 99 and the cost of 1, 0.1", got)
	}
}

func TestCountRingLatency(t *testing.T) {
	k := plain()
	k.netHopSec = 1e-6
	m := machine{k: k, share: &shares{hop: 1e-7}}
	same(t, "between nodes: a step per rank", m.ringLatency(ring{n: 64, inner: 8}), 63e-6)
	same(t, "inside a node", m.ringLatency(ring{n: 8, inner: 8}), 3e-7)
}

func TestCountGradients(t *testing.T) {
	of := func(framework string, p spec.Plan, k *constants) float64 {
		c := perftest.GPT(p)
		c.Framework = framework
		pr, plan := counted(t, k, c)
		pr.applyStack(plan)
		own := pr.owned(plan)
		t := pr.dataTraffic(plan, &own)
		return pr.machine.exposedTraffic(&t, 1, 1)
	}
	k := plain()
	k.netHopSec = 0
	c := perftest.GPT(spec.Plan{DP: 8, MicroBatch: 1, Precision: spec.BF16})
	pr, p := counted(t, k, c)
	dense := pr.owned(p).all.Dense
	pass := 7.0 / 8 * dense / 300e9 // per byte of a parameter
	for _, x := range []struct {
		framework string
		plan      spec.Plan
		bytes     float64
	}{
		{"Megatron-LM@2021", spec.Plan{DP: 8, Precision: spec.BF16}, 2 * 2},
		{"Megatron-DeepSpeed@2021", spec.Plan{DP: 8, Precision: spec.FP16}, 2 * 2},
		{"Megatron-DeepSpeed@2021", spec.Plan{DP: 8, Precision: spec.BF16}, 2 * 4},
		{"Megatron-LM@2021", spec.Plan{DP: 8, Precision: spec.BF16, ZeRO: 1}, 2 + 2},
		{"torchtitan", spec.Plan{DP: 8, Precision: spec.BF16, ZeRO: 3, AccumSteps: 3}, 3 * (2 + 2 + 4)},
	} {
		x.plan.MicroBatch = 1
		same(t, x.framework+" "+x.plan.String(), of(x.framework, x.plan, k), x.bytes*pass)
	}
	// Weights that are held in fp8 are gathered in a byte, but for the embedding and the norms; mxfp8 is not.
	pr, p = counted(t, k, perftest.GPT(spec.Plan{DP: 8, MicroBatch: 1, ZeRO: 1, Precision: spec.FP8}))
	matrices := pr.owned(p).all.Linear
	for text, share := range map[string]float64{"fp8": 1, "mxfp8": 0, "fp8-rowwise": 1, "bf16": 0} {
		zero1 := spec.Plan{DP: 8, MicroBatch: 1, ZeRO: 1, Precision: spec.Precision(text)}
		same(t, text+" weights", of("Megatron-LM@2021 weights=fp8", zero1, k), (2+2-share*matrices/dense)*pass)
	}
	// Sharded inside each of two nodes: two gathers and a reduce-scatter of everything inside, and an
	// all-reduce of each rank's eighth between the nodes.
	inside := 3 * 2 * pass
	across := 2 * 1.0 / 2 * 8 * 2 * dense / 8 / 200e9
	same(t, "HSDP", of("FSDP@2024 zero=hsdp", spec.Plan{DP: 16, MicroBatch: 1, Precision: spec.BF16, ZeRO: 3}, k), inside+across)
	same(t, "shard=8", of("FSDP@2024", spec.Plan{DP: 16, MicroBatch: 1, Precision: spec.BF16, ZeRO: 3, Shard: 8}, k), inside+across)
	same(t, "shard=8, zero=1", of("Megatron-LM@2021", spec.Plan{DP: 16, MicroBatch: 1, Precision: spec.BF16, ZeRO: 1, Shard: 8}, k), inside*2/3+across)
	// Groups of four: two devices of each node share a network link with six others.
	four := spec.Plan{DP: 16, MicroBatch: 1, Precision: spec.BF16, ZeRO: 1, Shard: 4}
	same(t, "shard=4", of("Megatron-LM@2021", four, k), 2*2*3.0/4*dense/300e9+2*3.0/4*2*dense/4*4/200e9)
}

func TestCountOptimizer(t *testing.T) {
	of := func(zero, shard int) float64 {
		pr, p := counted(t, plain(), perftest.GPT(spec.Plan{DP: 8, MicroBatch: 1, Precision: spec.BF16, ZeRO: zero, Shard: shard}))
		var out Parts
		own := pr.owned(p)
		pr.updateSec(p, &own, &out)
		return out.Optimizer
	}
	same(t, "a shard of eight", of(1, 0), of(0, 0)/8)
	same(t, "a shard of four, twice", of(1, 4), of(0, 0)/4)
}

// TestCountOptimizers: masters, gradients and weights are 14 bytes per parameter, each byte of moments is read and written. Muon
// takes 30 operations per parameter and unit of width besides.
func TestCountOptimizers(t *testing.T) {
	of := func(optimizer string) (float64, *Prepared, *spec.Plan) {
		c := perftest.GPT(spec.Plan{DP: 1, MicroBatch: 1, Precision: spec.BF16})
		c.Framework = "Megatron Core@0.12 optimizer=" + optimizer
		pr, p := counted(t, plain(), c)
		var out Parts
		own := pr.owned(p)
		pr.updateSec(p, &own, &out)
		return out.Optimizer, pr, p
	}
	adam, pr, p := of("adam")
	for optimizer, bytes := range map[string]float64{"adam": 30, "adam-bf16": 22, "adam-8bit": 18, "adafactor": 18, "sgd": 14} {
		got, _, _ := of(optimizer)
		same(t, optimizer, got, adam*bytes/30)
	}
	own := pr.owned(p)
	rate, _ := pr.machine.matmul(spec.BF16)
	muon, _, _ := of("muon")
	same(t, "muon", muon, adam*22/30+30*pr.work.hidden*shardOf(p, own.trained)/rate)
}

func TestCountRecompute(t *testing.T) {
	of := func(framework string, r spec.Recompute) Parts {
		c := perftest.GPT(spec.Plan{DP: 1, MicroBatch: 1, Precision: spec.BF16, Recompute: r})
		c.Framework = framework
		pr, p := counted(t, plain(), c)
		return pr.parts(p)
	}
	same(t, "every other operation", of("torchtitan", spec.RecomputeSelective).Recompute, of("torchtitan", spec.RecomputeFull).Recompute/2)
	if a, b := of("Megatron-LM@2021", spec.RecomputeSelective).Recompute, of("Megatron-LM@2021", spec.RecomputeFull).Recompute; a >= b/2 {
		t.Errorf("the attention core alone takes %g s of %g", a, b)
	}
}

func TestCountOpaque(t *testing.T) {
	k := plain()
	k.convPasses, k.convCeiling = 0, 1
	c := spec.Config{Model: spec.Model{Name: "conv", Kind: spec.Opaque, FLOPsPerSample: 8e9, ParamCount: 25e6}, Accelerator: perftest.GPTDevice(),
		Plan: spec.Plan{DP: 1, MicroBatch: 4, AccumSteps: 3, Precision: spec.BF16, Recompute: spec.RecomputeFull}, Shape: spec.NewShape(1)}
	pr, p := counted(t, k, c)
	out := pr.parts(p)
	same(t, "forward and backward", out.Compute, 3*3*4*8e9/312e12)
	same(t, "forward again", out.Recompute, 3*4*8e9/312e12)
}

// TestCountRack: eighteen nodes of four form one domain, with the network bandwidth of all of them.
func TestCountRack(t *testing.T) {
	c := perftest.GPT(spec.Plan{DP: 144, MicroBatch: 1, Precision: spec.BF16})
	c.Accelerator.Name, c.Shape, c.Link.HostBps = "GB200", spec.Packed(144, 4), 126e9
	pr, _ := counted(t, plain(), c)
	if pr.machine.domain != 72 {
		t.Errorf("a domain of %d devices", pr.machine.domain)
	}
	same(t, "network out of the rack", pr.machine.inter, 18*200e9)
}

// TestCountNetworkOfFewDevices: a job with one device per node has the network of the node as far as the device's
// host link carries it.
func TestCountNetworkOfFewDevices(t *testing.T) {
	c := perftest.GPT(spec.Plan{DP: 2, MicroBatch: 1, Precision: spec.BF16})
	for _, of := range []struct {
		shape      spec.Shape
		host, want float64
	}{
		{spec.Packed(2, 1), 30e9, 30e9},
		{spec.Packed(4, 2), 30e9, 60e9},
		{spec.Packed(16, 8), 30e9, 200e9},
		{spec.Packed(2, 1), 300e9, 200e9},
		{spec.Packed(2, 1), 0, 200e9},
	} {
		c.Shape, c.Link.HostBps, c.Accelerator.HostBps = of.shape, of.host, 0
		pr, _ := counted(t, plain(), c)
		same(t, fmt.Sprintf("network, %+v", of), pr.machine.inter, of.want)
	}
	c.Link.HostBps, c.Accelerator.Arch = 30e9, "TPU"
	pr, _ := counted(t, plain(), c)
	same(t, "network of a chip with ports of its own", pr.machine.inter, 200e9)
}

// TestCountDerate: without published rates, those of the largest model are scaled by the square root of the
// power ratio.
func TestCountDerate(t *testing.T) {
	c := perftest.GPT(spec.Plan{DP: 1, MicroBatch: 1, Precision: spec.BF16})
	c.Accelerator.BF16, c.Accelerator.FP16, c.Accelerator.TF32, c.Accelerator.FP32, c.Accelerator.Watts = 0, 0, 0, 0, 100
	pr, _ := counted(t, plain(), c)
	same(t, "a quarter of the power", pr.machine.peak16, 312e12/2)
}

func TestCountPublishedSize(t *testing.T) {
	m := perftest.GPTModel()
	shape := m.ActiveParams()
	m.ParamCount = m.EmbeddingParams() + 1.3*(shape-m.EmbeddingParams())
	same(t, "published as 1.3 times the layers", publishedScale(&m), 1.3)
	m.ParamCount = 10 * shape
	same(t, "no more than twice", publishedScale(&m), 2)
}

// TestCountAdapters: frozen weights have gradients of inputs only, and adapters two thin multiplications each.
func TestCountAdapters(t *testing.T) {
	of := func(adapter string) (*Prepared, *spec.Plan, layer) {
		c := perftest.GPT(spec.Plan{DP: 4, MicroBatch: 1, ZeRO: 1, Precision: spec.BF16})
		var err error
		if c.Model.Adapter, err = spec.ParseAdapter(adapter); err != nil {
			t.Fatal(err)
		}
		pr, p := counted(t, plain(), c)
		return pr, p, pr.work.layerOf(&pr.machine, p)
	}
	full, _, whole := of("none")
	lora, p, frozen := of("lora:64")
	same(t, "forward", frozen.forward, whole.forward)
	same(t, "backward over forward", frozen.backward, 1)
	m, n, h := &lora.machine, 2048.0, 4096.0
	// Thin multiplications are bound by memory.
	thin := func(out float64) float64 {
		return 3*(m.gemm(312e12, n, 64, h, 2)+m.gemm(312e12, n, out, 64, 2)) + 3*2*n*(h+out)/2039e9
	}
	same(t, "adapters of qkv and o", frozen.adapters, thin(3*h)+thin(h))
	compute, _ := lora.kernelSec(&frozen, p)
	same(t, "layer", compute, 2*frozen.forward+frozen.adapters+frozen.attn+frozen.attnBack+frozen.passes)
	same(t, "head", lora.work.headSec(m, p)-full.work.headSec(&full.machine, p), -2*n*h*51200/312e12)
	trained := 32 * 64 * (h + 3*h + 2*h)
	own := lora.owned(p)
	same(t, "trained parameters", own.trained.Dense, trained)
	var out Parts
	lora.updateSec(p, &own, &out)
	same(t, "optimizer", out.Optimizer, base.optimizerBytes*trained/4/2039e9)
	_, _, quantized := of("qlora:64")
	weights := 12 * h * h
	same(t, "dequantization, twice", quantized.adapters-frozen.adapters, 2*2.5*weights/2039e9)
}

// TestCountAdaptersByLayer: latent attention has adapters at each of its multiplications, experts at their width, and
// layers of a hybrid without attention none; the weights are those of the layers, experts spread over EP.
func TestCountAdaptersByLayer(t *testing.T) {
	const n, h, q, kv, ffn = 2048., 1024., 768., 256., 512.
	m := spec.Model{Name: "m", Kind: spec.Decoder, Layers: 4, Hidden: 1024, Heads: 8, HeadDim: 128, SeqLen: 2048, QRank: 768, KVRank: 256,
		Experts: 16, ExpertsPerToken: 2, ExpertFFN: 512, ExpertHidden: 256, MLPLayers: 2}
	of := func(adapter string) (*Prepared, layer) {
		c := perftest.GPT(spec.Plan{DP: 4, EP: 4, MicroBatch: 1, Precision: spec.BF16})
		c.Model, c.SeqLen = m, 0
		var err error
		if c.Model.Adapter, err = spec.ParseAdapter(adapter); err != nil {
			t.Fatal(err)
		}
		pr, p := counted(t, plain(), c)
		return pr, pr.work.layerOf(&pr.machine, p)
	}
	pr, lora := of("lora:16:qkv")
	thin := func(n, in, out float64) float64 {
		return 3*(pr.machine.gemm(312e12, n, 16, in, 2)+pr.machine.gemm(312e12, n, out, 16, 2)) + 3*2*n*(in+out)/2039e9
	}
	same(t, "qkv, in two of four layers", lora.adapters, (thin(n, h, q)+thin(n, q, 8*192)+thin(n, h, kv+64)+thin(n, kv, 2*h))/2)
	_, mlp := of("lora:16:mlp")
	same(t, "experts, in two of four layers", mlp.adapters, (thin(2*n, 256, ffn)+thin(2*n, ffn, 256))/2)
	_, quantized := of("qlora:16:qkv")
	weights := (h*(q+kv+64) + q*8*192 + kv*2*h + h*h + 2*h*256 + 16./4*2*256*ffn) / 2
	same(t, "dequantization", quantized.adapters-lora.adapters, 2*2.5*weights/2039e9)
}

// TestCountAttentionKernels: fused attention reaches half of its rate at flashHalf tokens; Hopper has kernels that are
// faster than FlashAttention 2.
func TestCountAttentionKernels(t *testing.T) {
	k := plain()
	k.flashHalf, k.hopperFlash, k.torchFlash = 2048, 1.5, 0.8
	of := func(framework, arch string) float64 {
		c := perftest.GPT(spec.Plan{DP: 1, MicroBatch: 1, Precision: spec.BF16})
		c.Framework, c.Accelerator.Arch = framework, arch
		pr, p := counted(t, k, c)
		return pr.work.layerOf(&pr.machine, p).attn
	}
	flops := 2.0 * 2048 * 2048 * 4096 / 312e12 // causal
	same(t, "FlashAttention 2", of("Megatron Core@0.3", "Hopper"), 2*flops)
	same(t, "cuDNN on Hopper", of("Megatron Core@0.13", "Hopper"), 2*flops/1.5)
	same(t, "cuDNN on Ampere", of("Megatron Core@0.13", "Ampere"), 2*flops)
	same(t, "PyTorch", of("torchtitan", "Hopper"), 2*flops/0.8)
}

// TestCountDispatch: tokens are sent to each expert, or once to each device and node; overlap hides a part.
func TestCountDispatch(t *testing.T) {
	k := plain()
	k.allToAll = 1
	of := func(parts string) float64 {
		c := perftest.GPT(spec.Plan{DP: 16, EP: 16, MicroBatch: 1, Precision: spec.BF16})
		c.Model.Experts, c.Model.ExpertsPerToken, c.Model.ExpertFFN = 16, 4, 1024
		c.Link.InterBps, c.Framework = 1e9, "Megatron Core "+parts // bound by the network
		pr, p := counted(t, k, c)
		return pr.work.layerOf(&pr.machine, p).ep
	}
	token := 2.0 * 2048 * 4096
	each := of("dispatch=all-to-all ep=none")
	same(t, "a copy for each expert: half of four leave the node of eight", each, 4*(token*4/2*8/1e9))
	same(t, "a copy for each node", of("dispatch=per-node ep=none"), each*(1-1./16)*2/4)
	same(t, "half hidden", of("dispatch=all-to-all ep=async"), each/2)
	same(t, "mostly hidden", of("dispatch=all-to-all ep=backward"), each/4)
}

// TestCountRouting: layers with experts have their own time of launches.
func TestCountRouting(t *testing.T) {
	of := func(routing string) float64 {
		c := perftest.GPT(spec.Plan{DP: 1, MicroBatch: 1, Precision: spec.BF16})
		c.Model.Experts, c.Model.ExpertsPerToken, c.Model.ExpertFFN, c.Model.DenseLayers = 8, 2, 1024, 8
		c.Framework = "Megatron Core launch=eager routing=" + routing
		pr, p := counted(t, plain(), c)
		return pr.work.layerOf(&pr.machine, p).launch
	}
	for routing, sec := range map[string]float64{"plain": base.routing[routingPlain], "fused": base.routing[routingFused], "graphs": base.routing[routingGraph]} {
		same(t, routing, of(routing), base.launch[launchEager]/4+sec*3/4)
	}
}

// TestCountDirectLinks: without a switch, a group uses the links among its members.
func TestCountDirectLinks(t *testing.T) {
	k := plain()
	of := func(name, arch string, node, group int) float64 {
		c := perftest.GPT(spec.Plan{DP: node, MicroBatch: 1, Precision: spec.BF16})
		c.Accelerator.Name, c.Accelerator.Arch, c.Shape = name, arch, spec.Packed(2*node, node)
		pr, _ := counted(t, k, c)
		return pr.machine.inside(float64(group)) / 300e9
	}
	for _, x := range []struct {
		name, arch  string
		node, group int
		want        float64
	}{
		{"V100-SXM2-32GB", "Volta", 8, 2, 1. / 6}, {"V100-SXM2-32GB", "Volta", 8, 4, 4. / 6}, {"V100-SXM2-32GB", "Volta", 8, 8, 1},
		{"V100-SXM2-32GB", "Volta", 4, 2, 1. / 3}, {"V100-SXM3-32GB", "Volta", 16, 2, 1}, {"MI300X", "CDNA3", 8, 2, 1. / 7}, {"A100", "Ampere", 8, 2, 1},
	} {
		same(t, x.name, of(x.name, x.arch, x.node, x.group), x.want)
	}
}
