package datasets

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/pacer-ml/pacer/datasets/catalog"
	"github.com/pacer-ml/pacer/datasets/internal/table"
	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/perfmodel/spec/spectest"
)

// readRows reads a whole table, and returns good and bad rows.
func readRows(t *testing.T, name, text string, outcomes bool) (rows []Row, bad []string) {
	t.Helper()
	for row, err := range PublishedRows(t.Context(), name, strings.NewReader(text), nil, outcomes) {
		var fault *RowError
		switch {
		case errors.As(err, &fault):
			bad = append(bad, fmt.Sprintf("%s@%d: %v", row.ID, row.Line, err))
		case err != nil:
			t.Fatal(err)
		default:
			rows = append(rows, row)
		}
	}
	return rows, bad
}

// rewrite applies change to every cell of a table, by column; a column for
// which keep is false is dropped.
func rewrite(t *testing.T, text string, keep func(col string) bool, change func(col, cell string) string) string {
	t.Helper()
	var b strings.Builder
	var names []string
	for _, line := range table.Lines(strings.NewReader(text)) {
		cells, err := table.Split(line.Text)
		if err != nil {
			t.Fatal(err)
		}
		head := names == nil
		if head {
			names = cells
		}
		var out []string
		for i, c := range cells {
			if !keep(names[i]) {
				continue
			}
			if !head {
				c = change(names[i], c)
			}
			out = append(out, `"`+strings.ReplaceAll(c, `"`, `""`)+`"`)
		}
		b.WriteString(strings.Join(out, ",") + "\n")
	}
	return b.String()
}

func isOutcome(col string) bool { return slices.Contains(OutcomeColumns, col) }

// checkOutcomesIgnored checks that blank, garbled, missing and shifted outcome
// columns do not change the rows read without outcomes.
func checkOutcomesIgnored(t *testing.T, name, text string) {
	t.Helper()
	all := func(string) bool { return true }
	want, wantBad := readRows(t, name, text, false)
	for what, other := range map[string]string{
		"blank": rewrite(t, text, all, func(col, cell string) string {
			if isOutcome(col) {
				return ""
			}
			return cell
		}),
		"garbled": rewrite(t, text, all, func(col, cell string) string {
			if isOutcome(col) {
				return "-1e999, LoRA sequence parallel on 100 Gb/s per node; \"x"
			}
			return cell
		}),
		"missing": rewrite(t, text, func(col string) bool { return !isOutcome(col) }, func(_, cell string) string { return cell }),
	} {
		got, bad := readRows(t, name, other, false)
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("%s: outcomes %s (-want +got):\n%s", name, what, d)
		}
		if d := cmp.Diff(wantBad, bad); d != "" {
			t.Errorf("%s: outcomes %s, faults (-want +got):\n%s", name, what, d)
		}
	}
}

const rowsTable = `row_id,source,model,params_b,layers,hidden,heads,seq_len,vocab,accelerator,num_nodes,gpus_per_node,num_gpus,dp,tp,pp,recompute,precision,micro_batch,global_batch,zero_stage,step_time_s,throughput_value,throughput_unit,mem_gib,status,notes
a,NVIDIA-NeMo/Megatron-Bridge,LLAMA3_8B,,,,,8192,,H100-80GB-SXM,1,8,8,8,1,1,,,1,128,,9.3,,,,ok,task=Pre-Training
b,bigscience-workshop/bigscience,GPT-181B,181,,14336,112,2048,250000,A100-80GB-SXM,48,8,384,8,4,12,full,bf16,2,2048,1,110,,,70,ok,Jean Zay
c,Lightning-AI/litgpt,Llama 2,7,,,,,,A100-40GB-SXM,1,1,1,1,1,1,,bf16-true,1,,0,0.3,,,21,ok,LoRA finetune
d,calculon-ai/calculon (quoting arXiv:2205.05198),GPT3-175B,175,96,12288,96,2048,51200,A100-80GB-SXM,8,8,64,1,8,8,selective,fp16,1,64,0,13.8,,,,ok,sequence parallel on
e,foundation-model-stack/fms-fsdp,Llama2-7b,6.74,32,4096,32,4096,32000,A100-80GB-SXM,16,8,128,128,1,1,none,bf16,2,256,3,1.8,,,,ok,HSDP; 400 Gb/s per node
f,somebody/else,NewNet,3.5,,,,2048,,A100-80GB-SXM,1,8,8,4,1,1,,bf16,1,8,,1,,,,ok,
`

