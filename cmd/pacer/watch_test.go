package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/pacer-ml/pacer/perfmodel/spec/spectest"
	"github.com/pacer-ml/pacer/profiler/store"
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

// TestE2EWatch: an unchanged script that trains with torch is measured, and the row goes to the server that has the
// store open.
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

// TestE2EWatchLockedStore: the row of a run waits for another process that has the store open, and is in a file if it
// may not wait.
func TestE2EWatchLockedStore(t *testing.T) {
	pacer := selfAs(t, "pacer")
	const log = `for i in 1 2 3 4 5 6 7 8 9; do echo "completed step: $i, seconds: 0.5, loss: 1"; done`
	for _, interrupted := range []bool{false, true} {
		data := filepath.Join(t.TempDir(), "data")
		db, err := store.Open(filepath.Join(data, "store"), store.Options{})
		if err != nil {
			t.Fatal(err)
		}
		cmd := exec.Command(pacer, "--data", data, "watch", "--model", "layers=2,hidden=64,ffn=256,heads=4,vocab=100,params=49000", "--seq", "16", "--precision", "fp32",
			"--plan", "dp=1,mb=4", "--", "sh", "-c", log)
		said, err := cmd.StderrPipe()
		out, errOut := cmd.StdoutPipe()
		if err := errors.Join(err, errOut, cmd.Start()); err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadFull(out, make([]byte, 40)); err != nil {
			t.Error(err)
		}
		time.Sleep(500 * time.Millisecond) // the command has ended
		want := "stored in " + data
		if interrupted {
			_ = cmd.Process.Signal(os.Interrupt)
			want = "pacer import parquet " + filepath.Join(data, "watch-")
		} else {
			db.Close()
		}
		text, _ := io.ReadAll(said)
		if err := cmd.Wait(); err != nil || !bytes.Contains(text, []byte(want)) {
			t.Errorf("interrupted %v: %v, %s; want %q", interrupted, err, text, want)
		}
		if !interrupted {
			continue
		}
		db.Close()
		files, _ := filepath.Glob(filepath.Join(data, "watch-*.parquet"))
		if len(files) != 1 {
			t.Fatalf("files %v", files)
		}
		if text, err := exec.Command(pacer, "--data", data, "import", "parquet", files[0]).CombinedOutput(); err != nil || !bytes.Contains(text, []byte("stored 1 rows")) {
			t.Errorf("%v\n%s", err, text)
		}
	}
}

// TestE2EWatchOneTask: a task that sees a part of the ranks says what is missing.
func TestE2EWatchOneTask(t *testing.T) {
	python, pacer := torchPython(t), selfAs(t, "pacer")
	cmd := exec.Command(pacer, "--data", filepath.Join(t.TempDir(), "data"), "watch", "--model", "layers=2,hidden=64,ffn=256,heads=4,vocab=100,params=49000", "--seq", "16",
		"--precision", "fp32", "--plan", "dp=8,mb=4", "--", python, "../../profiler/hook/testdata/plain.py", "--steps", "9")
	cmd.Env = append(cmd.Environ(), "CUDA_VISIBLE_DEVICES=", "RANK=3", "WORLD_SIZE=8")
	out, err := cmd.CombinedOutput()
	if want := "not stored: 1 rank of 8 ran here: where several tasks or nodes run pacer watch, all need the same --shared DIR"; err != nil || !bytes.Contains(out, []byte(want)) {
		t.Errorf("%v, %s; want %q", err, out, want)
	}
}
