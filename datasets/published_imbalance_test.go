package datasets

import (
	"strings"
	"testing"
)

// TestRowsImbalance: the column changes the name of the model unless it is 1, and needs experts.
func TestRowsImbalance(t *testing.T) {
	for cells, want := range map[string]string{
		"Mixtral-8x7B,":    "Mixtral-8x7B",
		"Mixtral-8x7B,1":   "Mixtral-8x7B",
		"Mixtral-8x7B,1.5": "Mixtral-8x7B (imbalance=1.5)",
		"Llama3-8B,1":      "Llama3-8B",
		"Llama3-8B,1.5":    `imbalance "1.5": spec: model Llama3-8B (imbalance=1.5): imbalance=1.5 needs routed experts, and it has none: leave imbalance out`,
		"Mixtral-8x7B,0.5": `imbalance "0.5": spec: model Mixtral-8x7B (imbalance=0.5): imbalance=0.5 is not in 1..4, experts=8 over experts_per_token=2; 1 is even`,
		"Mixtral-8x7B,x":   `imbalance "x": is not a finite number`,
	} {
		rows, bad := readRows(t, "my.csv", "row_id,accelerator,num_gpus,model,imbalance\nx,h100,8,"+cells+"\n", false)
		switch got := ""; {
		case len(rows) == 1 && len(bad) == 0:
			if got = rows[0].Measurement.Config.Model.Name; got != want {
				t.Errorf("%s: %q, want %q", cells, got, want)
			}
		case len(bad) != 1 || !strings.HasSuffix(bad[0], want):
			t.Errorf("%s: %q, want %q", cells, bad, want)
		}
	}
}