func TestRowsIgnoreOutcomes(t *testing.T) {
	checkOutcomesIgnored(t, "rows.csv", rowsTable)
	shared := os.DirFS(filepath.Join(spectest.Shared(t), "data", "published"))
	files, err := publishedFiles(shared)
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		text := spectest.ReadFile(t, filepath.Join(spectest.Shared(t), "data", "published", file))
		checkOutcomesIgnored(t, file, string(text))
	}
}

// A row has the same Config with and without outcomes, whatever the file's name.
func TestRowsAreTheImportersConfigs(t *testing.T) {
	dir := filepath.Join(spectest.Shared(t), "data", "published")
	ms, _ := collect(t, "published", os.DirFS(dir))
	configs := map[string]Row{}
	files, _ := publishedFiles(os.DirFS(dir))
	for _, file := range files {
		text := spectest.ReadFile(t, filepath.Join(dir, file))
		rows, _ := readRows(t, "rows.csv", string(text), false)
		for _, r := range rows {
			configs[r.ID] = r
		}
	}
	for _, m := range ms {
		if r, ok := configs[m.Origin]; !ok || r.Measurement.Config != m.Config {
			t.Errorf("%s: without outcomes (-imported +read):\n%s", m.Origin, cmp.Diff(m.Config, r.Measurement.Config))
		}
	}
}

func TestRowsBySource(t *testing.T) {
	rows, bad := readRows(t, "rows.csv", rowsTable, false)
	if len(bad) != 0 || len(rows) != 6 {
		t.Fatalf("%d rows, faults %v", len(rows), bad)
	}
	type want struct {
		framework, precision string
		seq                  int
		inter                float64
		sequenceParallel     bool
		against              int
		assumed              string
	}
	got := make([]want, len(rows))
	for i, r := range rows {
		c := r.Measurement.Config
		got[i] = want{c.Framework, string(c.Plan.Precision), c.SeqLen, c.Link.InterBps * 8 / 1e9, c.Plan.SequenceParallel, len(r.Against), strings.Join(r.Assumed, "; ")}
	}
	wants := []want{
		{"Megatron-Bridge", "fp8", 8192, 3200, false, 0, "precision not recorded, taken as fp8; zero_stage not recorded, taken as 1; recompute not recorded, taken as none"},
		{"Megatron-DeepSpeed@2021", "bf16", 2048, 400, false, 0, "layers or width not recorded, derived from the parameter count"},
		{"LitGPT", "bf16", 0, 1600, false, 0, "only adapters were trained, taken as training all weights; recompute not recorded, taken as none"},
		{"Megatron-LM@2022", "fp16", 2048, 1600, true, 0, ""},
		{"FSDP@2024 launch=compiled zero=hsdp", "bf16", 4096, 400, false, 0, ""},
		{"somebody/else", "bf16", 2048, 1600, false, 1, `training stack not recorded: averaged over the common ones; layers or width not recorded, derived from the parameter count; zero_stage, recompute not recorded, taken as 0, none`},
	}
	if d := cmp.Diff(wants, got, cmp.AllowUnexported(want{})); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	if !rows[5].Mismatch {
		t.Error("dp 4 on 8 devices is no mismatch")
	}
}

// Columns may be in any order, with unknown ones, a byte order mark and CRLF.
// Missing values are derived.
func TestRowsOfAnyForm(t *testing.T) {
	rows, bad := readRows(t, "my.csv", "\ufeffaccelerator,colour,model,row_id,num_nodes,tp,precision\r\nh100,red,meta-llama/Llama-3-8B,x,2,4,BF16\r\n\r\n", false)
	if len(bad) != 0 || len(rows) != 1 {
		t.Fatal(rows, bad)
	}
	c := rows[0].Measurement.Config
	if rows[0].ID != "x" || c.Model.Name != "Llama3-8B" || c.Shape.Devices != "8+8" || c.Plan.DP != 4 || c.Plan.Precision != "bf16" {
		t.Errorf("row %q: %+v", rows[0].ID, c)
	}
}

