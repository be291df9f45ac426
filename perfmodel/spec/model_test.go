package spec

import (
	"maps"
	"math"
	"reflect"
	"strings"
	"testing"
)

var (
	t5xl = Model{Name: "t5-3b", Kind: EncoderDecoder, Layers: 48, Hidden: 1024, FFN: 16384, Heads: 32, HeadDim: 128,
		Vocab: 32128, SeqLen: 512, TiedEmbeddings: true}
	mixtral = Model{Name: "mixtral-8x7b", Kind: Decoder, Layers: 32, Hidden: 4096, Heads: 32, KVHeads: 8, Vocab: 32000, SeqLen: 4096,
		GatedMLP: true, Experts: 8, ExpertsPerToken: 2, ExpertFFN: 14336}
)

// Published counts: Touvron et al. 2023 (Llama 2, table 1), Dubey et al. 2024
// (Llama 3), Radford et al. 2019 (GPT-2), Raffel et al. 2020 (T5, "3B" is 2.85
// billion in the released checkpoint),
// Jiang et al. 2024 (Mixtral 8x7B).
func TestParams(t *testing.T) {
	for _, tc := range []struct {
		m    Model
		want float64
	}{
		{Model{Name: "llama2-7b", Layers: 32, Hidden: 4096, FFN: 11008, Heads: 32, Vocab: 32000, GatedMLP: true}, 6.74e9},
		{Model{Name: "llama3-70b", Layers: 80, Hidden: 8192, FFN: 28672, Heads: 64, KVHeads: 8, Vocab: 128256, GatedMLP: true}, 70.55e9},
		{Model{Name: "gpt2-xl", Layers: 48, Hidden: 1600, FFN: 6400, Heads: 25, Vocab: 50257, TiedEmbeddings: true}, 1.557e9},
		{t5xl, 2.85e9},
		{mixtral, 46.7e9},
	} {
		if got := tc.m.Params(); math.Abs(got/tc.want-1) > 0.005 {
			t.Errorf("%s: %.4g parameters, published %.4g", tc.m.Name, got, tc.want)
		}
	}
}

func TestParamsByPart(t *testing.T) {
	if got := mixtral.ActiveParams(); math.Abs(got/12.9e9-1) > 0.005 { // Jiang et al. 2024: 13B active
		t.Errorf("mixtral: %.4g active parameters, want 12.9e9", got)
	}
	vit := Model{Name: "vit-l", Kind: Vision, Layers: 24, Hidden: 1024, FFN: 4096, Heads: 16}
	if got, want := vit.Params(), 24*12*1024*1024.0; got != want { // no vocabulary; 4h² + 8h² a layer
		t.Errorf("vit: %g parameters, want %g", got, want)
	}
	if t5xl.ActiveParams() != t5xl.Params() {
		t.Error("a dense model is not all active")
	}
	dense := mixtral
	dense.FFN, dense.DenseLayers, dense.SharedExperts = 8192, 2, 1
	want := 32*dense.AttentionParams() + dense.EmbeddingParams() + 2*dense.DenseMLPParams() + 30*(3*dense.ExpertParams()+4096*8)
	if got := dense.ActiveParams(); math.Abs(got/want-1) > 1e-12 {
		t.Errorf("with two dense layers and a shared expert %g active parameters, want %g", got, want)
	}
}

// TestTrainFLOPs counts the scores of each attention: 4·h·s² FLOPs forward over all pairs, three times that
// with backward.
func TestTrainFLOPs(t *testing.T) {
	m := Model{Name: "m", Layers: 10, Hidden: 64, FFN: 256, Heads: 4, Vocab: 100}
	const s = 128.0
	full := 12 * 64 * s * s
	for kind, attentions := range map[Kind]float64{
		Encoder: 10, Vision: 10, Decoder: 10 * 0.5,
		EncoderDecoder: 5 + 5*0.5 + 5, // encoder, causal decoder, across
	} {
		m.Kind = kind
		if got, want := m.TrainFLOPs(s), 6*m.Params()*s+attentions*full; math.Abs(got/want-1) > 1e-12 {
			t.Errorf("%s: %g FLOPs, want %g", kind, got, want)
		}
	}
	for _, tc := range []struct {
		m    Model
		want float64
	}{
		{Model{Kind: Opaque, FLOPsPerSample: 4e9, ParamCount: 25e6, SeqLen: 9}, 12e9},
		{Model{Kind: Opaque, ParamCount: 25e6, SeqLen: 10}, 6 * 25e6 * 10},
		{Model{Kind: Opaque, ParamCount: 25e6}, 6 * 25e6},
		{Model{}, 0},
	} {
		if got := tc.m.TrainFLOPs(0); got != tc.want {
			t.Errorf("%+v: %g FLOPs, want %g", tc.m, got, tc.want)
		}
	}
}

