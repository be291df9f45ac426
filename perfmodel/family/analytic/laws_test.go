package analytic

import (
	"testing"

	"github.com/pacer-ml/pacer/perfmodel/internal/perftest"
	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// TestFrozenTraffic: beside gradients of weights that are trained, traffic is hidden as the stack hides it; frozen weights
// have none, so one of four transfers is exposed that is hidden in multiplications else, and all that run on another stream.
func TestFrozenTraffic(t *testing.T) {
	k := plain()
	k.tpOverlap, k.tpAsync = 0.4, 0.8
	of := func(tp string, adapter spec.Adapter) float64 {
		c := perftest.GPT(spec.Plan{DP: 1, TP: 4, MicroBatch: 1, Precision: spec.BF16})
		c.Framework, c.Model.Adapter = "Megatron Core tp="+tp, adapter
		pr, p := counted(t, k, c)
		return pr.work.layerOf(&pr.machine, p).tp
	}
	trained, frozen := spec.Adapter{}, spec.Adapter{Kind: spec.LoRA, Rank: 16, Modules: spec.AdaptQKV}
	all := of("none", trained)
	same(t, "trained, in pieces", of("fused", trained), 0.4*all)
	same(t, "trained, on another stream", of("async", trained), 0.8*all)
	same(t, "frozen, nothing hidden", of("none", frozen), all)
	same(t, "frozen, in pieces", of("fused", frozen), (3*0.4+1)/4*all)
	same(t, "frozen, on another stream", of("async", frozen), all)
}

// TestRingStart: a ring takes the same time more until its links are busy, however fast they are and whatever it sends.
func TestRingStart(t *testing.T) {
	r := ring{n: 8, inner: 8, groups: 1}
	for _, rate := range []float64{25e9, 450e9} {
		for _, bytes := range []float64{1e3, 1e9} {
			m := &machine{intra: rate, share: &shares{}, k: plain()}
			at := m.passSec(r, bytes)
			m.share.start = 1
			same(t, "start", m.passSec(r, bytes)-at, 7./8)
		}
	}
}

// TestMixerPasses: the fitted share scales the memory passes of state-space mixers, and of nothing else.
func TestMixerPasses(t *testing.T) {
	of := func(share float64, mixers int) float64 {
		k := plain()
		k.ssmShare = share
		c := perftest.GPT(spec.Plan{DP: 1, MicroBatch: 1, Precision: spec.BF16})
		c.Model.SSMLayers, c.Model.SSMHeads, c.Model.SSMHeadDim, c.Model.SSMState, c.Model.SSMGroups = mixers, 64, 64, 128, 8
		pr, p := counted(t, k, c)
		return pr.work.layerOf(&pr.machine, p).passes
	}
	none, one := of(0, 4), of(1, 4)
	if !(one > none) {
		t.Errorf("passes %g with and %g without mixers", one, none)
	}
	same(t, "twice the passes", of(2, 4)-none, 2*(one-none))
	same(t, "a model without mixers", of(2, 0), of(1, 0))
}

// TestFewTokensOfExperts: fewer tokens never take longer, however few rows an expert has, and many take as long as before.
func TestFewTokensOfExperts(t *testing.T) {
	k := base
	c := perftest.GPT(spec.Plan{DP: 1, MicroBatch: 1, Precision: spec.BF16})
	c.Model.Experts, c.Model.ExpertsPerToken, c.Model.ExpertFFN = 128, 8, 768
	pr, p := counted(t, &k, c)
	rate, _ := pr.machine.matmul(p.Precision)
	last := 0.0
	for n := 1.0; n <= 1<<20; n *= 1.25 {
		sec := pr.work.experts(&pr.machine, p, rate, n, 2)
		if sec < last {
			t.Errorf("%.0f tokens take %g s, fewer %g s", n, sec, last)
		}
		last = sec
	}
	rows := 2048 * 8 * 128 / 128.
	saturated := rate * k.groupedGEMM * rows / (rows + k.groupedHalf)
	want := pr.work.mlp(&pr.machine, saturated, 128*rows, 4096, 768, 2)
	same(t, "many rows", pr.work.experts(&pr.machine, p, rate, 2048*128, 2), want)
}

// TestTrafficOf32Bits: in fp32, activations between stages and copies of tokens for experts are twice as large as in 16 bits.
func TestTrafficOf32Bits(t *testing.T) {
	k := plain()
	k.p2pShare, k.p2pOverlap, k.bubbleShare = 1, 1, 0
	for name, of := range map[string]struct {
		plan spec.Plan
		sec  func(*Prepared, *spec.Plan) float64
	}{
		"stages":  {spec.Plan{PP: 4}, func(pr *Prepared, p *spec.Plan) float64 { return pr.pipelineSec(p, 0, 0) }},
		"experts": {spec.Plan{DP: 4, EP: 4}, func(pr *Prepared, p *spec.Plan) float64 { return pr.work.layerOf(&pr.machine, p).ep }},
	} {
		at := func(precision spec.Precision) float64 {
			of.plan.Precision, of.plan.MicroBatch = precision, 1
			c := perftest.GPT(of.plan.Normal())
			c.Model.Experts, c.Model.ExpertsPerToken, c.Model.ExpertFFN = 16, 2, 4096
			pr, p := counted(t, k, c)
			return of.sec(pr, p)
		}
		same(t, name, at(spec.FP32), 2*at(spec.BF16))
		same(t, name, at(spec.TF32), 2*at(spec.BF16))
	}
}

// TestRingOfReplicatedHeads: a rank of tensor parallelism has one key/value head at least, so more ranks than heads send no
// less each.
func TestRingOfReplicatedHeads(t *testing.T) {
	of := func(tp int) float64 {
		c := perftest.GPT(spec.Plan{DP: 1, TP: tp, CP: 2, MicroBatch: 1, Precision: spec.BF16})
		c.Model.KVHeads = 2
		pr, p := counted(t, plain(), c)
		l := layer{}
		pr.work.exchange(&pr.machine, p, &l, 512, 2)
		return l.cp
	}
	same(t, "as many ranks as heads", of(2), of(1)/2)
	same(t, "twice as many", of(4), of(2))
}

// TestQuantizedTraffic: QLoRA's matrices are gathered in 4 bits and their scales, everything else in 16.
func TestQuantizedTraffic(t *testing.T) {
	c := perftest.GPT(spec.Plan{DP: 8, ZeRO: 3, MicroBatch: 1, Precision: spec.BF16})
	c.Model.Adapter = spec.Adapter{Kind: spec.QLoRA, Rank: 16, Modules: spec.AdaptQKV}
	pr, p := counted(t, plain(), c)
	own := pr.owned(p)
	all, trained := pr.allBytes(p, &own), pr.trainedBytes(p, &own)
	same(t, "all", all.Dense, 2*(own.all.Dense-own.all.Linear)+4.127/8*own.all.Linear)
	same(t, "adapters", trained.Dense, 2*own.trained.Dense)
}

// TestBlockingLaunches: if the host waits for each kernel, its time adds to the device's.
func TestBlockingLaunches(t *testing.T) {
	k := base
	c := perftest.GPT(spec.Plan{DP: 1, MicroBatch: 1, Precision: spec.BF16})
	pr, p := counted(t, &k, c)
	l := pr.work.layerOf(&pr.machine, p)
	_, _, hidden := pr.layerSec(&l, p)
	pr.machine.stack.blocking = true
	_, _, launch := pr.layerSec(&l, p)
	same(t, "launch", launch, 2*l.launch)
	c.Framework = "Megatron-DeepSpeed@2021 launch=blocking"
	stated, _ := counted(t, &k, c)
	if s := &stated.machine.stack; !s.blocking || s.launch != launchLean {
		t.Errorf("launch=blocking: waited for: %t, kernels %v, want those written by hand", s.blocking, s.launch)
	}
	if hidden >= launch {
		t.Errorf("%g s of launches ahead of the device, want fewer than the %g s of those waited for", hidden, launch)
	}
}

// TestHeadsWithoutTensorCores: unfused attention of 16-bit heads that are no multiple of 8 wide is four times as slow on
// devices with Tensor Cores.
func TestHeadsWithoutTensorCores(t *testing.T) {
	for _, of := range []struct {
		arch      string
		precision spec.Precision
		want      float64
	}{{"Ampere", spec.BF16, 4}, {"Ampere", spec.TF32, 1}, {"CDNA3", spec.BF16, 1}} {
		at := func(width int) float64 {
			c := perftest.GPT(spec.Plan{DP: 1, MicroBatch: 1, Precision: of.precision})
			c.Framework, c.Accelerator.Arch = "Megatron-DeepSpeed@2021", of.arch
			c.Model.Hidden, c.Model.Heads = 1200, 1200/width
			k := base
			pr, p := counted(t, &k, c)
			return pr.work.layerOf(&pr.machine, p).attn
		}
		same(t, of.arch+" "+string(of.precision), at(150), of.want*at(120))
	}
	guessed := perftest.GPT(spec.Plan{DP: 1, MicroBatch: 1, Precision: spec.BF16})
	guessed.Framework, guessed.Model.Hidden, guessed.Model.Heads = "Megatron-DeepSpeed@2021", 1600, 0
	stated := guessed
	stated.Model.Heads = 12 // of 133, as guessed
	k := base
	pr, p := counted(t, &k, guessed)
	quick := pr.work.layerOf(&pr.machine, p).attn
	pr, p = counted(t, &k, stated)
	same(t, "guessed heads", pr.work.layerOf(&pr.machine, p).attn, 4*quick)
}

// TestAdapterDropout: dropout reads and writes the inputs of adapted matrices, and a mask of a byte, in both passes.
func TestAdapterDropout(t *testing.T) {
	c := perftest.GPT(spec.Plan{DP: 1, MicroBatch: 1, Precision: spec.BF16})
	c.Model.Adapter = spec.Adapter{Kind: spec.LoRA, Rank: 16, Modules: spec.AdaptQKV}
	pr, p := counted(t, plain(), c)
	without := pr.work.layerOf(&pr.machine, p).adapters
	c.Framework += " adapters=dropout"
	pr, p = counted(t, plain(), c)
	tokens := float64(p.MicroBatch) * pr.work.seq
	same(t, "adapters", pr.work.layerOf(&pr.machine, p).adapters, without+10*tokens*pr.work.hidden/pr.machine.mem)
}

// TestLastBackwards: with interleaved stages gradients are reduced behind all chunks but one of as many micro-batches as there
// are stages, and a micro-batch of the last one.
func TestLastBackwards(t *testing.T) {
	for _, of := range []struct {
		plan spec.Plan
		want float64
	}{
		{spec.Plan{PP: 1, AccumSteps: 8}, 1},
		{spec.Plan{PP: 8, AccumSteps: 32}, 1},
		{spec.Plan{PP: 8, AccumSteps: 32, VirtualStages: 4}, 6.25},
		{spec.Plan{PP: 2, AccumSteps: 2, VirtualStages: 20}, 1.95},
		{spec.Plan{PP: 8, AccumSteps: 4, VirtualStages: 2}, 2.5}, // no more micro-batches than there are
	} {
		same(t, of.plan.String(), lastBackwards(&of.plan), of.want)
	}
	c := perftest.GPT(spec.Plan{DP: 16, PP: 2, MicroBatch: 1, AccumSteps: 2, ZeRO: 1, Precision: spec.BF16})
	c.Framework = "Megatron Core"
	pr, p := counted(t, &base, c)
	even := pr.parts(p).DP
	p.VirtualStages = 2
	if interleaved := pr.parts(p).DP; !(interleaved < even) {
		t.Errorf("%g s of exposed traffic with interleaved stages, %g without", interleaved, even)
	}
}

// TestDualPipeHidesAllToAlls: of all stacks alike.
func TestDualPipeHidesAllToAlls(t *testing.T) {
	of := func(part string, s spec.Schedule) float64 {
		c := perftest.GPT(spec.Plan{DP: 8, EP: 8, PP: 2, AccumSteps: 8, MicroBatch: 1, Precision: spec.BF16, Schedule: s})
		c.Model.Experts, c.Model.ExpertsPerToken, c.Model.ExpertFFN = 16, 2, 1024
		c.Framework = "Megatron Core@0.12 ep=" + part
		pr, p := counted(t, plain(), c)
		l := layer{}
		pr.work.dispatch(&pr.machine, p, &l, 512, 2)
		return l.ep
	}
	for _, part := range []string{"none", "async", "backward"} {
		same(t, part, of(part, spec.ScheduleDualPipeV), of("none", spec.ScheduleZBV)/4)
	}
}