// A framework column overrides the stack of the source, and no other fact about it.
func TestRowsByFramework(t *testing.T) {
	head := "row_id,source,framework,model,accelerator,num_gpus,tp,recompute,zero_stage,precision,seq_len,micro_batch\n"
	const average = ": averaged over the common ones"
	const blank = "training stack not recorded" + average
	const fix = "Write it in column framework, or parts in column stack"
	for cells, want := range map[string][2]string{
		",,h100":                       {"", blank},
		"me,,h100":                     {"me", blank},
		"me@lab,,h100":                 {"melab", blank},
		"https://host/x?id=3,,h100":    {"https://host/x?id3", blank},
		"me,torch-titan,h100":          {"torchtitan", ""},
		"pytorch/torchtitan,,h100":     {"torchtitan", ""},
		"pytorch/torchtitan,fsdp,h100": {"FSDP", ""},
		",Megatron-LM,h100":            {"Megatron-LM", ""},
		",megatron_lm,a100":            {"Megatron-LM", ""},
		",mcore,a100":                  {"Megatron Core", ""},
		",DeepSpeed,a100":              {"DeepSpeed", ""},
		",Our Stack,a100":              {"Our Stack", `training stack "Our Stack" is not in pacer ls stacks` + average + "; write one of them in column framework, or parts in column stack"},
		",torchtitn,a100":              {"torchtitn", `training stack "torchtitn" is not in pacer ls stacks` + average + "; did you mean torchtitan? " + fix},
		",NeMo 24.07,a100":             {"NeMo 24.07", `training stack "NeMo 24.07" is not in pacer ls stacks` + average + "; did you mean NeMo@24.07? " + fix},
		",…,a100":                      {"…", `training stack "…" is not in pacer ls stacks` + average + "; write one of them in column framework, or parts in column stack"},
	} {
		i := strings.LastIndex(cells, ",")
		rows, bad := readRows(t, "my.csv", head+"x,"+cells[:i]+",Llama3-8B,"+cells[i+1:]+",8,2,selective,0,bf16,8192,1\n", false)
		if len(bad) != 0 || len(rows) != 1 {
			t.Errorf("%s: %v", cells, bad)
			continue
		}
		c := rows[0].Measurement.Config
		if got := [2]string{c.Framework, strings.Join(rows[0].Assumed, "; ")}; got != want {
			t.Errorf("%s: %q, want %q", cells, got, want)
		}
		if sp := strings.HasPrefix(strings.ToLower(cells), ",megatron"); c.Plan.SequenceParallel != sp {
			t.Errorf("%s: sequence parallel is %v", cells, !sp)
		}
	}
	rows, _ := readRows(t, "my.csv", "row_id,source,framework,model,accelerator,num_gpus\nx,bigscience,FSDP,Llama3-8B,A100-80GB-SXM,8\n", false)
	if c := rows[0].Measurement.Config; c.Framework != "FSDP" || c.Link.InterBps*8/1e9 != 400 {
		t.Errorf("%s on %g Gb/s, want FSDP on Jean Zay's 400", c.Framework, c.Link.InterBps*8/1e9)
	}
}

// TestRowsStack: a wrong part of the stack is an error, a wrong date is ignored and said to be.
func TestRowsStack(t *testing.T) {
	head := "row_id,framework,stack,source_date,model,accelerator,num_gpus,tp,recompute,zero_stage,precision,seq_len,micro_batch\n"
	for cells, want := range map[string]string{
		"FSDP,launch=eager,2024-07": "FSDP@..2024-07 launch=eager",
		"FSDP,eager,":               `x@2: datasets: my.csv:2: stack "eager": want PART=VALUE, such as launch=eager`,
		",launch=eager,":            "launch=eager training stack not recorded: averaged over the common ones",
		"launch=eager,,":            "launch=eager training stack not recorded: averaged over the common ones",
		"FSDP,@2024,":               `x@2: datasets: my.csv:2: stack "@2024": want PART=VALUE`,
		",launch=eager fused,":      `x@2: datasets: my.csv:2: stack "launch=eager fused": "fused": want PART=VALUE`,
		"FSDP,launch=eagre,":        `x@2: datasets: my.csv:2: stack "launch=eagre": want launch to be one of eager`,
		"FSDP launch=eagre,,":       `x@2: datasets: my.csv:2: framework "FSDP launch=eagre": want launch to be one of eager`,
		"FSDP@latest,,":             `x@2: datasets: my.csv:2: framework "FSDP@latest": want a version`,
		"FSDP,,2024/07":             `FSDP source_date "2024/07" is not YYYY, YYYY-MM or YYYY-MM-DD and ignored`,
	} {
		rows, bad := readRows(t, "my.csv", head+"x,"+cells+",Llama3-8B,h100,8,2,selective,0,bf16,8192,1\n", false)
		for _, r := range rows {
			bad = append(bad, strings.TrimSpace(r.Measurement.Config.Framework+" "+strings.Join(r.Assumed, "; ")))
		}
		if len(bad) != 1 || !strings.HasPrefix(bad[0], want) {
			t.Errorf("%s: %q, want %q", cells, bad, want)
		}
	}
}

