package scheduling

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/pacer-ml/pacer/datasets/trace"
	"github.com/pacer-ml/pacer/perfmodel/spec/spectest"
)

// TestBuiltins reads every built-in set: its cells have names, workloads and known keys.
func TestBuiltins(t *testing.T) {
	for _, name := range BuiltinNames() {
		s, ok := Builtin(name)
		if !ok || len(s.Cells) == 0 {
			t.Errorf("%s: %d cells", name, len(s.Cells))
		}
		for _, c := range s.Cells {
			if _, err := c.Jobs(); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
}

// TestTraces reads the recorded workloads of the built-in set: each has as many jobs as its window asks for.
func TestTraces(t *testing.T) {
	set, _ := Builtin("traces")
	for _, c := range set.Cells {
		w, err := trace.Open(t.Context(), filepath.Join(spectest.Shared(t), c.Workload), "")
		if err != nil {
			t.Fatal(err)
		}
		window, err := trace.ParseWindow(c.Settings["window"])
		if err != nil {
			t.Fatal(err)
		}
		if jobs := window.Cut(w.Jobs); len(jobs) != 301 || jobs[0].Duration == 0 {
			t.Errorf("%s: %d jobs, want 301 with run times", c.Name, len(jobs))
		}
	}
}

func TestRead(t *testing.T) {
	s, err := Read("f.yaml", []byte(`
seeds: 5-7
policies: [las, "pacer:span=1,fifo"]
defaults: {nodes: 4, load: 0.8, guaranteed: 0}
cells:
  - {name: a, arrivals: once, sizes: small}
  - {name: b, median_s: 60, start_cost: 30, belief: "noisy:0.3"}
  - {name: c, variant_of: b, time_scale: 10, steps: unknown}
  - {name: d, workload: jobs.csv, cluster: 2x8, window: 0-9, host_speeds: h.csv}
  - {name: e, variant_of: a, arrivals: poisson}
`))
	if err != nil {
		t.Fatal(err)
	}
	if len(s.Seeds) != 3 || s.Seeds[0] != 5 || len(s.Policies) != 3 || s.Policies[1].String() != "pacer:span=1" || len(s.Cells) != 5 {
		t.Errorf("%+v", s)
	}
	for i, want := range []string{
		"synthetic:models=" + defaultModels + ",jobs=200,arrivals=once,sizes=small,durations=log-normal,median-s=900",
		"synthetic:models=" + defaultModels + ",jobs=200,load=0.8x32,arrivals=poisson,sizes=mixed,durations=log-normal,median-s=60",
		"synthetic:models=" + defaultModels + ",jobs=200,load=0.8x32,arrivals=poisson,sizes=mixed,durations=log-normal,median-s=60,time-scale=10",
		"jobs.csv",
		"synthetic:models=" + defaultModels + ",jobs=200,load=0.8x32,arrivals=poisson,sizes=small,durations=log-normal,median-s=900",
	} {
		if got, err := s.Cells[i].Jobs(); got != want || err != nil {
			t.Errorf("%s\n%s, %v", want, got, err)
		}
	}
	if got := s.Cells[2].settings(); got["start-cost"] != "300" || got["belief"] != "noisy:0.3" || got["truth"] != defaultTruth || !s.Cells[2].UnknownSteps {
		t.Errorf("variant: %v", got)
	}
	if got := s.Cells[3].settings(); len(got) != 2 || got["window"] != "0-9" || got["host-speeds"] != "h.csv" {
		t.Errorf("recorded workload: %v, want the defaults of pacer simulate", got)
	}
}

// TestReadMistakes: each mistake is reported with its line and column.
func TestReadMistakes(t *testing.T) {
	for text, want := range map[string]string{
		"cells:\n  - {name: a, lod: 1}":                 `f.yaml:2:15: unknown key "lod", nearest is load`,
		"cells:\n  - {load: 1}":                         "a cell without a name",
		"cells: [{name: a}, {name: a}]":                 "a second cell a",
		"cells: [{name: a, variant_of: b}]":             `variant_of "b" is no cell above`,
		"cells: [{name: a, load: 0}]":                   "0 is not above 0",
		"cells: [{name: a, load: 1, arrivals: once}]":   "arrive once have no load",
		"cells: [{name: a, workload: x.csv, jobs: 5}]":  "jobs is of drawn workloads",
		"cells: [{name: a, durations: long}]":           `"long" is not one of log-normal`,
		"seeds: 9-3\ncells: [{name: a}]":                `f.yaml:1:8: seeds "9-3" are not A-B`,
		"policies: [las]":                               "no cells",
		"policies: [nosuch]\ncells: [{name: a}]":        `f.yaml:1:11: unknown policy "nosuch"`,
		"policies: [las, las]\ncells: [{name: a}]":      "las is given twice",
		"policies: []\ncells: [{name: a}]":              "f.yaml:1:11: ",
		"defaults: {variant_of: b}\ncells: [{name: b}]": `f.yaml:1:12: unknown key "variant_of"`,
		"cells: [{name: a, load: }]":                    "load has no value",
	} {
		if _, err := Read("f.yaml", []byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
}
