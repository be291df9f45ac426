package memory

import (
	"math"
	"testing"

	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// TestGatheredUnits: ZeRO-3 gathers layers and the embedding or head matrix; the second unit is the larger of
// the two.
func TestGatheredUnits(t *testing.T) {
	e := Estimator{variant: &variant{}}
	e.k.Gathered = 1.5
	const grad = 4
	for _, c := range []struct {
		layer, head, gathered, working float64
	}{
		{layer: 10, head: 30, gathered: 1.5 * 2 * (10 + 30), working: (2 + grad) * 30},
		{layer: 30, head: 10, gathered: 1.5 * 2 * (30 + 30), working: (2 + grad) * 30},
		{layer: 30, head: 0, gathered: 1.5 * 2 * (30 + 30), working: (2 + grad) * 30},
	} {
		o := owned{dense: 100, layer: c.layer, head: c.head}
		var b Breakdown
		e.gathered(&b, &spec.Plan{DP: 4, PP: 1, ZeRO: 3}, o, grad, eightBit{})
		if b.Gathered != c.gathered || b.Working != c.working {
			t.Errorf("layer %g, head %g: gathered %g, working %g, want %g, %g", c.layer, c.head, b.Gathered, b.Working, c.gathered, c.working)
		}

		b = Breakdown{Parameters: 7}
		e.offload(&b, &spec.Plan{DP: 4, PP: 1, ZeRO: 3, Offload: spec.OffloadParams}, o, 25)
		want := 4 * (c.layer + max(c.layer, c.head))
		if b.Gathered != want || b.HostBytes != hostPerParameter*25+7 || b.Parameters != 0 {
			t.Errorf("layer %g, head %g, parameters on the host: %+v, want %g gathered", c.layer, c.head, b, want)
		}
		b = Breakdown{Gathered: 1e6}
		if e.offload(&b, &spec.Plan{DP: 4, PP: 1, ZeRO: 3, Offload: spec.OffloadParams}, o, 25); b.Gathered != 1e6 {
			t.Errorf("gathered %g, want what it was", b.Gathered)
		}

		b = Breakdown{}
		e.gathered(&b, &spec.Plan{DP: 4, PP: 2, ZeRO: 3}, o, grad, eightBit{})
		if b.Gathered != 1.5*(2+grad)*100 || b.Working != grad*c.layer {
			t.Errorf("in a pipeline: gathered %g, working %g", b.Gathered, b.Working)
		}
	}

	// x
	e.stack.bucket = 40
	for head, want := range map[float64]float64{5: 2*40 + 2*10, 15: 2*40 + 2*15} {
		var b Breakdown
		if e.copies(&b, &spec.Plan{DP: 4, PP: 1}, owned{trained: 100, layer: 40, head: head}, 2); b.Buffers != want {
			t.Errorf("head %g: copies of %g bytes, want %g", head, b.Buffers, want)
		}
	}
}

// TestExpertShards: experts are split over the larger of the expert and tensor parallel degrees.
func TestExpertShards(t *testing.T) {
	for p, want := range map[spec.Plan]float64{{EP: 1, TP: 4}: 4, {EP: 8, TP: 2}: 8, {EP: 2, TP: 2}: 2} {
		if got := expertShards(&p); got != want {
			t.Errorf("ep=%d tp=%d: %g, want %g", p.EP, p.TP, got, want)
		}
	}
}

// TestFP16Optimizers: DeepSpeed's fp16 states are masters and the optimizer's own, and gradients flattened in 4 bytes
// without ZeRO, 6 with ZeRO 1 and 2 and none with ZeRO 3. Other stacks flatten nothing.
func TestFP16Optimizers(t *testing.T) {
	for optimizer, own := range map[string]float64{"adam": 8, "adam-bf16": 4, "adam-8bit": 2, "sgd": 0} {
		for zero, flat := range []float64{4, 6, 6, 0} {
			p := spec.Plan{DP: 8, ZeRO: zero, Precision: spec.FP16}
			e := prepared(t, gpt(4, 1024, 8), "DeepSpeed optimizer="+optimizer)
			if _, _, got, _ := e.stack.perParameter(&p); got != 4+own+flat {
				t.Errorf("%s, zero=%d: %g bytes, want %g", optimizer, zero, got, 4+own+flat)
			}
		}
		e := prepared(t, gpt(4, 1024, 8), "Megatron Core optimizer="+optimizer)
		if _, _, got, _ := e.stack.perParameter(&spec.Plan{ZeRO: 1, Precision: spec.FP16}); got != 4+own {
			t.Errorf("Megatron Core, %s: %g bytes, want %g", optimizer, got, 4+own)
		}
	}
}

// TestAhead: a module for multi-token prediction is a layer and a projection more on the last stage; adapters are
// trained without it.
func TestAhead(t *testing.T) {
	// DeepSeek-V3.
	m := spec.Model{Name: "moe", Kind: spec.Decoder, Layers: 61, Hidden: 7168, FFN: 18432, Heads: 128, HeadDim: 128, Vocab: 129280, QRank: 1536, KVRank: 512,
		GatedMLP: true, Experts: 256, ExpertsPerToken: 8, ExpertFFN: 2048, SharedExperts: 1, DenseLayers: 3, MTPLayers: 1}
	own := func(m spec.Model, pp, stage int) (dense, expert float64) {
		e, err := For(spec.Config{Model: m, Framework: "Megatron Core", Accelerator: spec.Accelerator{Arch: "Hopper"}})
		if err != nil {
			t.Fatal(err)
		}
		p := spec.Plan{PP: pp}.Normal()
		o := e.own(&p, e.layersOn(&p, stage), stage)
		return o.dense / e.w.scale, o.expert / e.w.scale
	}
	without := m
	without.MTPLayers = 0
	dense, expert := own(m, 1, 0)
	dense0, expert0 := own(without, 1, 0)
	if want := 256 * m.ExpertParams(); math.Abs(expert-expert0-want) > 1e-6*want {
		t.Errorf("%g parameters of experts more, want those of a layer, %g", expert-expert0, want)
	}
	if h := 7168.0; dense-dense0 < 2*h*h+m.AttentionParams() || dense-dense0 > 1.5*(2*h*h+m.AttentionParams()+m.SharedExpertParams()) {
		t.Errorf("%g other parameters more, want a projection, an attention and a shared expert", dense-dense0)
	}
	if _, expert := own(m, 31, 30); expert < 2*256*m.ExpertParams()*0.999 { // 62 layers
		t.Errorf("the last of 31 stages has %g parameters of experts, want those of two layers", expert)
	}
	if _, expert := own(m.Adapted(spec.Adapter{Kind: spec.LoRA, Rank: 16, Modules: spec.AdaptQKV}), 1, 0); expert != expert0 {
		t.Errorf("%g parameters of experts with adapters, want %g", expert, expert0)
	}
}

// TestPeakAt: the loss is the peak over a large vocabulary, the backward pass of a layer over a small one.
func TestPeakAt(t *testing.T) {
	c := spec.Config{Model: spec.Model{Name: "m", Kind: spec.Decoder, Layers: 16, Hidden: 2048, FFN: 5632, Heads: 16, Vocab: 128256, GatedMLP: true}, SeqLen: 4096,
		Accelerator: spec.Accelerator{Arch: "Hopper"}}
	at := func(framework string, p spec.Plan) Breakdown {
		c.Framework = framework
		e, err := For(c)
		if err != nil {
			t.Fatal(err)
		}
		return e.Plan(p.Normal())
	}
	p := spec.Plan{MicroBatch: 4, Precision: spec.BF16}
	if b := at("FSDP@2024", p); b.At != AtLoss {
		t.Errorf("plain loss: the peak is at the %q", b.At)
	}
	c.Model.Vocab = 1024
	if b := at("Megatron-Bridge", p); b.At != AtLayer {
		t.Errorf("fused loss: the peak is at the %q", b.At)
	}
	p.PP = 4
	if b := at("Megatron-Bridge", p); b.At != AtLayer || b.Stage != 0 {
		t.Errorf("pipeline: the peak is on stage %d at the %q, want the backward pass of the first", b.Stage, b.At)
	}
	c.Model.Experts, c.Model.ExpertsPerToken, c.Model.ExpertFFN, c.Model.DenseLayers = 16, 2, 5632, 1
	if b := at("Megatron-Bridge", p); b.At != AtExperts {
		t.Errorf("experts: the peak is at the %q", b.At)
	}
}

// TestSharedWeights: weights that several layers share are kept once, as few as they are.
func TestSharedWeights(t *testing.T) {
	m := spec.Model{Name: "shared", Kind: spec.Encoder, Layers: 12, Hidden: 768, FFN: 3072, Heads: 12, Vocab: 30000, TiedEmbeddings: true}
	each := weightsOf(m)
	m.ParamCount, m.ActiveParamCount = 11683584, m.Params()
	if w := weightsOf(m); math.Abs(w.total()/m.ParamCount-1) > 1e-9 || each.total() < 9*m.ParamCount {
		t.Errorf("%.0f parameters are kept, want %.0f of %.0f", w.total(), m.ParamCount, each.total())
	}
	m.ActiveParamCount = 0
	if w := weightsOf(m); math.Abs(w.total()/each.total()-1) > 1e-9 {
		t.Errorf("a count that contradicts the layers: %.0f parameters are kept, want %.0f", w.total(), each.total())
	}
}

// TestHybridShards: a stack that shards inside a node has the states of a plan that states such groups, on the nodes of the
// shape; without groups it has those of all devices.
func TestHybridShards(t *testing.T) {
	m := gpt(24, 2048, 16)
	of := func(framework string, p spec.Plan, node int) float64 {
		c := spec.Config{Model: m, Framework: framework, Shape: spec.Packed(p.Devices(), node)}
		c.Accelerator.Arch = "Ampere"
		e, err := For(c)
		if err != nil {
			t.Fatal(err)
		}
		fixed, b := e.Fix(p), e.Plan(p)
		if at := fixed.At(0); at.Total() != b.Total() {
			t.Errorf("%s, %s: %g bytes, fixed %g", framework, p, b.Total(), at.Total())
		}
		return b.Optimizer
	}
	for _, node := range []int{4, 8} {
		plain := spec.Plan{DP: 32, MicroBatch: 1, ZeRO: 3, Precision: spec.BF16}
		groups := plain
		groups.Shard = node
		near(t, "in a node", of("FSDP@2024 zero=hsdp", plain, node), of("FSDP@2024", groups, node), 1e-12)
		near(t, "stated", of("FSDP@2024 zero=hsdp", groups, node), of("FSDP@2024", groups, node), 1e-12)
		plain.DP = node
		near(t, "one node", of("FSDP@2024 zero=hsdp", plain, node), of("FSDP@2024", plain, node), 1e-12)
	}
}
