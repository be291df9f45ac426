package spec_test

import (
	"math"
	"testing"

	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// TestPackedScores: documents of d tokens have the scores of samples of d tokens, d/seq of them for each token.
func TestPackedScores(t *testing.T) {
	whole := spec.Model{Name: "m", Kind: spec.Decoder, Layers: 4, Hidden: 64, Heads: 4, FFN: 256}
	local := whole
	local.Window, local.WindowLayers = 96, 2
	encoder := whole
	encoder.Kind = spec.Encoder
	for _, m := range []spec.Model{whole, local, encoder} {
		for _, d := range []int{64, 96, 256} {
			want := m.ScoreShare(d) * float64(d) / 1024
			packed, short := m.WithPacked(d), 1024/float64(d)*m.TrainFLOPs(d)
			if got := packed.ScoreShare(1024); math.Abs(got/want-1) > 1e-12 {
				t.Errorf("%s, documents of %d: share %g, want %g", m.Kind, d, got, want)
			}
			if got := packed.TrainFLOPs(1024); math.Abs(got/short-1) > 1e-12 {
				t.Errorf("%s, documents of %d: %g FLOPs, want those of short samples, %g", m.Kind, d, got, short)
			}
		}
		long := m.WithPacked(2048)
		if got, want := long.ScoreShare(1024), m.ScoreShare(1024); got != want {
			t.Errorf("%s: documents longer than samples: %g, want %g", m.Kind, got, want)
		}
	}
	lora, err := spec.ParseAdapter("lora:8:mlp")
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range []spec.Model{whole, whole.WithPacked(96), whole.Adapted(lora), whole.Adapted(lora).WithPacked(96),
		whole.WithImbalance(1.5), whole.Adapted(lora).WithPacked(96).WithImbalance(1.25)} {
		if plain := m.Plain(); plain != whole {
			t.Errorf("%s is %+v without packing, adapter and imbalance", m.Name, plain)
		}
	}
	if m := whole.WithPacked(0); m != whole {
		t.Errorf("packed=0 is %+v", m)
	}
}
