package datasets

import (
	"strings"
	"testing"
)

// TestDocuments: layers, heads, networks and the noise of runs that a row lacks are those of its document, with its source
// or none stated; what a row records counts.
func TestDocuments(t *testing.T) {
	const chronicles, gpt2 = "train/tr11-176B-ml/chronicles-prequel.md", "experiments/gpt2.md"
	const head = "row_id,step_time_s,source,model,params_b,layers,hidden,heads,seq_len,vocab,accelerator,num_nodes,gpus_per_node,num_gpus,tp,pp,recompute,zero_stage,precision,micro_batch,global_batch,network_gbps,notes,source_path\n"
	for cells, want := range map[string]struct {
		layers, heads int
		gbps          float64
		parts         string
	}{
		"bigscience,GPT-194B,194,,14400,,2048,250000,A100-80GB-SXM,48,8,384,8,6,full,1,fp16,1,2048,,02-20 2022," + chronicles:     {78, 96, 400, "launch=blocking"},
		"bigscience,GPT-200B,200,80,14400,96,2048,250000,A100-80GB-SXM,10,8,80,8,10,full,1,fp16,1,2048,,02-17 2022," + chronicles: {80, 96, 400, ""},
		"bigscience,GPT-200B,200,,14400,,2048,250000,A100-80GB-SXM,39,8,312,8,3,full,1,fp16,1,2028,,02-20 2022," + chronicles:     {80, 96, 400, ""},
		",GPT-182B,182,78,13824,,2048,250000,A100-80GB-SXM,48,8,384,8,6,full,1,fp16,4,2048,,02-23 2022," + chronicles:             {78, 64, 400, ""},
		",GPT-182B,182,78,13824,96,2048,250000,A100-80GB-SXM,48,8,384,8,6,full,1,fp16,4,2048,,02-23 2022," + chronicles:           {78, 96, 400, ""},
		",GPT-182B,182,78,13824,,2048,250000,A100-80GB-SXM,48,8,384,8,6,full,1,fp16,4,2048,,,other.md":                            {78, 0, 1600, ""},
		"acme,GPT-182B,182,78,13824,,2048,250000,A100-80GB-SXM,48,8,384,8,6,full,1,fp16,4,2048,,02-23 2022," + chronicles:         {78, 0, 1600, ""},
		"bigscience,GPT-18B,18,6,14336,,2048,250000,A100-80GB-SXM,1,8,8,8,1,full,1,fp16,2,2048,,02-21 2022," + chronicles:         {6, 64, 400, ""},
		"bigscience,GPT2-39B,39,48,8192,,1024,,V100-SXM2-32GB,8,4,32,4,8,full,0,fp16,4,512,,05-26," + gpt2:                        {48, 0, 100, ""},
		"bigscience,GPT2-39B,39,48,8192,,1024,,V100-SXM2-32GB,8,4,32,4,8,full,0,fp16,4,512,200,05-26," + gpt2:                     {48, 0, 200, ""},
	} {
		rows, bad := readRows(t, "my.csv", head+"x,12,"+cells+"\n", true)
		if len(bad) != 0 || len(rows) != 1 {
			t.Errorf("%s: %v", cells, bad)
			continue
		}
		c := rows[0].Measurement.Config
		if noise := rows[0].Measurement.StepNoise(); (noise == 0.2) != strings.HasSuffix(cells, gpt2) || noise != 0 && noise != 0.2 {
			t.Errorf("%s: a noise of %g", cells, noise)
		}
		if strings.Contains(cells, "B,194,,") && c.Model.ParamCount != 0 {
			t.Errorf("%s: %g parameters, want those of its layers", cells, c.Model.ParamCount)
		}
		_, parts, _ := strings.Cut(c.Framework, " ")
		if c.Model.Layers != want.layers || c.Model.Heads != want.heads || c.Link.InterBps*8/1e9 != want.gbps || parts != want.parts {
			t.Errorf("%s: %d layers, %d heads, %g Gb/s, parts %q, want %+v", cells, c.Model.Layers, c.Model.Heads, c.Link.InterBps*8/1e9, parts, want)
		}
	}
}

// TestDocumentsApart: rows of one table with the same model and machines are described by their own documents.
func TestDocumentsApart(t *testing.T) {
	const cells = ",12,,GPT-182B,182,78,13824,2048,250000,A100-80GB-SXM,48,8,384,8,6,full,1,fp16,4,2048,"
	const head = "row_id,step_time_s,source,model,params_b,layers,hidden,seq_len,vocab,accelerator,num_nodes,gpus_per_node,num_gpus,tp,pp,recompute,zero_stage,precision,micro_batch,global_batch,source_path\n"
	rows, bad := readRows(t, "my.csv", head+"x"+cells+"other.md\ny"+cells+"train/tr11-176B-ml/chronicles-prequel.md\n", true)
	if len(bad) != 0 || len(rows) != 2 {
		t.Fatalf("%d rows, %v", len(rows), bad)
	}
	for i, want := range []struct {
		heads int
		gbps  float64
	}{{0, 1600}, {64, 400}} {
		if c := rows[i].Measurement.Config; c.Model.Heads != want.heads || c.Link.InterBps*8/1e9 != want.gbps {
			t.Errorf("row %d: %d heads, %g Gb/s, want %+v", i, c.Model.Heads, c.Link.InterBps*8/1e9, want)
		}
	}
}
