package accuracy

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pacer-ml/pacer/datasets"
	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/perfmodel/spec/spectest"
)

func TestUsable(t *testing.T) {
	sound := spec.Measurement{Source: "published/own", Outcome: spec.OK, StepSec: []float64{1}}
	for what, c := range map[string]struct {
		change func(*spec.Measurement)
		want   bool
	}{
		"sound":         {func(*spec.Measurement) {}, true},
		"doubted":       {func(m *spec.Measurement) { m.Doubt = "only adapters were trained" }, true},
		"suspect":       {func(m *spec.Measurement) { m.Doubt = "marked suspect in its table" }, false},
		"out of memory": {func(m *spec.Measurement) { m.Outcome = spec.OOM }, false},
		"no time":       {func(m *spec.Measurement) { m.StepSec = nil }, false},
		"no tokens": {func(m *spec.Measurement) {
			m.Env = map[string]string{"unrecorded": "seq_len,vocab"}
			m.Config.SeqLen = 2048
		}, false},
		"derived": {func(m *spec.Measurement) { m.Env = map[string]string{datasets.EnvStepTime: "derived"} }, false},
	} {
		m := sound
		c.change(&m)
		if got := usable(&m); got != c.want {
			t.Errorf("%s: usable is %v", what, got)
		}
	}
}

// TestUsableRows: the rows with status ok and a step time, as
// counted in the tables themselves.
func TestUsableRows(t *testing.T) {
	p, err := readTables(t.Context(), spectest.Shared(t), publishedDir)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]int{"bigscience": 207, "internevo": 54, "megatron_bridge": 292, "torchtitan": 32, "megatron_sc21": 10,
		"korthikanti_2205_05198": 8, "fms_fsdp": 8, "nemo_2407": 18, "litgpt": 39, "nemo_megatron_launcher": 6}
	count := func(rows []spec.Measurement) (n int) { // before equal configurations are merged
		for _, m := range rows {
			n += len(m.StepSec)
		}
		return n
	}
	got := map[string]int{}
	for s, rows := range p.usable {
		got[s] = count(rows)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("usable rows (-want +got):\n%s", diff)
	}
	if n := count(p.without("")); n != 674 {
		t.Errorf("%d usable rows, want 674", n)
	}
	if n := count(p.without("bigscience")); n != 674-207 {
		t.Errorf("%d usable rows without bigscience, want %d", n, 674-207)
	}
	for _, m := range p.without("litgpt") {
		if sourceOf(&m) == "litgpt" {
			t.Fatalf("%s is not left out", m.Origin)
		}
	}
	var ten, thirty []string
	for _, s := range p.sources {
		if len(p.usable[s]) >= pooledRows+10 {
			ten = append(ten, s)
		}
		if len(p.usable[s]) >= pooledRows+30 {
			thirty = append(thirty, s)
		}
	}
	if diff := cmp.Diff([]string{"bigscience", "internevo", "megatron_bridge", "torchtitan"}, ten); diff != "" {
		t.Errorf("sources of which 10 rows are revealed (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"bigscience", "megatron_bridge"}, thirty); diff != "" {
		t.Errorf("sources of which 30 rows are revealed (-want +got):\n%s", diff)
	}
}

// TestBlind: a configuration that is not that of the table without its outcomes is found.
func TestBlind(t *testing.T) {
	shared := spectest.Shared(t)
	for _, dir := range []string{publishedDir, fieldDir} {
		p, err := readTables(t.Context(), shared, dir)
		if err != nil {
			t.Fatal(err)
		}
		root, err := dataDir(shared, dir)
		if err != nil {
			t.Fatal(err)
		}
		row := &p.usable[p.sources[0]][0]
		row.Config.Link.InterBps *= 2
		if err := p.checkBlind(t.Context(), root); !errors.Is(err, ErrSeen) || !strings.Contains(err.Error(), row.Origin) {
			t.Errorf("%s: %v, want ErrSeen of %s", dir, err, row.Origin)
		}
	}
}

// TestUnnamed: the columns that name the stack of a table are emptied, and no other.
func TestUnnamed(t *testing.T) {
	got, err := unnamed("row_id,source,framework,notes\na,NVIDIA/NeMo,NeMo,\"x, y\"\n")
	if want := "row_id,source,framework,notes\na,,,\"x, y\"\n"; err != nil || got != want {
		t.Errorf("%q, %v, want %q", got, err, want)
	}
}
