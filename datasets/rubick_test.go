package datasets

import (
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/perfmodel/spec/spectest"
)

func TestRubickRows(t *testing.T) {
	const head = "exec_plan,placement,iter_time,forward,overlap_sync,optimize\n"
	root := fstest.MapFS{
		"simulator/traces/bert/placements.csv":   file("\ufeff" + head + "zero-offload,13,0.5,100,300,20\ngc,1,0.9,0,0,0"),
		"simulator/traces/llama7/placements.csv": file(head + "zero-offload,1,50,3,46,0.002\n242,88,0.7,0,350,25\n"),
		"simulator/traces/llama7b_bsz16/placements.csv": file("exec_plan,placement,cpu_threads,iter_time\n" +
			"111,1,4,0\nzero-offload+gc,8888,2,0\n"),
		"simulator/traces/t5_3B/placements.csv": file("exec_plan,placement,iter_time\ntp+ga,3,0.9\ntp+ga,2,3.5\n"),
		"README.md":                             file("not a table"),
	}
	ms, bad := collect(t, "rubick", root)
	if len(bad) != 0 || len(ms) != 8 {
		t.Fatalf("%d rows and faults %v, want 8 and none", len(ms), bad)
	}
	type got struct {
		Plan    string
		Shape   spec.Shape
		Outcome spec.Outcome
		Reason  string
		Phases  map[string]float64
		Doubt   bool
		Origin  string
	}
	want := []got{
		{"dp=4,tp=1,pp=1,mb=8,ga=1,zero=2,offload=optimizer,precision=tf32", spec.Shape{Devices: "3+1"}, spec.OK, "",
			map[string]float64{"forward": 0.1, "backward_sync": 0.3, "optimizer": 0.02}, false, "bert/placements.csv:2"},
		{"dp=1,tp=1,pp=1,mb=32,ga=1,recompute=full,precision=tf32", spec.Shape{Devices: "1"}, spec.OK, "", nil, false, "bert/placements.csv:3"},
		{"dp=1,tp=1,pp=1,mb=8,ga=1,zero=2,offload=optimizer,precision=tf32", spec.Shape{Devices: "1"}, spec.OK, "",
			map[string]float64{"forward": 3, "backward_sync": 46, "optimizer": 0.002}, false, "llama7/placements.csv:2"},
		{"dp=2,tp=4,pp=2,mb=4,ga=1,precision=tf32", spec.Shape{Devices: "8+8"}, spec.OK, "",
			map[string]float64{"backward_sync": 0.35, "optimizer": 0.025}, false, "llama7/placements.csv:3"},
		{"dp=1,tp=1,pp=1,mb=16,ga=1,precision=tf32", spec.Shape{Devices: "1", CPUs: 4}, spec.OOM,
			"iteration time 0: the run failed, out of memory", nil, false, "llama7b_bsz16/placements.csv:2"},
		{"dp=32,tp=1,pp=1,mb=1,ga=1,zero=2,offload=optimizer,recompute=full,precision=tf32", spec.Shape{Devices: "8+8+8+8", CPUs: 64}, spec.Failed,
			"global batch 16 does not divide over 32 replicas", nil, false, "llama7b_bsz16/placements.csv:3"},
		{"dp=1,tp=3,pp=1,mb=4,ga=1,precision=tf32", spec.Shape{Devices: "3"}, spec.OK, "", nil, false, "t5_3B/placements.csv:2"},
		{"dp=1,tp=2,pp=1,mb=4,ga=1,precision=tf32", spec.Shape{Devices: "2"}, spec.OK, "", nil, true, "t5_3B/placements.csv:3"},
	}
	for i, m := range ms {
		g := got{m.Config.Plan.String(), m.Config.Shape, m.Outcome, m.Reason, m.PhaseSec, m.Doubt != "",
			strings.TrimPrefix(m.Origin, "simulator/traces/")}
		if d := cmp.Diff(want[i], g, cmp.Comparer(near)); d != "" {
			t.Errorf("row %d (-want +got):\n%s", i, d)
		}
	}
	if m := ms[6]; m.DoubtReason() != "" || m.Config.Check() == nil || !strings.Contains(m.Config.Check().Error(), "tp=3 does not divide 32 heads") {
		t.Errorf("t5_3B on three devices: doubt %q, rule %v, want only the broken rule", m.DoubtReason(), m.Config.Check())
	}
	if m := ms[0]; m.Config.Accelerator.Name != "A800-80GB" || m.Config.Link.InterBps != 100e9 || m.Env["placement"] != "13" ||
		m.Config.Framework != "DeepSpeed" || m.StepSec[0] != 0.5 {
		t.Errorf("bert row: %+v", m)
	}
}