// TestRowsAdapter: an adapter is that of its column or of the notes; without either, a source of adapters is taken as
// full training, and the row is not used.
func TestRowsAdapter(t *testing.T) {
	head := "row_id,source,adapter,notes,model,accelerator,num_gpus,recompute,zero_stage,precision,seq_len,global_batch,step_time_s\n"
	for cells, want := range map[string][2]string{
		"me,,":                            {"Llama3-8B", ""},
		"me,qlora:8,":                     {"Llama3-8B (qlora:8)", ""},
		"me,,LoRA rank 16":                {"Llama3-8B (lora:16)", ""},
		"litgpt,lora:16:qkv+o+mlp,LoRA":   {"Llama3-8B (lora:16:qkv+o+mlp)", ""},
		"litgpt,,QLoRA rank 4 finetuning": {"Llama3-8B (qlora:4)", ""},
		"me,,LoRA finetune; LoRA rank 32": {"Llama3-8B (lora:32)", ""},
		"me,,task=LoRA; rank 64":          {"Llama3-8B (lora:64)", ""},
		"me,,task=DoRA packed sequences":  {"Llama3-8B (dora:16)", ""},
		"me,,LoRA finetune":               {"Llama3-8B", "only adapters were trained"},
		"me,,QLoRA finetune":              {"Llama3-8B", "only adapters were trained"},
		"litgpt,,":                        {"Llama3-8B", "only adapters were trained"},
	} {
		rows, bad := readRows(t, "my.csv", head+"x,"+cells+",Llama3-8B,h100,8,none,0,bf16,8192,8,1\n", true)
		if len(bad) != 0 || len(rows) != 1 {
			t.Errorf("%s: %v", cells, bad)
			continue
		}
		m := &rows[0].Measurement
		if got := [2]string{m.Config.Model.Name, m.Env[spec.EnvWrongConfig]}; got != want || strings.Contains(m.Doubt, "adapters") != (want[1] != "") {
			t.Errorf("%s: %q, want %q; doubt %q", cells, got, want, m.Doubt)
		}
		if said := slices.Contains(rows[0].Assumed, "rank of the adapters not recorded, taken as 16"); said != strings.Contains(cells, "packed") {
			t.Errorf("%s: rank assumed %v", cells, rows[0].Assumed)
		}
	}
	for cells, want := range map[string]string{
		"me,lora:0,":          `adapter "lora:0": spec: adapter "lora:0": the rank`,
		"me,,LoRA rank 0":     `adapter (from notes) "lora:0": spec: adapter "lora:0": the rank`,
		"me,lora:999999999,":  `adapter "lora:999999999": has a rank of 999999999, more than the width 4096 of the network, Llama3-8B`,
		"me,lora:8,":          `adapter "lora:8": needs a model with known layers`,
		"me,,task=LoRA; fast": `adapter (from notes) "lora:16": needs a model with known layers`,
	} {
		model := "Llama3-8B"
		if strings.Contains(want, "needs a model") {
			model = "mine"
		}
		_, bad := readRows(t, "my.csv", head+"x,"+cells+","+model+",h100,8,none,0,bf16,8192,8,1\n", true)
		if len(bad) != 1 || !strings.HasPrefix(bad[0], "x@2: datasets: my.csv:2: "+want) {
			t.Errorf("%s: %q, want %q", cells, bad, want)
		}
	}
}

