package spec

import (
	"math"
	"strings"
	"testing"
)

// TestHybridParams: parameters counted from shapes are the published ones, within 2 %, and those per token within 3 %:
// the queries of Qwen3-Next have a gate, which is not counted.
func TestHybridParams(t *testing.T) {
	nemotron := Model{Name: "Nemotron-H-8B", Kind: Decoder, Layers: 52, Hidden: 4096, FFN: 21504, Heads: 32, KVHeads: 8, HeadDim: 128, Vocab: 131072,
		SSMLayers: 24, MLPLayers: 24, SSMHeads: 128, SSMHeadDim: 64, SSMState: 128, SSMGroups: 8}
	super := Model{Name: "Nemotron-3-Super", Kind: Decoder, Layers: 88, Hidden: 4096, Heads: 32, KVHeads: 2, HeadDim: 128, Vocab: 131072,
		SSMLayers: 40, MLPLayers: 40, SSMHeads: 128, SSMHeadDim: 64, SSMState: 128, SSMGroups: 8,
		Experts: 512, ExpertsPerToken: 22, ExpertFFN: 2688, SharedExperts: 2, ExpertHidden: 1024}
	mamba := Model{Name: "Mamba2-2.7B", Kind: Decoder, Layers: 64, Hidden: 2560, Vocab: 50288, TiedEmbeddings: true,
		SSMLayers: 64, SSMHeads: 80, SSMHeadDim: 64, SSMState: 128, SSMGroups: 1}
	next := Model{Name: "Qwen3-Next-80B-A3B", Kind: Decoder, Layers: 48, Hidden: 2048, Heads: 16, KVHeads: 2, HeadDim: 256, Vocab: 151936, GatedMLP: true,
		SSMLayers: 36, SSMHeads: 32, SSMHeadDim: 128, SSMState: 128, SSMGroups: 16, Experts: 512, ExpertsPerToken: 10, ExpertFFN: 512, SharedExperts: 1}
	vl := Model{Name: "Qwen2.5-VL-7B", Kind: Decoder, Layers: 28, Hidden: 3584, FFN: 18944, Heads: 28, KVHeads: 4, Vocab: 152064, GatedMLP: true,
		Tower: Tower{Layers: 32, Hidden: 1280, FFN: 3420, Heads: 16, GatedMLP: true, Tokens: 1024, Projector: 46e6}}
	for _, tc := range []struct {
		m             Model
		total, active float64
		attention     int
		moe           int
	}{
		{nemotron, 8.1e9, 8.1e9, 4, 0},
		{super, 120.67e9, 12.77e9, 8, 40},
		{mamba, 2.7026e9, 2.7026e9, 0, 0},
		{next, 79.67e9, 3.87e9, 12, 48},
		{vl, 8.2922e9, 8.2922e9, 28, 0},
	} {
		if err := tc.m.Validate(); err != nil {
			t.Error(err)
		}
		if p, a := tc.m.Params(), tc.m.ActiveParams(); math.Abs(p/tc.total-1) > 0.02 || math.Abs(a/tc.active-1) > 0.03 {
			t.Errorf("%s: %.4g parameters, %.4g active, published %.4g and %.4g", tc.m.Name, p, a, tc.total, tc.active)
		}
		if n, moe := tc.m.AttentionLayers(), tc.m.MoELayers(); n != tc.attention || moe != tc.moe {
			t.Errorf("%s: %d layers with attention and %d with experts, want %d and %d", tc.m.Name, n, moe, tc.attention, tc.moe)
		}
	}
}

