package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pacer-ml/pacer/perfmodel/spec/spectest"
)

// fakeMicrobenchmarks is a worker with a device that copies 20 GB/s and updates a parameter in a nanosecond.
const fakeMicrobenchmarks = `echo '{"version":1,"torch":"9.9","rows":[
{"op":"copy","bytes":2e8,"sec":[0.01,0.01,0.01]},
{"op":"copy","bytes":4e8,"sec":[0.02,0.02,0.02]},
{"op":"optimizer","parameters":1e6,"sec":[0.001,0.001,0.001]}]}' >"$out"`

// TestE2EProfileMachine: profile machine prints what it corrected, and what follows with the same data directory begins
// with it: predictions, and those of campaigns.
func TestE2EProfileMachine(t *testing.T) {
	python, _ := fakeTorch(t, fakeMicrobenchmarks)
	checkProfileMachine(t, python, "memory bandwidth", "optimizer bytes")
}

// TestE2EProfileMachineTrains does the same with PyTorch.
func TestE2EProfileMachineTrains(t *testing.T) {
	needTorch(t)
	checkProfileMachine(t, os.Getenv("PACER_PYTHON"), "gemm CPU", "memory bandwidth", "optimizer bytes", "launch, eager", "fixed")
}

func checkProfileMachine(t *testing.T, python string, constants ...string) {
	t.Helper()
	pacer, data, file := pacerBinary(t), t.TempDir(), filepath.Join(t.TempDir(), "small.yaml")
	writeFile(t, file, `
name: small
models:
  - {name: gpt-a, kind: decoder, layers: 4, hidden: 128, ffn: 512, heads: 4, vocab: 1024, seq_len: 64}
space: {micro_batch: [1, 4]}
`)
	run := func(args ...string) []byte {
		t.Helper()
		cmd := exec.Command(pacer, append([]string{"--data", data}, args...)...)
		cmd.Env = append(os.Environ(), "PACER_PYTHON="+python, "XDG_CACHE_HOME="+filepath.Join(data, "cache"))
		var said strings.Builder
		cmd.Stderr = &said
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("%q: %v\n%s%s", args, err, out, said.String())
		}
		return out
	}
	read := func(text []byte, to any) {
		t.Helper()
		if err := json.Unmarshal(text, to); err != nil {
			t.Fatalf("%v in %s", err, text)
		}
	}
	planned := func() float64 {
		t.Helper()
		var p struct {
			Points []struct {
				StepSec float64 `json:"step_s"`
			}
		}
		out := filepath.Join(t.TempDir(), "predictions.json")
		run("profile", "plan", file, "--devices", "cpu", "--predict", out)
		text := spectest.ReadFile(t, out)
		if read(text, &p); len(p.Points) != 2 || !(p.Points[0].StepSec > 0) {
			t.Fatalf("predictions %+v", p)
		}
		return p.Points[0].StepSec
	}
	before := planned()
	var report struct {
		Accelerator string
		Constants   []struct {
			Name                             string
			Assumed, Measured, Ratio, Spread float64
		}
	}
	read(run("profile", "machine", "--seconds", "5", "--devices", "cpu", "--output", "json"), &report)
	for _, name := range constants {
		found := false
		for _, c := range report.Constants {
			found = found || c.Name == name && c.Assumed > 0 && c.Measured > 0 && c.Ratio > 0 && c.Spread > 0
		}
		if !found {
			t.Errorf("%q is not among %+v", name, report.Constants)
		}
	}
	if after := planned(); after == before {
		t.Errorf("a campaign's prediction is %g s, as before", after)
	}
	var first, second struct {
		Plans [1]struct {
			StepSec float64 `json:"step_time_s"`
		}
	}
	predict := []string{"predict", "--model", "gpt2-small", "--accelerator", report.Accelerator, "--plan", "dp=1,mb=1", "--output", "json"}
	if read(run(predict...), &first); !(first.Plans[0].StepSec > 0) {
		t.Errorf("a step takes %g s", first.Plans[0].StepSec)
	}
	read(run("profile", "machine", "--seconds", "5", "--devices", "cpu", "--threads", "2", "--output", "json"), &report)
	if read(run(predict...), &second); second.Plans[0].StepSec != first.Plans[0].StepSec {
		t.Errorf("%g s, after measuring other devices %g s", first.Plans[0].StepSec, second.Plans[0].StepSec)
	}
}
