package datasets

import (
	"slices"
	"strings"
	"testing"
	"testing/fstest"
)

// The importer names what it does not read, once for each file, and says how a header is to be written.
func TestPublishedNotes(t *testing.T) {
	root := fstest.MapFS{
		"a.csv": {Data: []byte("row_id,model,accelerator,num_gpus,zero,step_time_s\nx,Llama3-8B,h100,8,3,1\ny,Llama3-8B,h100,8,3,1\n")},
		"b.csv": {Data: []byte("row_id,model,accelerator,num_gpus,zero_stage,step_time_s\nx,Llama3-8B,h100,8,3,1\n")},
		"c.csv": {Data: []byte("colour\nred\n")},
	}
	if got, want := publishedNotes(root), []string{`a.csv: column "zero" is not known and ignored, did you mean zero_stage?`}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	for header, want := range map[string]string{
		"Row_ID,Model,accelerator,step_time_s": `no column row_id ("Row_ID" is another name), model ("Model" is another name), the header is`,
		"row_id;model;accelerator;step_time_s": "no column row_id, model, accelerator: want commas between columns, the header is",
		"row_id,model,accelerator,peak":        "no column step_time_s (seconds), throughput_value or mem_gib (GiB)",
	} {
		_, err := publishedImporter.Open(fstest.MapFS{"a.csv": {Data: []byte(header + "\n1,Llama3-8B,h100,1\n")}})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", header, err, want)
		}
	}
}

// An unknown header is reported with the known one that it resembles, with the first row only.
func TestRowsOddHeaders(t *testing.T) {
	for header, want := range map[string]string{
		"zero":                `column "zero" is not known and ignored, did you mean zero_stage?`,
		"recomp":              `column "recomp" is not known and ignored, did you mean recompute?`,
		"Zero-Stage":          `column "Zero-Stage" is not known and ignored, did you mean zero_stage?`,
		"micro_bach":          `column "micro_bach" is not known and ignored, did you mean micro_batch?`,
		"vp":                  `column "vp" is not known and ignored, did you mean vpp?`,
		"precison":            `column "precison" is not known and ignored, did you mean precision?`,
		"step_time":           "", // an outcome, which is not read
		"colour":              `column "colour" is not known and ignored`,
		"xp":                  `column "xp" is not known and ignored`,
		"gbs,mbs,tp_size":     `column "gbs" is not known and ignored, did you mean global_batch?; column "mbs" is not known and ignored, did you mean micro_batch?; column "tp_size" is not known and ignored, did you mean tp?`,
		"nodes":               `column "nodes" is not known and ignored, did you mean num_nodes?`,
		"gbs,global_batch":    `column "gbs" is not known and ignored, since there is a column global_batch`,
		"attention":           `column "attention" is not known and ignored: a part of the training stack is written in column stack, as attention=VALUE (pacer ls parts)`,
		"Optimizer":           `column "Optimizer" is not known and ignored: a part of the training stack is written in column stack, as optimizer=VALUE (pacer ls parts)`,
		"bucket":              `column "bucket" is not known and ignored: a part of the training stack is written in column stack, as overlap=VALUE (pacer ls parts)`,
		"launch":              `column "launch" is not known and ignored: a part of the training stack is written in column stack, as launch=VALUE (pacer ls parts)`,
		"lora_rank,top_k":     `column "lora_rank" is not known and ignored, did you mean adapter?; column "top_k" is not known and ignored, did you mean experts_per_token?`,
		"moe_experts":         `column "moe_experts" is not known and ignored, did you mean experts?`,
		"intermediate_size":   `column "intermediate_size" is not known and ignored, did you mean ffn?`,
		"num_key_value_heads": `column "num_key_value_heads" is not known and ignored, did you mean kv_heads?`,
		"kv_lora_rank":        `column "kv_lora_rank" is not known and ignored, did you mean kv_rank?`,
		"ac":                  `column "ac" is not known and ignored, did you mean recompute?`,
		"models":              `column "models" is not known and ignored, since there is a column model`,
		"notes":               "",
		"zero_stage,zero":     `column "zero" is not known and ignored, since there is a column zero_stage`,
		"zero,recomp":         `column "recomp" is not known and ignored, did you mean recompute?; column "zero" is not known and ignored, did you mean zero_stage?`,
	} {
		cells := strings.Repeat(",1", strings.Count(header, ",")+1)
		rows, _ := readRows(t, "my.csv", "row_id,model,accelerator,num_gpus,"+header+"\nx,Llama3-8B,h100,8"+cells+"\ny,Llama3-8B,h100,8"+cells+"\n", false)
		if len(rows) != 2 {
			t.Fatalf("%s: %d rows", header, len(rows))
		}
		if got := strings.Join(rows[0].Header, "; "); got != want || rows[1].Header != nil {
			t.Errorf("%s: %q, then %q, want %q once", header, got, rows[1].Header, want)
		}
	}
}
