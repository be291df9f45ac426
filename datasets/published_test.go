package datasets

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/perfmodel/spec/spectest"
)

const publishedHeader = "row_id,source,model,params_b,layers,hidden,heads,seq_len,vocab,accelerator,num_nodes,gpus_per_node,num_gpus," +
	"dp,tp,pp,cp,ep,vpp,zero_stage,offload,recompute,micro_batch,global_batch,grad_accum,precision,schedule,shard,throughput_value,throughput_unit," +
	"step_time_s,mfu,tflops_per_gpu,mem_gib,status,notes,source_path,source_commit,source_date,measured_at\n"

// publishedCSV writes invented rows: "column=value ..." over the defaults of a
// sound row.
func publishedCSV(rows ...string) string {
	cols := strings.Split(strings.TrimSpace(publishedHeader), ",")
	var b strings.Builder
	b.WriteString(publishedHeader)
	for i, r := range rows {
		cells := map[string]string{"row_id": "r" + string(rune('1'+i)), "model": "LLAMA3_8B", "accelerator": "H100-80GB-SXM",
			"num_nodes": "2", "gpus_per_node": "8", "num_gpus": "16", "status": "ok"}
		for _, kv := range strings.Split(r, " ") {
			k, v, _ := strings.Cut(kv, "=")
			cells[k] = strings.ReplaceAll(v, "_", " ")
			if k == "model" || k == "status" {
				cells[k] = v
			}
		}
		for j, c := range cols {
			if j > 0 {
				b.WriteByte(',')
			}
			b.WriteString(`"` + cells[c] + `"`)
		}
		b.WriteByte('\n')
	}
	return b.String()
}

