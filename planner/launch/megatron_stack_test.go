package launch

import (
	"strings"
	"testing"
)

// TestEightBitWeights: Megatron-LM has a flag for weights in fp8, with the distributed optimizer and under fp8 only, but
// none against their transposed copies; other frameworks' files do not set them.
func TestEightBitWeights(t *testing.T) {
	for _, c := range []struct {
		framework, stack, plan, err string
		flag                        bool
		notes                       int
	}{
		{"megatron", "Megatron Core@0.15 weights=fp8", "dp=8,mb=1,zero=1,precision=fp8", "", true, 0},
		{"megatron", "Megatron Core@0.15 weights=fp8", "dp=8,mb=1,zero=3,precision=fp8", "", true, 0},
		{"megatron", "Megatron Core@0.15 weights=fp8-once", "dp=8,mb=1,zero=1,precision=fp8", "", true, 1},
		{"megatron", "Megatron Core@0.15 weights=fp8", "dp=8,mb=1,zero=1,precision=bf16", "", false, 0},
		{"megatron", "Megatron Core@0.15", "dp=8,mb=1,zero=1,precision=fp8", "", false, 0},
		{"megatron", "Megatron Core@0.15 weights=fp8", "dp=8,mb=1,precision=fp8", "stack=weights=fp8: --fp8-param-gather goes with the distributed optimizer", false, 0},
		{"torchtitan", "torchtitan@2025-10 weights=fp8", "dp=8,mb=1,zero=3,precision=fp8", "", false, 1},
	} {
		conf := config(t, "Llama3-8B", "H100-80GB-SXM", "8", c.plan)
		conf.Framework = c.stack
		s, err := emit(t, c.framework, conf)
		if c.err != "" || err != nil {
			if c.err == "" || err == nil || !strings.Contains(err.Error(), c.err) {
				t.Errorf("%s %s: %v, want %q", c.stack, c.plan, err, c.err)
			}
			continue
		}
		if got := strings.Contains(s.Text, "--fp8-param-gather"); got != c.flag {
			t.Errorf("%s %s: --fp8-param-gather %v", c.stack, c.plan, got)
		}
		n := strings.Count(strings.Join(s.Notes, "\n"), "transposed copies of weights") + strings.Count(strings.Join(s.Notes, "\n"), "weights=fp8:")
		if n != c.notes {
			t.Errorf("%s %s: notes %q", c.stack, c.plan, s.Notes)
		}
	}
}
