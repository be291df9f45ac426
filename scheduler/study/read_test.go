package study

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var testSettings = []string{"truth", "start-cost", "admission"}

func TestRead(t *testing.T) {
	got, err := Read("s.yaml", []byte(`
name: all-keys
description: Everything at once.
cluster: 8x8xA800
workloads:
  - traces/a.csv
  - {name: b, jobs: "b.txt:gavel-trace"}
  - synthetic:jobs=10,per-hour=3
policies:
  - fifo
  - {name: strict, policy: fifo-backfill, admission: accept-all, start_cost: 5}
loads: [0.5, 1]
seeds: [3, 1]
arrivals: poisson
noise: 0.1
confidence: 0.9
baseline: strict
truth: duration
start_cost: 260
`), testSettings)
	if err != nil {
		t.Fatal(err)
	}
	want := Study{
		Name: "all-keys", Description: "Everything at once.", Cluster: "8x8xA800",
		Workloads: []Workload{{"a", "traces/a.csv"}, {"b", "b.txt:gavel-trace"}, {"synthetic", "synthetic:jobs=10,per-hour=3"}},
		Schedulers: []Scheduler{{Name: "fifo", Policy: "fifo", Settings: map[string]string{}},
			{Name: "strict", Policy: "fifo-backfill", Settings: map[string]string{"admission": "accept-all", "start-cost": "5"}}},
		Loads: []float64{0.5, 1}, Seeds: []uint64{3, 1}, Arrivals: Poisson, Noise: 0.1, Confidence: 0.9, Baseline: "strict",
		Settings: map[string]string{"truth": "duration", "start-cost": "260"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if n := len(got.Cells()); n != 3*2*2*2 {
		t.Errorf("%d cells", n)
	}
}

func TestReadDefaults(t *testing.T) {
	got, err := Read("s.yaml", []byte("name: s\ncluster: 2x4\nworkloads: a.csv\npolicies: fifo\nseeds: 3\n"), nil)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]uint64{1, 2, 3}, got.Seeds); diff != "" || got.Baseline != "fifo" || got.Confidence != 0.95 || got.Arrivals != Recorded {
		t.Errorf("%+v", got)
	}
	if diff := cmp.Diff([]string{"a"}, got.Unvaried()); diff != "" {
		t.Error(diff)
	}
	if c := got.Cells(); len(c) != 3 || c[2] != (Cell{Seed: 3}) {
		t.Errorf("%+v", c)
	}
}

func TestReadErrors(t *testing.T) {
	const head = "name: s\ncluster: 2x4\nworkloads: [a.csv]\n"
	for _, c := range []struct {
		text string
		want []string // the lines of the error
	}{
		{"", []string{"1:1: the file is empty"}},
		{"{}", []string{"no name", "no cluster", "no workloads", "no policies"}},
		{head + "policies: [fifo]\nseeds: 0\n", []string{"5:8: 0 is not in 1..10000"}},
		{head + "policies: [fifo]\nseeds: [1, 2, 1]\n", []string{"5:15: seed 1 is listed twice"}},
		{head + "policies: [fifo]\nloads: [0.5, 0, 0.5]\n", []string{"5:14: 0 is not above 0", "5:17: load 0.5 is listed twice"}},
		{head + "policies: [fifo, fifo]\n", []string{"4:18: a second fifo: give it another name"}},
		{head + "policies: [\"fifo,las\"]\n", []string{"4:12: \"fifo,las\" is more than one policy"}},
		{head + "policies: [{name: x}]\n", []string{"no policy, want one of"}},
		{head + "policies: [fifo]\nbaseline: las\n", []string{"5:11: baseline \"las\" is none of the policies: \"fifo\""}},
		{head + "policies: [fifo, {policy: las, baseline: las}, {policy: srtf, baseline: lsa}]\n", []string{"4:73: baseline \"lsa\" is none of the policies: \"fifo\", \"las\", \"srtf\""}},
		{head + "policies: [fifo]\npolicy: las\n", []string{"5:1: unknown key \"policy\", nearest is policies"}},
		{head + "policies: [fifo]\nnoise: -1\nconfidence: 1\n", []string{"5:8: -1 is not in 0..3", "6:13: 1 is not above 0"}},
		{head + "policies: [fifo]\narrivals: bursty\n", []string{"5:11: \"bursty\" is not one of recorded, poisson"}},
		{head + "policies: [fifo]\ntruth:\n", []string{"5:1: truth has no value"}},
		{"name: a/b\ncluster: 2x4\nworkloads: [a.csv, b/a.csv]\npolicies: [fifo]\n", []string{"1:7: name \"a/b\" is not", "3:20: a second workload a"}},
		{"name: s\ncluster: 2x4\nworkloads: [{name: x}, {file: a}]\npolicies: [fifo]\n",
			[]string{"3:13: no jobs, want FILE", "3:24: no jobs, want FILE", "3:25: unknown key \"file\", nearest is name"}},
		{head + "policies: [fifo]\nloads: [0.1, 0.2]\nseeds: &a 3\n", []string{"which study files do not use"}},
	} {
		_, err := Read("s.yaml", []byte(c.text), testSettings)
		if err == nil {
			t.Errorf("%q: no error", c.text)
			continue
		}
		lines := strings.Split(err.Error(), "\n")
		if len(lines) != len(c.want) {
			t.Errorf("%q: %d errors, want %d:\n%v", c.text, len(lines), len(c.want), err)
			continue
		}
		for i, l := range lines {
			if !strings.HasPrefix(l, "study: s.yaml:") || !strings.Contains(l, c.want[i]) {
				t.Errorf("%q: %q, want %q", c.text, l, c.want[i])
			}
		}
	}
}

// FuzzRead checks that no text makes the reader panic, or gives an incomplete study.
func FuzzRead(f *testing.F) {
	f.Add([]byte("name: s\ncluster: 2x4\nworkloads: [a.csv]\npolicies: [fifo, {policy: las, truth: x}]\nseeds: 2\n"))
	f.Add([]byte("workloads: {jobs: [a]}\nseeds: [1, [2]]"))
	f.Fuzz(func(t *testing.T, text []byte) {
		s, err := Read("s.yaml", text, testSettings)
		if err == nil && (len(s.Cells()) == 0 || s.Name == "" || s.Cluster == "" || s.Baseline == "") {
			t.Errorf("%+v", s)
		}
	})
}
