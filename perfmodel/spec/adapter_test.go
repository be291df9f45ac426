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

// TestTrainedParams: the adapters of Llama 2 70B in MLPerf's fine-tuning, rank 16 on attention's four matrices, have 44.6
// million parameters: 80 layers of 16 x (8192 + 10240) and 16 x 2 x 8192.
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
