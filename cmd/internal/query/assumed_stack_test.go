package query

import (
	"strings"
	"testing"

	"github.com/pacer-ml/pacer/datasets/catalog"
	"github.com/pacer-ml/pacer/perfmodel/family/analytic"
	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// TestAssumedStacks: every assumed stack is of the stated name and has the stated parts, even if not all of the text can
// be read, as in stored rows.
func TestAssumedStacks(t *testing.T) {
	m, _ := catalog.Model("llama3-8b")
	a, err := catalog.Accelerator("h100")
	if err != nil {
		t.Fatal(err)
	}
	c := spec.Config{Model: m, SeqLen: 2048, Accelerator: a, Shape: spec.NewShape(8), Plan: spec.Plan{DP: 8, MicroBatch: 1, AccumSteps: 1, Precision: spec.BF16}}
	for _, x := range []struct{ text, want string }{
		{"mcore launch=eager", "Megatron Core@? launch=eager"}, {"mcore@latest launch=eager", "Megatron Core@? launch=eager"},
		{"mcore launch=eager x=y", "Megatron Core@? launch=eager"}, {"FSDP@new tp=none", "FSDP tp=none"}, {"LitGPT x=y", "LitGPT"},
	} {
		c.Framework = x.text
		got, err := assumedStacks(&analytic.Model{}, c, 1)
		if err != nil || len(got) == 0 {
			t.Fatalf("%s: %v, %v", x.text, got, err)
		}
		for _, of := range got {
			name, rest, _ := strings.Cut(x.want, "?")
			if !strings.HasPrefix(of.Framework, name) || !strings.HasSuffix(of.Framework, rest) {
				t.Errorf("%q: %s, want %s", x.text, of.Framework, x.want)
			}
		}
	}
}

// TestDecisive: of stacks that change the time equally but for rounding, as two of equal probability do, the first is decisive.
func TestDecisive(t *testing.T) {
	for _, c := range []struct {
		ratios []float64
		want   int
	}{
		{[]float64{0.9, 1 / 0.9 * (1 + 1e-15)}, 0},
		{[]float64{1 / 0.9 * (1 - 1e-15), 0.9}, 0},
		{[]float64{0.99, 1.2, 1 / 1.2}, 1},
		{[]float64{1, 1.01, 0.8}, 2},
	} {
		var e Explanation
		for _, r := range c.ratios {
			e.Stacks = append(e.Stacks, AssumedStack{StepRatio: r})
		}
		if got := e.Decisive().StepRatio; got != c.ratios[c.want] {
			t.Errorf("of %v the one of %g is decisive, want %g", c.ratios, got, c.ratios[c.want])
		}
	}
	if e := (Explanation{Stacks: make([]AssumedStack, 1)}); e.Decisive() != nil {
		t.Error("a known stack is decisive")
	}
}
