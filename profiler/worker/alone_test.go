package worker

import (
	"context"
	"encoding/json"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/perfmodel/spec/spectest"
)

// TestAloneDoesTheSameWork: a rank that runs alone holds the same tensors and makes the same matrix products,
// normalizations and look-ups, of the same shapes, as among the others, under tensor, pipeline and data parallelism.
func TestAloneDoesTheSameWork(t *testing.T) {
	if testing.Short() {
		t.Skip("starts 36 processes: half a minute on two idle cores")
	}
	var found []struct {
		Model       string
		Plan        spec.Plan
		Stage       int
		Equal       int
		Differences []string
	}
	runAlone(t, "alone_work.py", &found)
	if len(found) != 15 {
		t.Errorf("%d ranks were compared, want 15", len(found))
	}
	for _, f := range found {
		if f.Equal < 20 || len(f.Differences) > 0 {
			t.Errorf("%s %s stage %d: %d kinds of work are equal, but not %q", f.Model, f.Plan, f.Stage, f.Equal, f.Differences)
		}
	}
}

// TestAloneShards: a rank alone with context parallelism has its share of the tokens, and of causal attention the first and the
// last of 2 cp parts; with expert parallelism it has its share of the experts, as many tokens for them as it sends, and of their
// states the share of those ranks that hold the same ones.
func TestAloneShards(t *testing.T) {
	if testing.Short() {
		t.Skip("starts 14 processes: ten seconds on two idle cores")
	}
	type amounts struct{ Linear, Attention, Dense, Expert, States float64 }
	var found []struct {
		Model     string
		Plan      spec.Plan
		Rank, One amounts
	}
	runAlone(t, "alone_shards.py", &found)
	// Shares of what one device has. Rows of plans with padding or small weights that are not split are off by a percent or two.
	want := []amounts{
		{0.5, 5. / 16, 1, 0, 1},
		{0.25, 9. / 64, 1, 0, 1. / 8},
		{0.25, 5. / 32, 0.5, 0, 0.5},
		{1, 1, 1, 0.5, 0.826},
		{1, 1, 1, 0.25, 1. / 8},
		{0.5, 0.5, 0.51, 0.5, 0.51},
		{0.105, 1. / 16, 0.31, 0, 0.203}, // the first of five stages has the embedding and the one layer without experts
	}
	if len(found) != len(want) {
		t.Fatalf("%d ranks, want %d", len(found), len(want))
	}
	for i, f := range found {
		w := want[i]
		for _, x := range []struct {
			what              string
			rank, one, shares float64
		}{{"linear layers", f.Rank.Linear, f.One.Linear, w.Linear}, {"attention", f.Rank.Attention, f.One.Attention, w.Attention},
			{"dense weights", f.Rank.Dense, f.One.Dense, w.Dense}, {"experts", f.Rank.Expert, f.One.Expert, w.Expert}, {"states", f.Rank.States, f.One.States, w.States}} {
			if math.Abs(x.rank-x.shares*x.one) > 0.02*x.one {
				t.Errorf("%s %s: %s: %g of %g, want %g of them", f.Model, f.Plan, x.what, x.rank, x.one, x.shares)
			}
		}
	}
}

// runAlone runs a script of testdata with one thread, and reads the JSON that it writes.
func runAlone(t *testing.T, script string, into any) {
	t.Helper()
	python, out := torchPython(t), filepath.Join(t.TempDir(), "out.json")
	ctx, cancel := context.WithTimeout(context.Background(), spectest.Patience(5*time.Minute))
	defer cancel()
	cmd := exec.CommandContext(ctx, python, filepath.Join("testdata", script), out)
	cmd.Env = append(os.Environ(), "PYTHONPATH=.", "PYTHONDONTWRITEBYTECODE=1", "OMP_NUM_THREADS=1", "CUDA_VISIBLE_DEVICES=")
	if log, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, log)
	}
	text := spectest.ReadFile(t, out)
	if err := json.Unmarshal(text, into); err != nil {
		t.Fatal(err)
	}
}

