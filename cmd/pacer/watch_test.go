package main

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	"github.com/pacer-ml/pacer/perfmodel/spec/spectest"
)

// torchPython returns an interpreter with PyTorch. It ends a test where there is none.
func torchPython(t *testing.T) string {
	t.Helper()
	python, err := findPython()
	if err != nil {
		spectest.Lacks(t, err)
	}
	return python
}

var findPython = sync.OnceValues(func() (name string, why error) {
	for _, name = range []string{os.Getenv("PACER_PYTHON"), "python3", "/usr/bin/python3"} {
		if why = exec.Command(name, "-c", "import torch").Run(); why == nil {
			break
		}
	}
	return name, why
})

// TestE2EWatch: an unchanged script that trains with torch is measured, and the row goes to the server that has the store
// open.
func TestE2EWatch(t *testing.T) {
	python := torchPython(t)
	pacer, data := selfAs(t, "pacer"), filepath.Join(t.TempDir(), "data")
	s := startServing(t, pacer, data)
	cmd := exec.Command(pacer, "--data", data, "watch", "--output", "json", "--model", "layers=2,hidden=64,ffn=256,heads=4,vocab=100,params=49000", "--seq", "16",
		"--precision", "fp32", "--plan", "dp=1,mb=4,ga=2", "--", python, "../../profiler/hook/testdata/plain.py", "--steps", "25", "--accumulate", "2")
	cmd.Env = append(cmd.Environ(), "PACER_TOKEN=", "CUDA_VISIBLE_DEVICES=")
	var out, said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &said
	if err := cmd.Run(); err != nil {
		t.Fatalf("%v\n%s", err, &said)
	}
	var r struct {
		Outcome, Stored string
		Steps           int
		StepS           float64 `json:"step_time_s"`
		MemGiB          float64 `json:"mem_gib"`
		Predicted       *struct {
			StepS float64 `json:"step_time_s"`
		}
	}
	if err := json.Unmarshal(said.Bytes()[bytes.IndexByte(said.Bytes(), '{'):], &r); err != nil {
		t.Fatalf("%v\n%s", err, &said)
	}
	if r.Outcome != "ok" || r.Stored != s.url || r.Steps != 20 || !(r.StepS > 0) || !(r.MemGiB > 0) || r.Predicted == nil || !(r.Predicted.StepS > 0) {
		t.Errorf("%+v\n%s", r, &said)
	}
	if !bytes.HasPrefix(out.Bytes(), []byte("loss ")) {
		t.Errorf("output %q", &out)
	}
	rows := struct{ Rows []json.RawMessage }{}
	get(t, s.url+"/v1/measurements/rows?source=watch", &rows)
	if len(rows.Rows) != 1 {
		t.Errorf("%d rows in the server, want 1", len(rows.Rows))
	}
}
