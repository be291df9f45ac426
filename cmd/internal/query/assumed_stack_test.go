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