func TestPublishedRows(t *testing.T) {
	type want struct {
		row, model, plan string
		step, gib        float64
		outcome          spec.Outcome
		doubt            string
	}
	plan := "dp=4 tp=4 pp=1 cp=1 micro_batch=2 global_batch=32 grad_accum=4 precision=bf16 seq_len=8192 "
	const tokens = "tokens per sample not recorded, taken as 8192"
	const planText = "dp=4,tp=4,pp=1,mb=2,ga=4,precision=bf16"
	cases := []want{
		{plan + "step_time_s=2.5 mem_gib=64", "Llama3-8B", planText, 2.5, 64, spec.OK, ""},
		{plan + "throughput_value=1024 throughput_unit=tokens/s/gpu", "Llama3-8B", planText, 16, 0, spec.OK, ""},
		{plan + "throughput_value=8192 throughput_unit=tokens/s", "Llama3-8B", planText, 32, 0, spec.OK, ""},
		{plan + "throughput_value=4 throughput_unit=samples/s", "Llama3-8B", planText, 8, 0, spec.OK, ""},
		{plan + "throughput_value=4 throughput_unit=as_printed_(README)", "Llama3-8B", planText, 8, 0, spec.OK, "unit not printed, read as sequences/s"},
		{plan + "status=suspect step_time_s=2.5", "Llama3-8B", planText, 2.5, 0, spec.OK, "marked suspect in its table"},
		{plan + "status=memory_only mem_gib=30.5", "Llama3-8B", planText, 0, 30.5, spec.OK, ""},
		{plan + "status=memory_model mem_gib=30.5", "Llama3-8B", planText, 0, 30.5, spec.OK, "analytical value, not measured"},
		{plan + "status=oom", "Llama3-8B", planText, 0, 0, spec.OOM, ""},
		{"tp=4 status=oom", "Llama3-8B", "dp=4,tp=4,pp=1,mb=1,ga=1", 0, 0, spec.OOM, "the batch that did not fit is not recorded; " + tokens},
		{plan + "dp=2 step_time_s=2.5", "Llama3-8B", "dp=2,tp=4,pp=1,mb=2,ga=8,precision=bf16", 2.5, 0, spec.OK,
			"dp x tp x pp x cp = 8, the row has 16 devices; dp 2 x micro-batch 2 x accumulation 4 is not the global batch 32"},
		{"global_batch=64 pp=2 step_time_s=1", "Llama3-8B", "dp=8,tp=1,pp=2,mb=1,ga=8", 1, 0, spec.OK, tokens + "; micro-batch not recorded, taken as 1"},
		{"micro_batch=4 step_time_s=1", "Llama3-8B", "dp=16,tp=1,pp=1,mb=4,ga=1", 1, 0, spec.OK, tokens},
		{plan + "step_time_s=2.5 notes=task=LoRA", "Llama3-8B (lora:16)", planText, 2.5, 0, spec.OK, ""},
		{plan + "step_time_s=2.5 throughput_value=12 throughput_unit=samples/s", "Llama3-8B", planText, 2.5, 0, spec.OK, ""},
		{plan + "step_time_s=2500 throughput_value=12.8 throughput_unit=samples/s", "Llama3-8B", planText, 2500, 0, spec.OK, "a step time of 2500 s, but the throughput makes it 2.5 s"},
		{plan + "step_time_s=0.001", "Llama3-8B", planText, 0.001, 0, spec.OK, "905 times the devices' peak rate"},
		{plan + "layers=40 hidden=4096 step_time_s=2.5", "LLAMA3_8B (layers=40)", planText, 2.5, 0, spec.OK, ""},
		{plan + "layers=40 hidden=5120 step_time_s=2.5", "LLAMA3_8B (40 layers of 5120)", planText, 2.5, 0, spec.OK, ""},
		{plan + "model=NewNet params_b=3.5 step_time_s=2.5", "NewNet", planText, 2.5, 0, spec.OK, ""},
		{plan + "recompute=full zero_stage=3 offload=optimizer+params vpp=2 precision=mxfp8 step_time_s=2.5", "Llama3-8B",
			"dp=4,tp=4,pp=1,vp=2,mb=2,ga=4,zero=3,offload=params,recompute=full,precision=mxfp8", 2.5, 0, spec.OK, ""},
		{"global_batch=64 pp=2 dp=8 micro_batch=1 schedule=zb-h1 zero_stage=1 shard=4 precision=bf16 recompute=none seq_len=8192 step_time_s=10", "Llama3-8B",
			"dp=8,tp=1,pp=2,schedule=zb-h1,mb=1,ga=8,zero=1,shard=4,precision=bf16", 10, 0, spec.OK, ""},
		{"model=Mixtral-8x7B dp=1 tp=2 pp=4 cp=2 ep=8 global_batch=8 micro_batch=1 zero_stage=0 recompute=none precision=bf16 seq_len=8192 step_time_s=10", "Mixtral-8x7B",
			"dp=1,tp=2,pp=4,cp=2,ep=8,mb=1,ga=8,precision=bf16", 10, 0, spec.OK, "ep = 8 does not divide dp x cp x tp = 4"},
		{plan + "zero_stage=3 shard=4 schedule=1F1B step_time_s=2.5", "Llama3-8B", "dp=4,tp=4,pp=1,mb=2,ga=4,zero=3,precision=bf16", 2.5, 0, spec.OK, ""},
		{"micro_batch=4096 grad_accum=128 seq_len=512 throughput_value=16 throughput_unit=samples/s", "Llama3-8B",
			"dp=16,tp=1,pp=1,mb=32,ga=128", 4096, 0, spec.OK, ""},
		{plan + "step_time_s=2.5 notes=LoRA_finetune", "Llama3-8B", planText, 2.5, 0, spec.OK, "only adapters were trained"},
	}
	var rows []string
	for _, c := range cases {
		rows = append(rows, c.row)
	}
	ms, bad := collect(t, "published", fstest.MapFS{"some_table.csv": file(publishedCSV(rows...))})
	if len(bad) != 0 || len(ms) != len(cases) {
		t.Fatalf("%d rows and faults %v, want %d and none", len(ms), bad, len(cases))
	}
	for i, c := range cases {
		m := ms[i]
		got := want{c.row, m.Config.Model.Name, m.Config.Plan.String(), m.MedianStepSec(), m.PeakBytes / (1 << 30), m.Outcome, m.Doubt}
		if d := cmp.Diff(c, got, cmp.AllowUnexported(want{}), cmp.Comparer(near)); d != "" {
			t.Errorf("row %d (-want +got):\n%s", i+1, d)
		}
	}
	if m := ms[0]; m.Source != "published/some_table" || m.Origin != "r1" || m.Config.Shape.Devices != "8+8" || m.Config.Link.InterBps != 400e9 {
		t.Errorf("row 1: %+v", m)
	}
	if m := ms[19]; m.Config.Model.ParamCount != 3.5e9 || m.Config.Model.Kind != spec.Opaque {
		t.Errorf("a model the catalog lacks: %+v", m.Config.Model)
	}
	if m := ms[12]; !strings.Contains(m.Env["unrecorded"], "recompute") || !strings.Contains(m.Env["unrecorded"], "seq_len") {
		t.Errorf("blank columns: %q", m.Env["unrecorded"])
	}
}

