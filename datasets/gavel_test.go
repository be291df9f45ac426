package datasets

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/perfmodel/spec/spectest"
)

const gavelCut = `{
  "v100": {
    "('ResNet-50 (batch size 64)', 4)": {
      "null": 8.0,
      "('LM (batch size 5)', 4)": [3.0, 2.0]
    },
    "('A3C', 1)": {"null": 0.5}
  },
  "k80_unconsolidated": {"('ResNet-50 (batch size 64)', 4)": {"null": 2}},
  "k80": {
    "('ResNet-50 (batch size 128)', 2)": {"null": 0.0},
    "ResNet-50": {"null": 1},
    "('LM (batch size 5)', 1)": {"null": "fast"},
    "('LM (batch size 10)', 1)": {"null": -3}
  },
  "tpu9": {"('LM (batch size 5)', 1)": {"null": 1}}
}`

func TestGavelRows(t *testing.T) {
	root := fstest.MapFS{"throughputs/some_throughputs.json": file(gavelCut)}
	ms, bad := collect(t, "gavel", root)
	type got struct {
		Model, Acc, Shape string
		Batch             int
		Outcome           spec.Outcome
		Step              float64
	}
	var rows []got
	for _, m := range ms {
		rows = append(rows, got{m.Config.Model.Name, m.Config.Accelerator.Name, m.Config.Shape.Devices,
			m.Config.Plan.GlobalBatch(), m.Outcome, m.MedianStepSec()})
	}
	want := []got{
		{"ResNet-50 (batch size 64)", "V100-SXM2-16GB", "4", 256, spec.OK, 0.5}, // 8 steps/s over 4 devices: 2 of all
		{"A3C", "V100-SXM2-16GB", "1", 1, spec.OK, 2},
		{"ResNet-50 (batch size 64)", "K80-12GB", "1+1+1+1", 256, spec.OK, 2},
		{"ResNet-50 (batch size 128)", "K80-12GB", "2", 256, spec.OOM, 0},
	}
	if d := cmp.Diff(want, rows); d != "" {
		t.Errorf("rows (-want +got):\n%s", d)
	}
	var faults []string
	for _, e := range bad {
		faults = append(faults, strings.TrimPrefix(e.Error(), "datasets: throughputs/some_throughputs.json:"))
	}
	wantFaults := []string{
		`12: job "ResNet-50": is not a pair of job type and device count`,
		`13: throughput "\"fast\"": is not a number`,
		`14: throughput "-3": is negative or too small`,
		`16: worker type "tpu9": catalog: unknown accelerator "tpu9", nearest: `,
	}
	for i, w := range wantFaults {
		if len(faults) != len(wantFaults) || !strings.HasPrefix(faults[i], w) {
			t.Fatalf("faults %q, want %q", faults, wantFaults)
		}
	}
}

func TestGavelBrokenJSON(t *testing.T) {
	imp, _ := Lookup("gavel")
	for _, s := range []string{"", "[]", `{"v100": 3}`, gavelCut[:120], `{"v100":{"('A3C', 1)":{"null":1}`} {
		var last error
		for _, err := range imp.Import(context.Background(), fstest.MapFS{"x_throughputs.json": file(s)}) {
			last = err
		}
		if last == nil || !strings.Contains(last.Error(), "x_throughputs.json:") {
			t.Errorf("%q: error %v, want one with file and line", s, last)
		}
	}
}

// ReadGavelTable returns consolidated values for every even placement, and no
// unconsolidated values.
func TestReadGavelTable(t *testing.T) {
	file := filepath.Join(t.TempDir(), "t.json")
	cut := strings.Split(gavelCut, `    "ResNet-50": {`)[0]
	spectest.WriteFile(t, file, []byte(strings.TrimRight(cut, ", \n")+"}}"), 0o600)
	ms, err := ReadGavelTable(context.Background(), file)
	if err != nil {
		t.Fatal(err)
	}
	var shapes []string
	for _, m := range ms {
		shapes = append(shapes, m.Config.Accelerator.Name+" "+m.Config.Shape.Devices)
	}
	want := []string{"V100-SXM2-16GB 4", "V100-SXM2-16GB 2+2", "V100-SXM2-16GB 1+1+1+1", "V100-SXM2-16GB 1", "K80-12GB 2", "K80-12GB 1+1"}
	if d := cmp.Diff(want, shapes); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

// GavelDoubts names contradictions with file, line and values, for the selected
// configurations only. Slightly more than linear speedup is no contradiction.
func TestGavelDoubts(t *testing.T) {
	file := filepath.Join(t.TempDir(), "t.json")
	text := `{"v100": {
"('A', 1)": {"null": 10}, "('A', 2)": {"null": 25}, "('A', 4)": {"null": 43}, "('A', 8)": {"null": 40},
"('B', 1)": {"null": 3},
"('B', 2)": {"null": 0},
"('C', 4)": {"null": 7},
"('C', 4)": {"null": 8}
}}`
	spectest.WriteFile(t, file, []byte(text), 0o600)
	ms, err := ReadGavelTable(t.Context(), file)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"t.json:2: A on 2 x V100-SXM2-16GB makes 25 steps/s, more than 2 times the 10 steps/s of one (t.json:2)",
		"t.json:2: A on 8 x V100-SXM2-16GB makes 40 steps/s, fewer than the 43 steps/s of half as many devices (t.json:2)",
		"t.json:4: B on 2 x V100-SXM2-16GB does not fit, with half as many devices and the same batch on each it makes 3 steps/s (t.json:3)",
		"t.json:6: C on 4 x V100-SXM2-16GB makes 8 steps/s here, and 7 steps/s in t.json:5",
	}
	all := func(spec.Config) bool { return true }
	if d := cmp.Diff(want, GavelDoubts(ms, all)); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	if got := GavelDoubts(ms, func(c spec.Config) bool { return c.Model.Name == "A" && c.Plan.DP == 4 }); len(got) > 0 {
		t.Errorf("of A on 4 devices: %q", got)
	}
}

// The published tables: 83 jobs on each of six worker types but one (77).
func TestGavelPublished(t *testing.T) {
	ms, bad := collect(t, "gavel", os.DirFS(filepath.Join(spectest.Shared(t), "data", "gavel")))
	if len(bad) != 0 {
		t.Fatalf("faults: %v", bad)
	}
	got := map[string]int{}
	for _, m := range ms {
		got[m.Source+" "+m.Env["worker"]]++
		got[m.Source+" "+string(m.Outcome)]++
	}
	want := map[string]int{}
	for _, f := range []string{"gavel/simulation_throughputs ", "gavel/physical_cluster_throughputs "} {
		for _, w := range []string{"v100", "p100", "k80", "v100_unconsolidated", "p100_unconsolidated"} {
			want[f+w] = 83
		}
		want[f+"k80_unconsolidated"] = 77
	}
	want["gavel/simulation_throughputs oom"], want["gavel/simulation_throughputs ok"] = 3, 489
	want["gavel/physical_cluster_throughputs oom"], want["gavel/physical_cluster_throughputs ok"] = 4, 488
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

func FuzzGavel(f *testing.F) {
	f.Add(gavelCut)
	f.Add(`{"v100":{"('A3C', 1)":{"null":1e-320}}}`)
	f.Add(`{"v100":{"('A3C', 1)":[`)
	f.Fuzz(func(t *testing.T, s string) {
		fuzzImport(t, "gavel", fstest.MapFS{"throughputs.json": file(s)})
	})
}