// Invalid rows are reported with file, line and value, and reading continues.
func TestRubickBadRows(t *testing.T) {
	root := fstest.MapFS{
		"gpt2/placements.csv": file("exec_plan,placement,iter_time\n" +
			"151,5,abc\n" + "151,4,1.0\n" + "ga,1x,1\n" + "warp,1,1\n" + "ga,1,-1\n" + "ga,1\n" + "ga,0,1\n" + "ga,\"1,1\n" + "ga,2,NaN\n"),
		"vit/placements.csv":   file("exec_plan,placement,iter_time\nga,1,0.1\n"),
		"other/placements.csv": file("exec_plan,placement,iter_time\nga,1,0.1\n"),
	}
	imp, _ := Lookup("rubick")
	var faults []string
	rows := 0
	for _, err := range imp.Import(context.Background(), root) {
		if err != nil {
			faults = append(faults, err.Error())
			continue
		}
		rows++
	}
	want := []string{
		`datasets: gpt2/placements.csv:2: iter_time "abc": is not a finite number`,
		`datasets: gpt2/placements.csv:3: exec_plan "151": is pp=1 x tp=5 x dp=1 = 5 devices, the row has 4`,
		`datasets: gpt2/placements.csv:4: placement "1x": is not one digit per node`,
		`datasets: gpt2/placements.csv:5: exec_plan "warp": is not a plan, want ga, gc, zero-dp, zero-offload, zero-offload+gc, tp+ga or three digits`,
		`datasets: gpt2/placements.csv:6: iter_time "-1": is negative`,
		`datasets: gpt2/placements.csv:7: has 2 cells, the header 3`,
		`datasets: gpt2/placements.csv:8: placement "0": has a node with no devices`,
		`datasets: gpt2/placements.csv:9: extraneous or missing " in quoted-field`,
		`datasets: gpt2/placements.csv:10: iter_time "NaN": is not a finite number`,
		`datasets: other/placements.csv: folder "other": "other" is not a model of the data set`,
	}
	if d := cmp.Diff(want, faults); d != "" {
		t.Errorf("faults (-want +got):\n%s", d)
	}
	if rows != 1 {
		t.Errorf("%d good rows, want vit's", rows)
	}
}

func TestRubickNothingThere(t *testing.T) {
	imp, _ := Lookup("rubick")
	for _, err := range imp.Import(context.Background(), fstest.MapFS{"a.txt": file("")}) {
		if err == nil || !strings.Contains(err.Error(), "simulator/traces/*/placements.csv") {
			t.Errorf("error %v, want the files looked for", err)
		}
	}
}

// The published data has 539 rows; stated rules leave some out.
func TestRubickPublished(t *testing.T) {
	ms, bad := collect(t, "rubick", os.DirFS(filepath.Join(spectest.Shared(t), "data", "rubick")))
	if len(bad) != 0 {
		t.Fatalf("faults: %v", bad)
	}
	rows, doubts, broken := map[string]int{}, map[string]int{}, map[string]int{}
	outcomes := map[spec.Outcome]int{}
	for _, m := range ms {
		name := m.Config.Model.Name
		rows[name]++
		outcomes[m.Outcome]++
		if m.Doubt != "" {
			doubts[name]++
		}
		if err := m.Config.Check(); err != nil {
			broken[name]++
		}
		if b := m.Config.Plan.GlobalBatch(); m.Outcome == spec.OK && b != rubickSources[name].batch {
			t.Errorf("%s: global batch %d", m.Origin, b)
		}
		if sum := m.PhaseSec["forward"] + m.PhaseSec["backward_sync"] + m.PhaseSec["optimizer"]; m.PhaseSec["forward"] > 0 &&
			name != "vit" && name != "roberta" && m.Config.Plan.TP*m.Config.Plan.PP == 1 && (sum < 0.69*m.StepSec[0] || sum > 1.05*m.StepSec[0]) {
			t.Errorf("%s: sub-timers sum to %g s of %g s: a unit is wrong", m.Origin, sum, m.StepSec[0])
		}
	}
	wantRows := map[string]int{"vit": 95, "roberta": 120, "bert": 72, "t5": 92, "gpt2": 74, "llama7": 48,
		"llama30": 11, "llama7b_bsz16": 21, "t5_3B": 6}
	if d := cmp.Diff(wantRows, rows); d != "" {
		t.Errorf("rows (-want +got):\n%s", d)
	}
	if d := cmp.Diff(map[string]int{"vit": 67, "roberta": 3, "t5_3B": 1}, doubts); d != "" {
		t.Errorf("doubted rows (-want +got):\n%s", d)
	}
	if d := cmp.Diff(map[spec.Outcome]int{spec.OK: 535, spec.OOM: 3, spec.Failed: 1}, outcomes); d != "" {
		t.Errorf("outcomes (-want +got):\n%s", d)
	}
	t.Logf("plans that break a rule: %v", broken)
}

func FuzzRubick(f *testing.F) {
	f.Add("bert", "exec_plan,placement,iter_time,forward\nga,11,0.5,100\n")
	f.Add("llama7", "\ufeffexec_plan,placement,iter_time\n242,88,0.7\nzero-offload,1,0\n")
	f.Add("vit", "exec_plan,placement,iter_time,cpu_threads\n\"ga,1,1\n,,,\n999,9,1e999,1e30\n")
	f.Fuzz(func(t *testing.T, name, table string) {
		if !fs.ValidPath(name) || strings.ContainsAny(name, "/\\*?[") {
			return
		}
		fuzzImport(t, "rubick", fstest.MapFS{"simulator/traces/" + name + "/placements.csv": file(table)})
	})
}

// fuzzImport checks that an import ends, and that every measurement can be stored.
func fuzzImport(t *testing.T, name string, root fs.FS) {
	imp, err := Lookup(name)
	if err != nil {
		t.Fatal(err)
	}
	for m, err := range imp.Import(context.Background(), root) {
		if err != nil {
			continue
		}
		if err := m.Validate(); err != nil {
			t.Errorf("%s: %v", m.Origin, err)
		}
	}
	_, _ = count(imp, root)
}
