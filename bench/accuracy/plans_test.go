package accuracy

import (
	"slices"
	"testing"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/perfmodel/spec/spectest"
)

// TestPlanSources: tables with plans that experts chose are found by their rows.
func TestPlanSources(t *testing.T) {
	p, err := readTables(t.Context(), spectest.Shared(t), publishedDir)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := p.planSources(), []string{"megatron_sc21", "megatron_bridge"}; !slices.Equal(got, want) {
		t.Errorf("sources of plans: %q, want %q", got, want)
	}
	row := func(source, unrecorded string, tp, pp, zero int, peak float64) spec.Measurement {
		return spec.Measurement{Source: "published/" + source, PeakBytes: peak, Env: map[string]string{"unrecorded": unrecorded},
			Config: spec.Config{Plan: spec.Plan{DP: 2, TP: tp, PP: pp, CP: 1, ZeRO: zero}}}
	}
	made := &tables{usable: map[string][]spec.Measurement{}}
	for _, m := range []spec.Measurement{
		row("many", "recompute,offload", 8, 4, 1, 0), row("many", "", 8, 1, 0, 0), row("few", "zero_stage", 2, 2, 1, 0),
		row("unsharded", "zero_stage", 2, 2, 0, 0), row("batch", "micro_batch", 2, 2, 1, 0), row("tensor", "", 8, 1, 1, 0), row("memory", "", 2, 2, 1, 1),
	} {
		made.all = append(made.all, m)
		s := sourceOf(&m)
		if made.usable[s] = append(made.usable[s], m); !slices.Contains(made.sources, s) {
			made.sources = append(made.sources, s)
		}
	}
	if got, want := made.planSources(), []string{"few", "many"}; !slices.Equal(got, want) {
		t.Errorf("sources of plans: %q, want %q", got, want)
	}
}
