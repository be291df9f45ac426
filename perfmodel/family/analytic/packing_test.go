package analytic

import (
	"testing"

	"github.com/pacer-ml/pacer/perfmodel/internal/perftest"
	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// TestPacking: of a step on packed documents only the attention core is faster, by the share of the scores on the
// diagonal and at the rate of short sequences. Without a fused kernel nothing changes.
func TestPacking(t *testing.T) {
	c := perftest.GPT(spec.Plan{DP: 8, TP: 1, PP: 1, MicroBatch: 1, AccumSteps: 4, Precision: spec.BF16})
	c.SeqLen = 32768
	open := func(c spec.Config) *Prepared {
		var pr Prepared
		if err := Shipped().Physics.Open(&c, "", &pr); err != nil {
			t.Fatal(err)
		}
		return &pr
	}
	p := c.Plan.Normal()
	for _, stack := range []string{"Megatron Core@0.13", "Megatron Core@0.13 attention=unfused"} {
		c.Framework = stack
		packed := c
		packed.Model = c.Model.WithPacked(512)
		a, b := open(c), open(packed)
		whole, short := a.work.layerOf(&a.machine, &p), b.work.layerOf(&b.machine, &p)
		half := a.machine.k.flashHalf
		want := 512. / 32768 * (1 + half/512) / (1 + half/32768)
		if a.machine.stack.unfused {
			want = 1
		}
		if got := short.attn / whole.attn; !near(got, want) {
			t.Errorf("%s: packed scores take %g of the time, want %g", stack, got, want)
		}
		short.attn, short.attnBack = whole.attn, whole.attnBack
		if short != whole {
			t.Errorf("%s: %+v, want all but the scores as without packing, %+v", stack, short, whole)
		}
	}
}

func near(a, b float64) bool { return a-b < 1e-9*b && b-a < 1e-9*b }
