package benchmark

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pacer-ml/pacer/bench/accuracy"
)

// TestPlannerCSV: a line per choice, then one per plan that ran; columns of the other kind are empty.
func TestPlannerCSV(t *testing.T) {
	lines, err := plannerCSV(&accuracy.PlannerReport{
		Choices: []accuracy.Alternatives{{Dataset: "published", Source: "bigscience", Devices: 384, Chosen: accuracy.Alternative{Plan: "dp=48,tp=8"}, Regret: 0.25}},
		Plans:   []accuracy.PlanCheck{{Row: "megatron_bridge-0165", Source: "megatron_bridge", Plan: "pp=4", Fits: true, MeasuredSec: 2.5}},
	})
	if err != nil || len(lines) != 3 {
		t.Fatalf("%v, %q; want a header, a choice and a plan", err, lines)
	}
	for i, want := range []map[string]string{
		{"kind": "choice", "dataset": "published", "source": "bigscience", "devices": "384", "chosen.plan": "dp=48,tp=8", "regret": "0.25", "row": "", "fits": ""},
		{"kind": "plan", "dataset": "", "source": "megatron_bridge", "devices": "", "chosen.plan": "", "regret": "", "row": "megatron_bridge-0165", "plan": "pp=4", "fits": "true", "measured_s": "2.5"},
	} {
		got := map[string]string{}
		for k, name := range lines[0] {
			if _, ok := want[name]; ok {
				got[name] = lines[i+1][k]
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("line %d of %q (-want +got):\n%s", i+1, lines, diff)
		}
	}
	if lines[0][0] != "kind" || lines[0][1] != "dataset" || lines[0][2] != "source" {
		t.Errorf("header %q, want it to begin with the kind, the data set and the source", lines[0])
	}
}
