package registry

import (
	"maps"
	"math"
	"testing"

	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// TestReadsWritten reads a file of every family that an earlier version wrote, and compares the predictions
// with those of that version.
func TestReadsWritten(t *testing.T) {
	cpu := spec.Accelerator{Name: "CPU Intel Xeon 2.6GHz AVX-512, 1 thread", FP32: 1e11, MemBytes: 12 << 30, MemBps: 1e10}
	gpt := spec.Model{Name: "gpt-mini", Kind: spec.Decoder, Layers: 4, Hidden: 96, FFN: 384, Heads: 4, Vocab: 1024, SeqLen: 64,
		TiedEmbeddings: true}
	config := spec.Config{Model: gpt, Accelerator: cpu, Shape: spec.NewShape(2),
		Plan: spec.Plan{DP: 2, MicroBatch: 2, Precision: spec.FP32}.Normal(), Framework: "pacer-torch"}
	want := map[string]float64{"analytic": 4.444371524596205, "hybrid": 6.519744959727859, "optimus": 34.08578404015492,
		"pollux": 35.791351036451175, "rubick": 22.00853478639349, "sia": 35.7887864969935}
	r, err := Open("testdata/written")
	if err != nil {
		t.Fatal(err)
	}
	cards, err := r.List()
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]float64{}
	for _, c := range cards {
		fitted, card, err := r.Get(c.Key, c.Family)
		if err != nil {
			t.Errorf("%s: %v", c.Family, err)
			continue
		}
		if card.NFit != c.NFit || card.MAPE <= 0 {
			t.Errorf("%s: card %+v", c.Family, card)
		}
		p, err := fitted.Predict(t.Context(), config)
		if err != nil {
			t.Errorf("%s: %v", c.Family, err)
			continue
		}
		got[c.Family] = p.Throughput
	}
	if !maps.EqualFunc(want, got, func(a, b float64) bool { return math.Abs(a-b) <= 1e-9*a }) {
		t.Errorf("samples/s by family are %v, want %v", got, want)
	}
}