// TestServe: one process measures ranks of different plans, one after another, and goes on after one that it cannot run.
func TestServe(t *testing.T) {
	python := torchPython(t)
	dir, err := Extract(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	model := spec.Model{Name: "m", Kind: spec.Decoder, Layers: 4, Hidden: 32, FFN: 64, Heads: 4, Vocab: 101, SeqLen: 16, TiedEmbeddings: true}
	files := Served{Dir: t.TempDir()}
	var outs []string
	cases := []struct {
		plan  string
		stage int
		want  spec.Outcome
	}{
		{"dp=4,tp=2,pp=3,mb=2,ga=6", 1, spec.OK},
		{"dp=4,tp=2,pp=3,mb=2,ga=6", 2, spec.OK},
		{"dp=4,tp=2,pp=3,mb=2,ga=6", 3, spec.OK},
		{"dp=1,tp=4,pp=1,mb=2,ga=1,sp=1", 1, spec.OK},
		{"dp=1,tp=3,pp=1,mb=2,ga=1", 1, spec.Failed}, // does not divide the heads
		{"dp=64,tp=1,pp=1,mb=2,ga=2,zero=1", 1, spec.OK},
		{"dp=1,tp=1,pp=2,mb=2,ga=4", 2, spec.OK},
		{"dp=2,cp=4,tp=2,pp=2,mb=2,ga=2,sp=1", 2, spec.OK},
		{"dp=2,ep=2,mb=2", 1, spec.Failed}, // the model has no experts
	}
	for _, c := range cases {
		plan, err := spec.ParsePlan(c.plan)
		if err != nil {
			t.Fatal(err)
		}
		r := Request{Config: spec.Config{Model: model, Plan: plan, AloneStage: c.stage}, Device: CPU, Devices: plan.Devices(),
			Threads: 1, MinSteps: 3, MaxSteps: 4, MaxTime: 2, Interval: 0.5, Timeout: 60}
		_, out, err := files.Write(r)
		if err != nil {
			t.Fatal(err)
		}
		outs = append(outs, out)
	}
	if err := files.End(); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), spectest.Patience(2*time.Minute))
	defer cancel()
	log, err := exec.CommandContext(ctx, python, dir, "--serve", files.Dir).CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, log)
	}
	last := 0
	for line := range strings.Lines(string(log)) {
		if n, ok := Measured(line); ok && n == last+1 {
			last = n
		}
	}
	if last != len(cases) {
		t.Errorf("%d points were measured in order, want %d\n%s", last, len(cases), log)
	}
	for i, out := range outs {
		c := cases[i]
		r, err := ReadResult(out)
		if err != nil || r.Outcome != c.want {
			t.Errorf("%s stage %d: %s %s, %v; want %s", c.plan, c.stage, r.Outcome, r.Reason, err, c.want)
			continue
		}
		if r.Outcome == spec.OK && (r.World != 1 || len(r.StepSec) < 1 || r.LossFirst != 0 || r.LossLast != 0 || !strings.Contains(r.Notes["alone"], "process group")) {
			t.Errorf("%s stage %d: %+v, want steps of one process, without a loss", c.plan, c.stage, r)
		}
		if r.Outcome != spec.OK && !strings.HasPrefix(r.Reason, "unsupported: ") {
			t.Errorf("%s: %q", c.plan, r.Reason)
		}
	}
}

// TestMeasured: only whole lines of the worker count.
func TestMeasured(t *testing.T) {
	for line, want := range map[string]int{
		"pacer_worker: measured point 7\n": 7, "pacer_worker: measured point 12": 12, "pacer_worker: measured point 7 times": 0,
		"pacer_worker: measured point": 0, "pacer_worker: measured point x": 0, "measured point 7": 0, "": 0,
	} {
		if n, ok := Measured(line); ok != (want > 0) || ok && n != want {
			t.Errorf("%q: %d, %t; want %d", line, n, ok, want)
		}
	}
}

// TestRequestAlone: the stage must be one of the plan.
func TestRequestAlone(t *testing.T) {
	r := Request{Device: CPU, Devices: 2, MinSteps: 1, MaxSteps: 1, MaxTime: 1, Interval: 0.1, Timeout: 1}
	r.Config.Plan = spec.Plan{PP: 2}.Normal()
	for stage, want := range map[int]string{0: "", 1: "", 2: "", 3: "alone_stage=3 is not in [0, pp=2]", -1: "alone_stage=-1"} {
		r.Config.AloneStage = stage
		if err := r.Validate(); (want == "") != (err == nil) || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("stage %d: %v, want %q", stage, err, want)
		}
	}
}
