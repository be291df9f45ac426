package memory

import (
	"testing"

	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// nemotronH is Nemotron-H-8B: 24 mixers, 4 layers of attention and 24 of an MLP alone.
func nemotronH() spec.Model {
	return spec.Model{Name: "Nemotron-H-8B", Kind: spec.Decoder, Layers: 52, Hidden: 4096, FFN: 21504, Heads: 32, KVHeads: 8, HeadDim: 128, Vocab: 131072, SeqLen: 8192,
		SSMLayers: 24, MLPLayers: 24, SSMHeads: 128, SSMHeadDim: 64, SSMState: 128, SSMGroups: 8}
}

// nemotron3 is Nemotron-3-Super: 40 mixers, 8 layers of attention and 40 of experts alone.
func nemotron3() spec.Model {
	return spec.Model{Name: "Nemotron-3-Super", Kind: spec.Decoder, Layers: 88, Hidden: 4096, Heads: 32, KVHeads: 2, HeadDim: 128, Vocab: 131072, SeqLen: 8192,
		SSMLayers: 40, MLPLayers: 40, SSMHeads: 128, SSMHeadDim: 64, SSMState: 128, SSMGroups: 8,
		Experts: 512, ExpertsPerToken: 22, ExpertFFN: 2688, SharedExperts: 2, ExpertHidden: 1024}
}

// maverick is the language model of Llama 4 Maverick: every second layer has experts.
func maverick() spec.Model {
	return spec.Model{Name: "Llama4-Maverick", Kind: spec.Decoder, Layers: 48, Hidden: 5120, FFN: 16384, Heads: 40, KVHeads: 8, HeadDim: 128, Vocab: 202048, SeqLen: 8192,
		GatedMLP: true, Experts: 128, ExpertsPerToken: 1, ExpertFFN: 8192, SharedExperts: 1, DenseLayers: 24, MoEEvery: 2}
}

func mamba2() spec.Model {
	return spec.Model{Name: "Mamba2-2.7B", Kind: spec.Decoder, Layers: 64, Hidden: 2560, Vocab: 50288, SeqLen: 2048, TiedEmbeddings: true,
		SSMLayers: 64, SSMHeads: 80, SSMHeadDim: 64, SSMState: 128, SSMGroups: 1}
}

// qwenVL is Qwen2.5-VL-7B.
func qwenVL() spec.Model {
	return spec.Model{Name: "Qwen2.5-VL-7B", Kind: spec.Decoder, Layers: 28, Hidden: 3584, FFN: 18944, Heads: 28, KVHeads: 4, Vocab: 152064, SeqLen: 4096, GatedMLP: true,
		Tower: spec.Tower{Layers: 32, Hidden: 1280, FFN: 3420, Heads: 16, GatedMLP: true, Tokens: 1024, Projector: 46069760}}
}

// TestAlternatingExperts: where layers with and without experts alternate, each pipeline stage has its share of both.
func TestAlternatingExperts(t *testing.T) {
	for _, m := range []spec.Model{maverick(), nemotron3()} {
		e := prepared(t, m, "Megatron Core@0.12")
		for _, p := range []spec.Plan{{DP: 8, PP: 4, EP: 8}, {DP: 8, PP: 4, EP: 8, VirtualStages: 2, AccumSteps: 8}} {
			p = p.Normal()
			for stage := range p.PP {
				layers := e.layersOn(&p, stage)
				near(t, "layers with experts", layers.moe, float64(m.MoELayers())/4, 1e-12)
				near(t, "expert weights", e.own(&p, layers, stage).expert, float64(m.MoELayers()*m.Experts)*m.ExpertParams()/4/8, 1e-12)
			}
		}
	}
}

// TestHybridActivations: each layer keeps what it is made of. By hand, per token: the norm's and the projection's
// input, then queries, keys, values and output; or the input projection's output, the state's output and that
// projection's input; or the MLP's inner activations; or copies of the projected width.
func TestHybridActivations(t *testing.T) {
	const h, q, kv, f, ssmIn, inner = 4096., 4096, 1024, 21504, 2*8192 + 2*8*128 + 128, 8192
	attention, mixer, mlp := 4*h+2*(2*q+2*kv)+4*32, 4*h+2*(ssmIn+2*inner), 4*h+2*2*f
	experts := 4*h + 22*2*(1024+2*2688) + 2*2*2*2688 + routerBytes*512
	p := spec.Plan{MicroBatch: 1, Precision: spec.BF16}
	for _, c := range []struct {
		model spec.Model
		layer float64 // bytes per token
	}{
		{nemotronH(), 4*attention + 24*mixer + 24*mlp},
		{nemotron3(), 8*attention - 8*2*2*(1024-256) + 40*mixer + 40*experts},
		{mamba2(), 64 * (4*2560 + 2*(2*5120+2*128+80+2*5120))},
	} {
		e := prepared(t, c.model, "Megatron Core@0.12")
		near(t, c.model.Name, e.Plan(p).Activations, float64(c.model.SeqLen)*(c.layer+2*float64(c.model.Hidden)), 1e-12)
	}
	e := prepared(t, nemotronH(), "Megatron Core@0.12")
	p.Recompute = spec.RecomputeFull
	near(t, "inputs of all layers", e.Plan(p).Activations, 8192*53*2*h, 1e-12)
	input := 2. * h
	near(t, "backward of an MLP, the largest layer", e.Stages(spec.Plan{PP: 2, MicroBatch: 1, Precision: spec.BF16, Recompute: spec.RecomputeFull})[0].Working, 8192*(mlp+input+2*2*f), 1e-12)
}

// TestGatheredHybrid: ZeRO-3 gathers the largest layer, which is an MLP, and the head.
func TestGatheredHybrid(t *testing.T) {
	e := prepared(t, nemotronH(), "FSDP")
	o := e.own(&spec.Plan{DP: 8, TP: 1, PP: 1, EP: 1, ZeRO: 3}, span{dense: 52}, 0)
	near(t, "layer", o.layer, 2*4096*21504+4*4096, 1e-12)
}

// TestTowerIsCounted: the weights of a tower are on the first stage, whether the published count includes them or the
// shape is counted.
func TestTowerIsCounted(t *testing.T) {
	m := qwenVL()
	published := m
	published.ParamCount = 8292166656
	for _, p := range []spec.Plan{{DP: 8, MicroBatch: 1, ZeRO: 1, Precision: spec.BF16}, {DP: 2, TP: 2, PP: 2, MicroBatch: 1, Precision: spec.BF16}} {
		a, b := prepared(t, m, "Megatron Core@0.12"), prepared(t, published, "Megatron Core@0.12")
		near(t, p.String(), a.Bytes(p), b.Bytes(p), 1e-3)
		language := m
		language.Tower = spec.Tower{}
		without := prepared(t, language, "Megatron Core@0.12")
		p = p.Normal()
		for stage := range p.PP {
			with, _ := a.onStage(&p, stage)
			less, _ := without.onStage(&p, stage)
			want := 0.0
			if stage == 0 {
				want = m.Tower.Params() / float64(p.TP)
			}
			if d := with - less; d < want-1 || d > want+1 {
				t.Errorf("%s, stage %d: the tower has %g parameters, want %g", p, stage, d, want)
			}
		}
	}
}

func (e *Estimator) onStage(p *spec.Plan, stage int) (dense, expert float64) {
	o := e.own(p, e.layersOn(p, stage), stage)
	return o.dense, o.expert
}
