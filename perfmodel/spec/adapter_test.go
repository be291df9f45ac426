package spec

import (
	"encoding/json"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestParseAdapter(t *testing.T) {
	for text, want := range map[string]Adapter{
		"": {}, "none": {}, "lora:16": {LoRA, 16, AdaptQKV | AdaptO}, "qlora:64:qkv+o+mlp": {QLoRA, 64, AdaptQKV | AdaptO | AdaptMLP}, "dora:8:mlp": {DoRA, 8, AdaptMLP},
		"lora:16:o+qkv": {LoRA, 16, AdaptQKV | AdaptO},
	} {
		if a, err := ParseAdapter(text); err != nil || a != want {
			t.Errorf("%q: %+v, %v; want %+v", text, a, err, want)
		}
	}
	for text, want := range map[string]string{
		"lora": `the rank "" is not a number above 0`, "lora:0": `the rank "0"`, "lora:-4": `the rank "-4"`, "lora:x:o": `the rank "x"`,
		"lora:16:": `module "" is not one of qkv, o, mlp`, "lora:16:o+k": `module "k"`, "ia3:4": "want none, or lora, qlora or dora",
	} {
		if _, err := ParseAdapter(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
}

// TestCheckAdapter: an adapter has a rank of at least 1 and at most the width of a known network.
func TestCheckAdapter(t *testing.T) {
	known := Model{Name: "m", Kind: Decoder, Layers: 2, Hidden: 64, Heads: 4, FFN: 256, Vocab: 100}
	for _, c := range []struct {
		model Model
		rank  int
		want  string
	}{
		{known, 1, ""}, {known, 64, ""},
		{known, 65, "has a rank of 65, more than the width 64 of the network, m"},
		{known, 0, "needs a rank above 0"},
		{Model{Name: "n", ParamCount: 1e9}, 8, "needs a model with known layers and widths, which n is not"},
	} {
		m := c.model
		m.Adapter = Adapter{Kind: LoRA, Rank: c.rank, Modules: AdaptO}
		err := m.CheckAdapter()
		if (err == nil) != (c.want == "") || err != nil && err.Error() != c.want || (m.Validate() == nil) != (c.want == "") {
			t.Errorf("rank %d of %s: %v, %v, want %q", c.rank, m.Name, err, m.Validate(), c.want)
		}
	}
}

func TestAdapterText(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a := Adapter{rapid.SampledFrom([]AdapterKind{LoRA, QLoRA, DoRA}).Draw(t, "kind"), rapid.IntRange(1, 512).Draw(t, "rank"), AdapterModules(rapid.IntRange(1, 7).Draw(t, "modules"))}
		if got, err := ParseAdapter(a.String()); err != nil || got != a {
			t.Fatalf("%s: read as %s, %v", a, got, err)
		}
		m := Model{Name: "m", Adapter: a}
		b, err := json.Marshal(m)
		var got Model
		if err == nil {
			err = json.Unmarshal(b, &got)
		}
		if err != nil || got != m {
			t.Fatalf("%s: %s read as %+v, %v", a, b, got, err)
		}
	})
}

// TestTrainedParams: the adapters of Llama 2 70B in MLPerf's fine-tuning, rank 16 on attention's four matrices, have
// 44.6 million parameters: 80 layers of 16 x (8192 + 10240) and 16 x 2 x 8192.
func TestTrainedParams(t *testing.T) {
	m := Model{Name: "Llama2-70B", Kind: Decoder, Layers: 80, Hidden: 8192, FFN: 28672, GatedMLP: true, Heads: 64, KVHeads: 8, Vocab: 32000}
	if got := m.TrainedParams(); got != m.Params() {
		t.Errorf("%g without an adapter, want all", got)
	}
	for text, want := range map[string]float64{
		"lora:16":     80 * 16 * (8192 + 10240 + 2*8192),
		"dora:16":     80 * (16*(8192+10240+2*8192) + 10240 + 8192),
		"lora:16:mlp": 80 * 16 * (8192 + 2*28672 + 28672 + 8192),
	} {
		var err error
		if m.Adapter, err = ParseAdapter(text); err != nil {
			t.Fatal(err)
		}
		if got := m.TrainedParams(); got != want {
			t.Errorf("%s: %g, want %g", text, got, want)
		}
	}
	m.Adapter, _ = ParseAdapter("lora:16")
	if got := m.TrainFLOPs(4096) / (Model{Name: "x", Kind: Decoder, Layers: 80, Hidden: 8192, FFN: 28672, GatedMLP: true, Heads: 64, KVHeads: 8, Vocab: 32000}).TrainFLOPs(4096); got < 0.65 || got > 0.72 {
		t.Errorf("%g of the work of full training, want about two thirds", got)
	}
}

// TestAdapterParams: only layers with attention have adapters of attention, and only those with an MLP of it; latent
// attention has four matrices before its core, and experts have the width of their input.
func TestAdapterParams(t *testing.T) {
	hybrid := Model{Name: "h", Kind: Decoder, Layers: 88, Hidden: 4096, Heads: 32, KVHeads: 2, HeadDim: 128, SSMLayers: 40, MLPLayers: 40, SSMHeads: 128, SSMHeadDim: 64, SSMState: 128,
		Experts: 512, ExpertsPerToken: 22, ExpertFFN: 2688, SharedExperts: 2, ExpertHidden: 1024}
	latent := Model{Name: "l", Kind: Decoder, Layers: 61, Hidden: 7168, FFN: 18432, Heads: 128, HeadDim: 128, GatedMLP: true, QRank: 1536, KVRank: 512,
		Experts: 256, ExpertsPerToken: 8, ExpertFFN: 2048, SharedExperts: 1, DenseLayers: 3}
	plain := latent
	plain.QRank = 0
	for _, c := range []struct {
		model          Model
		adapter        string
		dense, experts float64
	}{
		{hybrid, "lora:16", 8 * 16 * (4096 + 36*128 + 4096 + 4096), 0},
		{hybrid, "lora:16:mlp", 40 * 2 * 16 * 2 * (4096 + 2688), 40 * 512 * 16 * 2 * (1024 + 2688)},
		{latent, "lora:16:qkv", 61 * 16 * (7168 + 1536 + 1536 + 128*192 + 7168 + 576 + 512 + 2*128*128), 0},
		{plain, "lora:16:qkv", 61 * 16 * (7168 + 128*192 + 7168 + 576 + 512 + 2*128*128), 0},
		{latent, "lora:16:mlp", 3*16*(7168+2*18432+18432+7168) + 58*16*(7168+2*2048+2048+7168), 58 * 256 * 16 * (7168 + 2*2048 + 2048 + 7168)},
	} {
		var err error
		if c.model.Adapter, err = ParseAdapter(c.adapter); err != nil {
			t.Fatal(err)
		}
		if dense, experts := c.model.AdapterParams(); dense != c.dense || experts != c.experts {
			t.Errorf("%s %s: %g and %g of experts, want %g and %g", c.model.Name, c.adapter, dense, experts, c.dense, c.experts)
		}
	}
}