// TestRowsRemark: a remark in brackets behind a model is ignored; an adapter or a figure there is another model.
func TestRowsRemark(t *testing.T) {
	for cells, want := range map[string]spec.Model{ // name, layers and layers of multi-token prediction
		"Llama3-8B (w/o MTP),,":            {Name: "Llama3-8B", Layers: 32},
		"Llama3-8B (lora:16),,":            {Name: "Llama3-8B (lora:16)"},
		"Llama3-8B (LoRA),,":               {Name: "Llama3-8B (LoRA)"},
		"Llama3-8B (LoRA rank 16),,":       {Name: "Llama3-8B (LoRA rank 16)"},
		"Llama3-8B [LoRA],,":               {Name: "Llama3-8B [LoRA]"},
		"Llama3-8B (4 layers of 128),,":    {Name: "Llama3-8B (4 layers of 128)"},
		"Llama3-8B (layers=4),,":           {Name: "Llama3-8B (layers=4)"},
		"DeepSeekV3,,":                     {Name: "DeepSeekV3", Layers: 61, MTPLayers: 1},
		"DeepSeekV3,,1":                    {Name: "DeepSeekV3", Layers: 61, MTPLayers: 1},
		"DeepSeekV3,,2":                    {Name: "DeepSeekV3 (mtp_layers=2)", Layers: 61, MTPLayers: 2},
		"DeepSeekV3,,0":                    {Name: "DeepSeekV3 (mtp_layers=0)", Layers: 61},
		"DeepSeekV3 (w/o MTP),,":           {Name: "DeepSeekV3 (mtp_layers=0)", Layers: 61},
		"DeepSeekV3 (without mtp),61,":     {Name: "DeepSeekV3 (mtp_layers=0)", Layers: 61},
		"DeepSeekV3 (w/o MTP),,1":          {Name: "DeepSeekV3", Layers: 61, MTPLayers: 1},
		"DeepSeekV3,8,":                    {Name: "DeepSeekV3 (layers=8)", Layers: 8, MTPLayers: 1},
		"DeepSeekV3,8,0":                   {Name: "DeepSeekV3 (mtp_layers=0,layers=8)", Layers: 8},
		"DeepSeekV3 (w/o MTP),8,":          {Name: "DeepSeekV3 (mtp_layers=0,layers=8)", Layers: 8},
		"DeepSeekV3 (more than no MTP),8,": {Name: "DeepSeekV3 (layers=8)", Layers: 8, MTPLayers: 1},
		"Qwen3-30B-A3B,,1":                 {Name: "Qwen3-30B-A3B (mtp_layers=1)", Layers: 48, MTPLayers: 1},
		"Qwen3-30B-A3B,,0":                 {Name: "Qwen3-30B-A3B", Layers: 48},
	} {
		rows, bad := readRows(t, "my.csv", "row_id,accelerator,num_gpus,model,layers,mtp_layers\nx,h100,8,"+cells+"\n", false)
		if len(bad) != 0 || len(rows) != 1 {
			t.Errorf("%s: %+v, %v", cells, rows, bad)
			continue
		}
		if m := rows[0].Measurement.Config.Model; m.Name != want.Name || m.Layers != want.Layers || m.MTPLayers != want.MTPLayers {
			t.Errorf("%s: %+v, want %+v", cells, m, want)
		}
	}
}

// A misspelt outcome column is an error, so that no measurement is lost.
func TestRowsMisspeltOutcome(t *testing.T) {
	for header, meant := range map[string]string{
		"step_time,mem_gib":          `"step_time" is not known, did you mean step_time_s?`,
		"step_time,throughput_value": `"step_time" is not known, did you mean step_time_s?`,
		"Step-Time-S,mem_gib":        `"Step-Time-S" is not known, did you mean step_time_s?`,
		"step_time_seconds,mem_gib":  `"step_time_seconds" is not known, did you mean step_time_s?`,
		"stepp_time_s,mem_gib":       `"stepp_time_s" is not known, did you mean step_time_s?`,
		"throughput,mem_gib":         `"throughput" is not known, did you mean throughput_value?`,
		"mem_gb,notes":               `"mem_gb" is not known, did you mean mem_gib?`,
		"step_time_s,throughput":     "",
		"step_time_s,step_time":      "",
		"throughput_value,step":      "", // of a run, say
		"colour,mem_gib":             "",
	} {
		text := "row_id,model,accelerator,num_gpus,global_batch,throughput_unit," + header + "\nx,Llama3-8B,h100,8,8,samples/s,1,1\n"
		n := 0
		for row, err := range PublishedRows(t.Context(), "f.csv", strings.NewReader(text), nil, true) {
			var bad *RowError
			switch n++; {
			case meant == "" && err != nil:
				t.Errorf("%s: %v", header, err)
			case meant != "" && (err == nil || errors.As(err, &bad) || !strings.HasPrefix(err.Error(), "datasets: f.csv: column "+meant)):
				t.Errorf("%s: %+v, %v, want one error about the file: %s", header, row, err, meant)
			}
		}
		if n != 1 {
			t.Errorf("%s: %d rows or errors, want 1", header, n)
		}
	}
}

