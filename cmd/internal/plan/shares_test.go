package plan

import (
	"strings"
	"testing"

	"github.com/pacer-ml/pacer/cmd/internal/query"
	"github.com/pacer-ml/pacer/perfmodel/memory"
)

// TestPrintPeak: stages are counted from 1, and what is not known or only one is left out.
func TestPrintPeak(t *testing.T) {
	for want, p := range map[string]query.MemPeak{
		"": {Stages: 1},
		"peak: stage 1 of 4, during the backward pass of a layer\n": {Stages: 4, At: memory.AtLayer},
		"peak: stage 4 of 4, while computing the loss\n":            {Stage: 3, Stages: 4, At: memory.AtLoss},
		"peak: during the backward pass of a layer with experts\n":  {Stages: 1, At: memory.AtExperts},
		"peak: stage 2 of 2\n":                                      {Stage: 1, Stages: 2},
	} {
		var out strings.Builder
		if printPeak(&out, &p); out.String() != want {
			t.Errorf("%+v: %q, want %q", p, out.String(), want)
		}
	}
}
