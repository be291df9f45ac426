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