func TestRowsDerived(t *testing.T) {
	head := "row_id,model,accelerator,num_gpus,num_nodes,gpus_per_node,dp,tp,pp,cp\n"
	for cells, want := range map[string]string{
		"16,2,8,,4,,":  "8+8 dp=4,tp=4,pp=1",
		",2,8,,4,,":    "8+8 dp=4,tp=4,pp=1",
		",,,2,4,2,":    "8+8 dp=2,tp=4,pp=2",
		"8,,,,,,":      "8 dp=8,tp=1,pp=1",
		"16,4,,,,,":    "4+4+4+4 dp=16,tp=1,pp=1",
		"32,,16,,2,,2": "16+16 dp=8,tp=2,pp=1,cp=2",
	} {
		rows, bad := readRows(t, "my.csv", head+"x,Llama3-8B,h100,"+cells+"\n", false)
		if len(bad) != 0 || len(rows) != 1 {
			t.Errorf("%s: %v", cells, bad)
			continue
		}
		c := rows[0].Measurement.Config
		if got := c.Shape.Devices + " " + c.Plan.String(); !strings.HasPrefix(got, want) {
			t.Errorf("%s: %s, want %s", cells, got, want)
		}
	}
}

// TestRowsShapes: columns describe any network, alone or as a variant of a known one.
func TestRowsShapes(t *testing.T) {
	known := func(name string) spec.Model {
		m, err := catalog.Model(name)
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
	llama, mixtral, maverick := known("Llama3-8B"), known("Mixtral-8x7B"), known("Llama4-Maverick")
	shallow := llama
	shallow.Name, shallow.Layers, shallow.ParamCount = "Llama3-8B (layers=4)", 4, 0
	more := mixtral
	more.Name, more.Experts, more.ParamCount, more.ActiveParamCount = "Mixtral-8x7B (experts=16)", 16, 0, 0
	half := maverick // experts in every second layer
	half.Name, half.Layers, half.DenseLayers, half.WindowLayers, half.ParamCount = "Llama4-Maverick (layers=24)", 24, 12, 18, 0
	hybrid := known("Nemotron-3-Super")
	hybrid.Name, hybrid.Layers, hybrid.SSMLayers, hybrid.MLPLayers, hybrid.ParamCount, hybrid.ActiveParamCount = "Nemotron-3-Super (layers=44)", 44, 20, 20, 0, 0
	leading := maverick
	leading.Name, leading.DenseLayers, leading.MoEEvery, leading.ParamCount = "Llama4-Maverick (dense_layers=3)", 3, 0, 0
	for _, c := range []struct {
		head, cells string
		want        spec.Model
	}{
		{"layers", "Llama4-Maverick,24", half},
		{"layers", "Nemotron-3-Super,44", hybrid},
		{"dense_layers", "Llama4-Maverick,3", leading},
		{"dense_layers,layers", "Llama4-Maverick,24,48", maverick},
		{"layers,hidden,heads,kv_heads,ffn,vocab,seq_len", "Llama3-8B,32,4096,32,8,14336,128256,8192", llama},
		{"vocab", "Llama3-8B,128512", llama}, // padded
		{"layers", "Llama3-8B,4", shallow},
		{"experts", "Mixtral-8x7B,16", more},
		{"layers,hidden,heads,kv_heads,head_dim,ffn,vocab,seq_len", "own,16,2048,32,8,64,8192,32000,4096", spec.Model{Name: "own", Kind: spec.Decoder,
			Layers: 16, Hidden: 2048, Heads: 32, KVHeads: 8, HeadDim: 64, FFN: 8192, Vocab: 32000, SeqLen: 4096}},
		{"layers,hidden,heads,ffn,q_rank,kv_rank,experts,experts_per_token,expert_ffn,shared_experts,dense_layers,vocab,seq_len", "own moe,27,2048,16,10944,1536,512,64,6,1408,2,1,102400,4096",
			spec.Model{Name: "own moe", Kind: spec.Decoder, GatedMLP: true, Layers: 27, Hidden: 2048, Heads: 16, FFN: 10944, QRank: 1536, KVRank: 512, Experts: 64, ExpertsPerToken: 6,
				ExpertFFN: 1408, SharedExperts: 2, DenseLayers: 1, Vocab: 102400, SeqLen: 4096}},
	} {
		rows, bad := readRows(t, "my.csv", "row_id,accelerator,num_gpus,model,"+c.head+"\nx,h100,8,"+c.cells+"\n", false)
		if len(bad) != 0 || len(rows) != 1 {
			t.Errorf("%s: %v", c.cells, bad)
			continue
		}
		got := rows[0].Measurement.Config.Model
		if d := cmp.Diff(c.want, got); d != "" || got.Validate() != nil {
			t.Errorf("%s: %v, -want +got\n%s", c.cells, got.Validate(), d)
		}
	}
	rows, _ := readRows(t, "my.csv", "row_id,accelerator,num_gpus,model,network_gbps\nx,h100,16,Llama3-8B,800\ny,h100,16,Llama3-8B,-1\nz,gb200,72,Llama3-8B,800\n", false)
	if len(rows) != 2 || rows[0].Measurement.Config.Link.InterBps != 1e11 {
		t.Fatalf("network of 800 Gb/s: %+v", rows)
	}
	if rack := rows[1].Measurement.Config.Link; !(rack.InterBps >= 4*rack.IntraBps) {
		t.Errorf("in a rack of one NVLink domain: %+v", rack)
	}
}

// TestRowsConfig: a model may be a config.json beside the table.
func TestRowsConfig(t *testing.T) {
	dir := fstest.MapFS{
		"own.json":   {Data: []byte(`{"model_type":"llama","architectures":["LlamaForCausalLM"],"hidden_size":1024,"num_hidden_layers":8,"num_attention_heads":16,"num_key_value_heads":4,"intermediate_size":2816,"vocab_size":32000,"max_position_embeddings":2048}`)},
		"other.json": {Data: []byte(`{`)},
	}
	head := "row_id,accelerator,num_gpus,model,params_b,config,layers\n"
	for cells, want := range map[string]string{
		"own.json,":    "",
		"./own.json,8": "",
		"own.json,9":   `layers "9": contradicts own.json`,
		"none.json,":   `config "none.json": is not a file in the table's folder`,
		"../own.json,": `config "../own.json": is not a file in the table's folder`,
		"other.json,":  `config "other.json": `,
	} {
		for row, err := range PublishedRows(t.Context(), "my.csv", strings.NewReader(head+"x,h100,8,mine,0.2,"+cells+"\n"), dir, false) {
			switch {
			case want != "" && (err == nil || !strings.Contains(err.Error(), want)):
				t.Errorf("%s: error %v, want %q", cells, err, want)
			case want == "" && err != nil:
				t.Errorf("%s: %v", cells, err)
			case want == "":
				if m := row.Measurement.Config.Model; m.Name != "mine" || m.Layers != 8 || m.KVHeads != 4 || m.SeqLen != 2048 || !m.GatedMLP || m.ParamCount != 2e8 {
					t.Errorf("%s: %+v", cells, m)
				}
			}
		}
	}
	dir["published/mine.csv"] = &fstest.MapFile{Data: []byte("row_id,accelerator,num_gpus,model,config,global_batch,step_time_s\nx,h100,8,mine,own.json,8,1\n")}
	dir["published/own.json"] = dir["own.json"]
	stored, bad, err := ReadAll(t.Context(), "published", dir)
	if err != nil || len(bad) != 0 || len(stored) != 1 || stored[0].Config.Model.Layers != 8 {
		t.Errorf("imported %+v, %v, %v", stored, bad, err)
	}
	if _, bad := readRows(t, "standard input", head+"x,h100,8,mine,0.2,own.json,\n", false); len(bad) != 1 || !strings.Contains(bad[0], "give the model's columns instead") {
		t.Errorf("without a folder: %v", bad)
	}
}

// TestRowsExperts: expert parallelism without experts is an error, not a dense network.
func TestRowsExperts(t *testing.T) {
	head := "row_id,accelerator,num_gpus,model,params_b,ep\n"
	for cells, want := range map[string]string{
		"Mixtral-8x7B,,8": "",
		"Llama3-8B,,1":    "",
		"mine,,8":         "", // of no known size
		"Llama3-8B,,8":    `x@2: datasets: my.csv:2: ep "8": needs a model with experts, and Llama3-8B has none`,
		"mine,7,8":        `x@2: datasets: my.csv:2: ep "8": needs a model with experts, and mine has none`,
		"Mixtral-8x7B,,3": `x@2: datasets: my.csv:2: ep "3": does not divide the 8 experts of Mixtral-8x7B`,
	} {
		_, bad := readRows(t, "my.csv", head+"x,h100,8,"+cells+"\n", false)
		if got := strings.Join(bad, ""); !strings.HasPrefix(got, want) || want == "" && got != "" {
			t.Errorf("%s: %q, want %q", cells, got, want)
		}
	}
}

func TestRowsFaults(t *testing.T) {
	head := "row_id,model,accelerator,num_gpus,micro_batch\n"
	for text, want := range map[string]string{
		head + "x,Llama3-8B,h100,8,1\nx,Llama3-8B,h100,8,1\n": `x@3: datasets: f.csv:3: row_id "x": is the row of line 2 already`,
		head + ",Llama3-8B,h100,8,1\n":                        `@2: datasets: f.csv:2: row_id "": is missing`,
		head + "x,Llama3-8B,h100,,1\n":                        `x@2: datasets: f.csv:2: num_gpus "": is not a number of devices`,
		head + "x,Llama3-8B,h100,8\n":                         `@2: datasets: f.csv:2: has 4 cells, the header 5`,
		head + "x,Llama3-8B,h100,8,many\n":                    `x@2: datasets: f.csv:2: micro_batch "many": is not a whole number`,
	} {
		if _, bad := readRows(t, "f.csv", text, false); len(bad) != 1 || !strings.HasPrefix(bad[0], want) {
			t.Errorf("%q:\n%q, want %q", text, bad, want)
		}
	}
	for text, want := range map[string]string{
		"":                    "f.csv: the file is empty",
		"row_id,model\nx,y\n": "no column accelerator",
		"id,model\nx,y\n":     "no column row_id, accelerator, the header is id,model",
		head + "x,y,z,1,1\n":  "no column step_time_s (seconds), throughput_value or mem_gib (GiB)",
		"a,a\n":               `the header has column "a" twice`,
		"row_id,model,accelerator,num_gpus,step_time_s\nx,Llama3-8B,h100,8,\n": `step_time_s "": neither a step time nor memory`,
		"\"row_id\nx,y,z,1,1\n": "header",
	} {
		var got error
		for _, err := range PublishedRows(t.Context(), "f.csv", strings.NewReader(text), nil, true) {
			got = err
		}
		if got == nil || !strings.Contains(got.Error(), want) {
			t.Errorf("%q: %v, want %q", text, got, want)
		}
	}
}

func BenchmarkPublishedRows(b *testing.B) {
	body := strings.Repeat(rowsTable[strings.Index(rowsTable, "\n")+1:], 1)
	var text strings.Builder
	text.WriteString(rowsTable[:strings.Index(rowsTable, "\n")+1])
	for i := range 1000 {
		for _, line := range strings.Split(strings.TrimSpace(body), "\n") {
			fmt.Fprintf(&text, "%d-%s\n", i, line)
		}
	}
	b.ReportAllocs()
	for b.Loop() {
		n := 0
		for _, err := range PublishedRows(b.Context(), "rows.csv", strings.NewReader(text.String()), nil, false) {
			if err == nil {
				n++
			}
		}
		if n != 6000 {
			b.Fatal(n)
		}
	}
	b.ReportMetric(6000*float64(b.N)/b.Elapsed().Seconds(), "rows/s")
}