// TestPublishedTime: a row may say when it was measured, by day or exactly.
func TestPublishedTime(t *testing.T) {
	rows := publishedCSV("micro_batch=1 step_time_s=1 measured_at=2026-05-03", "micro_batch=1 status=oom measured_at=2026-05-03T16:30:00+02:00", "micro_batch=1 step_time_s=1")
	ms, bad := collect(t, "published", fstest.MapFS{"a.csv": file(rows)})
	if len(ms) != 3 || len(bad) != 0 || ms[0].At != time.Date(2026, 5, 3, 0, 0, 0, 0, time.UTC) || ms[1].At != time.Date(2026, 5, 3, 14, 30, 0, 0, time.UTC) || !ms[2].At.IsZero() {
		t.Errorf("%+v, faults %v", ms, bad)
	}
}

// A bad cell makes one row an error. Rows without a step time have their own error.
func TestPublishedBadRows(t *testing.T) {
	cases := map[string]string{
		"micro_batch=x step_time_s=1":                                  `micro_batch "x": is not a whole number`,
		"micro_batch=1.5 step_time_s=1":                                `micro_batch "1.5": is not a whole number`,
		"num_gpus=0 step_time_s=1":                                     `num_gpus "0": is not a number of devices`,
		"status=great step_time_s=1":                                   `status "great": is not one of`,
		"micro_batch=1 step_time_s=0":                                  `step_time_s "0": is not positive`,
		"micro_batch=1 step_time_s=-1":                                 `step_time_s "-1": gives a step of -1 s`,
		"micro_batch=1 throughput_value=9 throughput_unit=mels/s":      `throughput_unit "mels/s": neither a step time nor memory can be derived`,
		"micro_batch=1 throughput_value=9 throughput_unit=tokens/s":    `sequence length is not recorded`,
		"throughput_value=9 throughput_unit=samples/s":                 `the batch is not recorded`,
		"micro_batch=1 throughput_value=-9 throughput_unit=samples/s":  `throughput_value "-9": is negative`,
		"micro_batch=1 step_time_s=1 precision=int3":                   `precision "int3": is not a known format`,
		"micro_batch=1 step_time_s=1 recompute=half":                   `recompute "half"`,
		"micro_batch=1 step_time_s=1 zero_stage=7":                     `zero_stage "7"`,
		"micro_batch=1 step_time_s=1 schedule=dualpipe pp=2":           `schedule "dualpipe": is not one of [1f1b gpipe`,
		"micro_batch=1 step_time_s=1 zero_stage=3 shard=3":             `shard "3": does not divide dp x cp = 16`,
		"micro_batch=1 step_time_s=1 shard=8":                          `shard "8": does not divide`,
		"micro_batch=128128 seq_len=128 step_time_s=1":                 `micro_batch "128128": is more sequences than a device holds`,
		"micro_batch=1 step_time_s=1 row_id= model=":                   `row_id "": is missing`,
		"micro_batch=1 step_time_s=1 mem_gib=-3":                       `mem_gib "-3": is negative`,
		"micro_batch=1 throughput_value=1e-300 throughput_unit=img/s":  `gives a step of`,
		"micro_batch=1 throughput_value=0 throughput_unit=samples/s":   `no throughput is recorded`,
		"micro_batch=1 step_time_s=1 measured_at=May":                  `measured_at "May": is no time, want one such as 2026-05-03`,
		"micro_batch=999999999999 step_time_s=1":                       `micro_batch "999999999999"`,
		"dp=1048576 tp=1048576 pp=1048576 micro_batch=1 step_time_s=x": `step_time_s "x"`,
	}
	for r, want := range cases {
		ms, bad := collect(t, "published", fstest.MapFS{"a.csv": file(publishedCSV(r, "micro_batch=1 step_time_s=1"))})
		if len(ms) != 1 || len(bad) != 1 || !strings.Contains(bad[0].Error(), "a.csv:2: ") || !strings.Contains(bad[0].Error(), want) {
			t.Errorf("%s:\n%d rows, faults %v\nwant one row and %q", r, len(ms), bad, want)
		}
	}
}

// The batch column of some tables counts per host, not per device.
func TestPublishedPerHostBatch(t *testing.T) {
	ms, bad := collect(t, "published", fstest.MapFS{"lambda_dl_benchmark.csv": file(publishedCSV(
		"model=resnet50 accelerator=Lab_8x_H100_80GB_SXM5 dp=16 micro_batch=640 throughput_value=64 throughput_unit=img/s"))})
	if len(bad) != 0 || len(ms) != 1 {
		t.Fatal(ms, bad)
	}
	c := ms[0].Config
	if c.Plan.MicroBatch != 40 || ms[0].MedianStepSec() != 10 || c.Accelerator.Name != "H100-80GB-SXM" || c.Model.Name != "ResNet-50" {
		t.Errorf("%s on %s: %s, step %g s", c.Model.Name, c.Accelerator.Name, c.Plan, ms[0].MedianStepSec())
	}
}