func TestModelValidate(t *testing.T) {
	if err := mixtral.Validate(); err != nil {
		t.Error(err)
	}
	for want, change := range map[string]func(*Model){
		"no name":                func(m *Model) { m.Name = "" },
		"layers=-1":              func(m *Model) { m.Layers = -1 },
		"expert_ffn=-1":          func(m *Model) { m.ExpertFFN = -1 },
		"dense_layers=-2":        func(m *Model) { m.DenseLayers = -2 },
		"count of NaN":           func(m *Model) { m.ParamCount = math.NaN() },
		"count of -1":            func(m *Model) { m.FLOPsPerSample = -1 },
		"heads=0":                func(m *Model) { m.Heads = 0 },
		"neither layers":         func(m *Model) { m.Layers = 0 },
		"experts_per_token=9 is": func(m *Model) { m.ExpertsPerToken = 9 },
		"imbalance=1.5 needs routed experts, and it has none: leave imbalance out": func(m *Model) { m.Experts, m.FFN, m.Imbalance = 0, 8, 1.5 },
		"node_limit=4 needs routed experts, and it has none: leave node_limit out": func(m *Model) { m.Experts, m.FFN, m.NodeLimit = 0, 8, 4 },
		"imbalance=0.5 is not in 1..4":                                             func(m *Model) { m.Imbalance = 0.5 },
		"imbalance=4.5 is not in 1..4":                                             func(m *Model) { m.Imbalance = 4.5 },
		"imbalance=NaN is not in 1..4":                                             func(m *Model) { m.Imbalance = math.NaN() },
		"experts_per_token=0 is":                                                   func(m *Model) { m.ExpertsPerToken = 0 },
	} {
		m := mixtral
		change(&m)
		if err := m.Validate(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q", err, want)
		}
	}
}

// TestLatentAttention: the parameters of DeepSeek-V2 and V3 are those of their reports (arXiv 2405.04434 and
// 2412.19437, abstracts), without the second's multi-token prediction.
func TestLatentAttention(t *testing.T) {
	v2 := Model{Kind: Decoder, Layers: 60, Hidden: 5120, FFN: 12288, Heads: 128, HeadDim: 128, Vocab: 102400, QRank: 1536, KVRank: 512, GatedMLP: true,
		Experts: 160, ExpertsPerToken: 6, ExpertFFN: 1536, SharedExperts: 2, DenseLayers: 1}
	v3 := Model{Kind: Decoder, Layers: 61, Hidden: 7168, FFN: 18432, Heads: 128, HeadDim: 128, Vocab: 129280, QRank: 1536, KVRank: 512, GatedMLP: true,
		Experts: 256, ExpertsPerToken: 8, ExpertFFN: 2048, SharedExperts: 1, DenseLayers: 3}
	for _, c := range []struct {
		m           Model
		all, active float64
	}{{v2, 236e9, 21e9}, {v3, 671e9, 37e9}} {
		if got := c.m.Params(); math.Abs(got/c.all-1) > 0.005 {
			t.Errorf("%d layers: %.1fe9 parameters, want %.0fe9", c.m.Layers, got/1e9, c.all/1e9)
		}
		if got := c.m.ActiveParams(); math.Abs(got/c.active-1) > 0.03 {
			t.Errorf("%d layers: %.1fe9 parameters per token, want %.0fe9", c.m.Layers, got/1e9, c.active/1e9)
		}
	}
	uncompressed := v2
	uncompressed.QRank = 0 // queries are one matrix of 5120 x 128 heads of 192
	if got, want := uncompressed.AttentionParams()-v2.AttentionParams(), 5120.*128*192-1536*(5120+128*192); got != want {
		t.Errorf("without compressed queries %g parameters more, want %g", got, want)
	}
	plain, latent := v2, v2
	plain.KVRank, plain.QRank = 0, 0
	plain.ActiveParamCount, latent.ActiveParamCount = 1, 1
	const seq = 1 << 20
	if r := (latent.TrainFLOPs(seq) - 6*seq) / (plain.TrainFLOPs(seq) - 6*seq); math.Abs(r-1.25) > 1e-9 {
		t.Errorf("scores cost %g times those of heads of 128, want (192 + 128)/256", r)
	}
}

// TestCounts: Counts has every whole number of a model and its tower, by its JSON name.
func TestCounts(t *testing.T) {
	var m Model
	want := map[string]int{}
	set := func(v reflect.Value, prefix string) {
		for i := range v.NumField() {
			if f := v.Field(i); f.Kind() == reflect.Int {
				name, _, _ := strings.Cut(v.Type().Field(i).Tag.Get("json"), ",")
				f.SetInt(int64(len(want) + 1))
				want[prefix+name] = int(f.Int())
			}
		}
	}
	set(reflect.ValueOf(&m).Elem(), "")
	set(reflect.ValueOf(&m.Tower).Elem(), "tower.")
	if got := maps.Collect(m.Counts()); !maps.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}