// TestHybridFLOPs: state-space mixers are linear in the sequence, and a tower counts for its own tokens.
func TestHybridFLOPs(t *testing.T) {
	m := Model{Name: "m", Kind: Decoder, Layers: 64, Hidden: 2560, SSMLayers: 64, SSMHeads: 80, SSMHeadDim: 64, SSMState: 128, SSMGroups: 1, Vocab: 50288}
	if a, b := m.TrainFLOPs(1024), m.TrainFLOPs(4096); math.Abs(b/a-4) > 1e-9 {
		t.Errorf("4 times the tokens have %.6f times the FLOPs", b/a)
	}
	plain := Model{Name: "v", Kind: Decoder, Layers: 4, Hidden: 64, FFN: 256, Heads: 4, Vocab: 100}
	with := plain
	with.Tower = Tower{Layers: 2, Hidden: 32, FFN: 128, Heads: 2, Tokens: 50, Projector: 1000}
	// 6 x (2 x (4·32² + 2·32·128) + 1000) x 50 + 12 x 2 x 32 x 50²
	if got, want := with.TrainFLOPs(16)-plain.TrainFLOPs(16), 6.0*(2*(4*32*32+2*32*128)+1000)*50+12*2*32*2500; math.Abs(got/want-1) > 1e-9 {
		t.Errorf("the tower adds %g FLOPs, want %g", got, want)
	}
}

// TestLeadingDense: layers with a dense MLP come first only where a model does not alternate or stack single blocks.
func TestLeadingDense(t *testing.T) {
	moe := Model{Name: "m", Kind: Decoder, Layers: 8, Hidden: 64, FFN: 256, Heads: 4, Experts: 4, ExpertsPerToken: 1, ExpertFFN: 64, DenseLayers: 4}
	for _, c := range []struct {
		change func(*Model)
		want   int
	}{
		{func(m *Model) {}, 4},
		{func(m *Model) { m.MoEEvery = 1 }, 4},
		{func(m *Model) { m.MoEEvery = 2 }, 0},
		{func(m *Model) { m.MLPLayers = 6 }, 0},
		{func(m *Model) { m.Experts = 0 }, 0},
		{func(m *Model) { m.DenseLayers = 8 }, 0},
	} {
		m := moe
		if c.change(&m); m.LeadingDense() != c.want {
			t.Errorf("%+v: %d, want %d", m, m.LeadingDense(), c.want)
		}
	}
}

// TestScoreShare: a window limits the scores of the layers that have it.
func TestScoreShare(t *testing.T) {
	m := Model{Kind: Decoder, Layers: 4, Heads: 1, Window: 1024, WindowLayers: 2}
	for _, tc := range []struct {
		kind Kind
		seq  int
		want float64
	}{
		{Decoder, 1024, 0.5},
		{Decoder, 4096, (0.5 + 0.25 - 0.25*0.25/2) / 2},
		{Encoder, 512, 1},
		{Encoder, 4096, (1 + 0.25) / 2},
	} {
		m.Kind = tc.kind
		if got := m.ScoreShare(tc.seq); math.Abs(got-tc.want) > 1e-12 {
			t.Errorf("%s of %d tokens: %g, want %g", tc.kind, tc.seq, got, tc.want)
		}
	}
}

func TestValidateHybrid(t *testing.T) {
	whole := Model{Name: "m", Kind: Decoder, Layers: 4, Hidden: 64, FFN: 256, Heads: 4, SSMLayers: 2, MLPLayers: 1, SSMHeads: 2, SSMHeadDim: 64, SSMState: 16}
	if err := whole.Validate(); err != nil {
		t.Fatal(err)
	}
	for want, change := range map[string]func(*Model){
		"ssm_layers=2 and mlp_layers=3 exceed layers=4": func(m *Model) { m.MLPLayers = 3 },
		"ssm_heads=0":                                         func(m *Model) { m.SSMHeads = 0 },
		"heads=0, but 1 layers have attention":                func(m *Model) { m.Heads = 0 },
		"window_layers=2 exceeds 1 layers with attention":     func(m *Model) { m.Window, m.WindowLayers = 8, 2 },
		"window_layers=1 without a window":                    func(m *Model) { m.WindowLayers = 1 },
		"moe_every=-2 is negative":                            func(m *Model) { m.MoEEvery = -2 },
		"moe_every=2 of 4 layers needs dense_layers=2, not 0": func(m *Model) { m.Experts, m.ExpertsPerToken, m.MoEEvery = 8, 2, 2 },
		"moe_every=3 of 4 layers needs dense_layers=3, not 2": func(m *Model) { m.Experts, m.ExpertsPerToken, m.MoEEvery, m.DenseLayers = 8, 2, 3, 2 },
		"tower.layers=-1 is negative":                         func(m *Model) { m.Tower.Layers = -1 },
	} {
		m := whole
		change(&m)
		if err := m.Validate(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}