// Every row of the published tables is a measurement or an error with a reason.
func TestPublishedTables(t *testing.T) {
	ms, bad := collect(t, "published", os.DirFS(filepath.Join(spectest.Shared(t), "data", "published")))
	if len(ms)+len(bad) != 2952 {
		t.Errorf("%d measurements and %d left out, want 2952 rows", len(ms), len(bad))
	}
	rows, left := map[string]int{}, map[string]int{}
	for _, m := range ms {
		rows[strings.TrimPrefix(m.Source, "published/")]++
	}
	unreadable := 0
	for _, e := range bad {
		left[strings.TrimSuffix(e.File, ".csv")]++
		if !errors.Is(e, ErrNotMeasurable) {
			unreadable++
		}
	}
	want := map[string]int{"bigscience": 225, "fms_fsdp": 8, "internevo": 70, "korthikanti_2205_05198": 16, "lambda_dl_benchmark": 530,
		"litgpt": 47, "megatron_bridge": 292, "megatron_sc21": 10, "nemo_2407": 18, "nemo_megatron_launcher": 8, "nvidia_dle": 542, "torchtitan": 32}
	if d := cmp.Diff(want, rows); d != "" {
		t.Errorf("measurements (-want +got):\n%s", d)
	}
	if d := cmp.Diff(map[string]int{"lambda_dl_benchmark": 450, "nemo_megatron_launcher": 28, "nvidia_dle": 676}, left); d != "" {
		t.Errorf("left out (-want +got):\n%s", d)
	}
	if unreadable != 10 {
		t.Errorf("%d rows with an unreadable value, want the 10 of batch 128128", unreadable)
	}
}

// A table needs only the required columns. Other files are reported and left out;
// it is an error if no table is left.
func TestPublishedOtherTables(t *testing.T) {
	own := file("row_id,model,accelerator,num_gpus,micro_batch,step_time_s\nx,Llama3-8B,h100,8,1,2\n")
	ms, bad := collect(t, "published", fstest.MapFS{"mine.csv": own, "a.csv": file("id,when\n1,2\n"), "b.csv": file("row_id,model,accelerator\nx,y,z\n"), "empty.csv": file("")})
	if len(ms) != 1 || ms[0].MedianStepSec() != 2 || ms[0].Config.Shape.Devices != "8" {
		t.Errorf("%d rows: %+v", len(ms), ms)
	}
	want := []string{
		"datasets: a.csv: no column row_id, model, accelerator, the header is id,when",
		"datasets: b.csv: nothing measured: no column step_time_s (seconds), throughput_value or mem_gib (GiB)",
		"datasets: empty.csv: the file is empty",
	}
	var got []string
	for _, e := range bad {
		got = append(got, e.Error())
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("left out (-want +got):\n%s", d)
	}
	imp, err := Lookup("published")
	if err != nil {
		t.Fatal(err)
	}
	if n, err := count(imp, fstest.MapFS{"mine.csv": own, "a.csv": file("id,when\n1,2\n")}); n != 2 || err != nil {
		t.Errorf("counts %d, %v, want 2", n, err)
	}
	none := fstest.MapFS{"a.csv": file("id,when\n1,2\n"), "empty.csv": file("")}
	if _, err := imp.Open(none); err == nil || !strings.Contains(err.Error(), "a.csv: no column row_id, model, accelerator") || !strings.Contains(err.Error(), "empty.csv: the file is empty") {
		t.Errorf("no table: %v", err)
	}
	for _, err := range imp.Import(t.Context(), none) {
		if err == nil {
			t.Error("a row of no table")
		}
	}
}

// Every accelerator of the tables is in the catalog.
func TestPublishedAcceleratorsKnown(t *testing.T) {
	ms, _ := collect(t, "published", os.DirFS(filepath.Join(spectest.Shared(t), "data", "published")))
	for _, m := range ms {
		if m.Config.Accelerator.MemBps == 0 || m.Config.Link.InterBps == 0 {
			t.Errorf("%s: accelerator %q is unknown", m.Origin, m.Env["accelerator"])
		}
	}
}

func FuzzPublished(f *testing.F) {
	f.Add(publishedCSV("micro_batch=1 step_time_s=1"))
	f.Add(publishedCSV("status=oom", "dp=2 tp=2 pp=4 micro_batch=8 global_batch=64 grad_accum=3 seq_len=1e3 throughput_value=5 throughput_unit=tokens/s"))
	f.Add(publishedHeader + "\"\n,,,\n")
	f.Fuzz(func(t *testing.T, s string) {
		fuzzImport(t, "published", fstest.MapFS{"a.csv": file(s)})
	})
}
