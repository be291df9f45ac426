package recipe

import (
	"errors"
	"strconv"
	"testing"

	"pgregory.net/rapid"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/perfmodel/spec/spectest"
	"github.com/pacer-ml/pacer/planner"
	"github.com/pacer-ml/pacer/planner/launch"
)

// What package launch writes is read back as the same plan and network, and every key is known.
func TestRoundTrip(t *testing.T) {
	spectest.Checks(t, 500)
	read := map[string]int{}
	rapid.Check(t, func(t *rapid.T) {
		c := drawConfig(t)
		for _, f := range launch.Frameworks() {
			s, err := f.Emit(c)
			if errors.Is(err, launch.ErrCannotExpress) {
				continue
			} else if err != nil {
				t.Fatal(err)
			}
			r, err := Read(f.File, []byte(s.Text), Options{})
			if err != nil {
				t.Fatalf("%s: %v\n%s", f.Name, err, s.Text)
			}
			if r.Format != f.Name || len(r.Unknown) > 0 || len(r.Problems) > 0 {
				t.Fatalf("read as %s, unknown %v, problems %v\n%s", r.Format, r.Unknown, r.Problems, s.Text)
			}
			r.SetLayers(c.Model.Layers)
			if f.Name == "accelerate" { // the program has them, not the file
				for field, n := range map[Field]int{MicroBatch: c.Plan.MicroBatch, GradAccum: c.Plan.Normal().AccumSteps} {
					if err := r.Set(string(field), strconv.Itoa(n)); err != nil {
						t.Fatal(err)
					}
				}
			}
			devices := 0
			if f.Name == "deepspeed" || f.Name == "torchtitan" && c.Plan.ZeRO == 0 {
				devices = c.Shape.Total()
			}
			got, _, err := r.Plan(devices)
			if err != nil {
				t.Fatalf("%s: %v\n%s", f.Name, err, s.Text)
			}
			want := c.Plan.Normal()
			if want.Precision == spec.TF32 { // the environment decides, not the file
				want.Precision = spec.FP32
			}
			if want.Precision == "" {
				want.Precision = got.Precision
			}
			if got.Precision == "" && want.Precision == spec.FP32 { // no format is 32 bits
				got.Precision = spec.FP32
			}
			if got != want {
				t.Fatalf("%s: %s came back as %s\n%s", f.Name, want, got, s.Text)
			}
			if m, _, ok := r.Network(0); ok && !sameNetwork(m, c.Model) {
				t.Fatalf("%s: %+v came back as %+v\n%s", f.Name, c.Model, m, s.Text)
			}
			read[f.Name]++
		}
	})
	t.Logf("files read: %v", read)
	for _, f := range launch.Frameworks() {
		if read[f.Name] == 0 && !testing.Short() {
			t.Errorf("%s: no file read", f.Name)
		}
	}
}

// sameNetwork compares the widths of networks. A tokenizer adds a token to the vocabulary.
func sameNetwork(a, b spec.Model) bool {
	return a.Layers == b.Layers && a.Hidden == b.Hidden && a.Heads == b.Heads && a.KV() == b.KV() && a.Head() == b.Head() && a.FFN == b.FFN &&
		(a.Vocab == b.Vocab || a.Vocab == b.Vocab-1 || a.Vocab == 0) && a.GatedMLP == b.GatedMLP && a.TiedEmbeddings == b.TiedEmbeddings &&
		a.Experts == b.Experts && a.ExpertsPerToken == b.ExpertsPerToken && a.ExpertFFN == b.ExpertFFN && a.SharedExperts == b.SharedExperts && a.DenseLayers == b.DenseLayers && a.MoEEvery == b.MoEEvery && a.Kind == b.Kind
}

// networks are dense and sparse ones, with every kind of attention that package launch writes.
var networks = []spec.Model{
	{Name: "Llama3-8B", Kind: spec.Decoder, Layers: 32, Hidden: 4096, FFN: 14336, Heads: 32, KVHeads: 8, Vocab: 128256, SeqLen: 8192, GatedMLP: true},
	{Name: "GPT3-5B", Kind: spec.Decoder, Layers: 24, Hidden: 4096, FFN: 16384, Heads: 32, Vocab: 51200, SeqLen: 2048, TiedEmbeddings: true},
	{Name: "Mixtral-8x7B", Kind: spec.Decoder, Layers: 32, Hidden: 4096, FFN: 14336, Heads: 32, KVHeads: 8, Vocab: 32000, SeqLen: 4096, GatedMLP: true, Experts: 8, ExpertsPerToken: 2, ExpertFFN: 14336},
	{Name: "Qwen3-30B-A3B", Kind: spec.Decoder, Layers: 48, Hidden: 2048, FFN: 6144, Heads: 32, KVHeads: 4, HeadDim: 128, Vocab: 151936, SeqLen: 4096, GatedMLP: true, Experts: 128, ExpertsPerToken: 8, ExpertFFN: 768},
	{Name: "DeepSeek-V2-Lite", Kind: spec.Decoder, Layers: 27, Hidden: 2048, FFN: 10944, Heads: 16, HeadDim: 128, Vocab: 102400, SeqLen: 4096, GatedMLP: true, Experts: 64, ExpertsPerToken: 6, ExpertFFN: 1408, SharedExperts: 2, DenseLayers: 1, KVRank: 512},
	{Name: "sparse-every-2", Kind: spec.Decoder, Layers: 24, Hidden: 2048, FFN: 8192, Heads: 16, Vocab: 50304, SeqLen: 4096, Experts: 16, ExpertsPerToken: 2, ExpertFFN: 4096, MoEEvery: 2, DenseLayers: 12},
	{Name: "BERT-large", Kind: spec.Encoder, Layers: 24, Hidden: 1024, FFN: 4096, Heads: 16, Vocab: 30522, SeqLen: 512, TiedEmbeddings: true},
}

func drawConfig(t *rapid.T) spec.Config {
	m := rapid.SampledFrom(networks).Draw(t, "model")
	a := h100
	p := spectest.DrawPlan(t)
	if q := p.Normal(); q.Check(m) != nil || planner.Redundant(&q) != "" || planner.CannotOffload(&q) != "" {
		t.Skip("not legal")
	}
	shape := spec.Packed(p.Devices(), 8)
	return spec.Config{Model: m, Accelerator: a, Plan: p, Shape: shape}
}
