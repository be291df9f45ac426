package datasets

import (
	"strings"
	"testing"
)

// TestRowsOtherExperts: a known model with experts that the catalog's has not is that model with these figures.
func TestRowsOtherExperts(t *testing.T) {
	const head = "row_id,accelerator,num_gpus,model,experts,experts_per_token,expert_ffn,shared_experts,dense_layers,kv_rank,ep\n"
	rows, bad := readRows(t, "my.csv", head+
		"a,h100,8,llama3-8b,8,2,14336,,,,8\nb,h100,8,llama3-8b,8,,,,,,8\nc,h100,8,llama3-8b,,,,,32,,\nd,h100,8,Qwen3-30B-A3B,,,,1,,,\ne,h100,8,llama3-8b,,,,,,512,\nf,h100,8,llama3-8b,1,1,,,,,\n", false)
	if len(bad) != 0 || len(rows) != 6 {
		t.Fatal(bad)
	}
	for i, want := range []string{"llama3-8b (experts=8,experts_per_token=2,expert_ffn=14336)", "llama3-8b (experts=8)", "Llama3-8B", "Qwen3-30B-A3B (shared_experts=1)", "llama3-8b (kv_rank=512)", "Llama3-8B"} {
		m := rows[i].Measurement.Config.Model
		if m.Name != want || m.Validate() != nil {
			t.Errorf("%s: %s, %v, want %s", rows[i].ID, m.Name, m.Validate(), want)
		}
		if i < 2 && (m.Experts != 8 || m.ExpertsPerToken != 2 || m.ExpertFFN != 14336 || m.Params() < 40e9) {
			t.Errorf("%s: %+v", rows[i].ID, m)
		}
	}
	if notes := strings.Join(rows[1].Assumed, "; "); !strings.Contains(notes, "experts_per_token not recorded, taken as 2; expert_ffn not recorded, taken as 14336") {
		t.Errorf("assumed: %s", notes)
	}
}

// TestRowsShapeFaults: a row is held to the rules of the flags of a model.
func TestRowsShapeFaults(t *testing.T) {
	const head = "row_id,accelerator,num_gpus,model,layers,hidden,heads,kv_heads,head_dim,ffn,vocab,seq_len,experts,experts_per_token,expert_ffn,shared_experts,dense_layers\n"
	for cells, want := range map[string]string{
		"own,4,4096,32,8,,14336,32000,2048,8,8,,,4":     "",
		"own,4,4096,30,6,128,14336,32000,2048,,,,,":     "",
		"llama3-8b,,,,,,,,,8,9,14336,,":                 `experts_per_token "9": is not in 1..8`,
		"Mixtral-8x7B,,,,,,,,,,9,,,":                    `experts_per_token "9": is not in 1..8`,
		"Qwen3-30B-A3B,,,,,,,,,4,,,,":                   `experts "4": is not in 1..4`,
		"own,4,4096,32,8,,14336,32000,2048,8,9,1024,,":  `experts_per_token "9": is not in 1..8`,
		"own,32,4096,32,7,,14336,32000,2048,,,,,":       `kv_heads "7": contradicts own: 7 kv_heads do not divide 32 heads`,
		"llama3-8b,,,,7,,,,,,,,,":                       `kv_heads "7": contradicts llama3-8b (kv_heads=7): 7 kv_heads do not divide 32 heads`,
		"own,4,4096,32,8,,14336,32000,2048,8,2,1024,,9": `dense_layers "9": contradicts own, with 4 layers, 9 of them dense`,
		"DeepSeekV3,2,,,,,,,,,,,,":                      `layers "2": contradicts DeepSeekV3 (layers=2), with 2 layers, 3 of them dense`,
		"own,4,4096,30,6,,14336,32000,2048,,,,,":        `heads "30": contradicts own: 30 heads do not divide hidden 4096`,
		"llama3-8b,,,,,,,,,,2,,,":                       `experts_per_token "2": needs a number of experts`,
		"llama3-8b,,,,,,,,,,,14336,,":                   `expert_ffn "14336": needs a number of experts`,
		"own,4,4096,32,8,,14336,32000,2048,,,,1,":       `shared_experts "1": needs a number of experts`,
	} {
		_, bad := readRows(t, "my.csv", head+"x,h100,8,"+cells+"\n", false)
		if want != "" {
			want = "x@2: datasets: my.csv:2: " + want
		}
		if got := strings.Join(bad, ""); !strings.HasPrefix(got, want) || want == "" && got != "" {
			t.Errorf("%s:\n%q, want\n%q", cells, got, want)
		}
	}
}
