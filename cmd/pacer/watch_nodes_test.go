package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/pacer-ml/pacer/cmd/internal/query"
	"github.com/pacer-ml/pacer/profiler/store"
)

// TestE2EWatchNodes: of a training run on two nodes, which share a directory, the node of rank 0 tells and stores the result.
func TestE2EWatchNodes(t *testing.T) {
	python, pacer := torchPython(t), selfAs(t, "pacer")
	data, shared := filepath.Join(t.TempDir(), "data"), t.TempDir()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port := l.Addr().(*net.TCPAddr).Port
	l.Close()
	var said [2]bytes.Buffer
	ended := make(chan error)
	for node := range said {
		cmd := exec.Command(pacer, "--data", data, "watch", "--output", "json", "--model", "layers=2,hidden=64,ffn=256,heads=4,vocab=100,params=16900", "--seq", "16",
			"--precision", "fp32", "--plan", "dp=2,mb=4,ga=2", "--shape", "1+1", "--shared", shared, "--",
			python, "-m", "torch.distributed.run", "--nnodes=2", "--nproc_per_node=1", fmt.Sprintf("--node_rank=%d", node), "--rdzv_backend=static",
			"--master_addr=127.0.0.1", fmt.Sprintf("--master_port=%d", port), "-r", "2", "-t", "2", "--log_dir", t.TempDir(),
			"../../profiler/hook/testdata/ddp.py", "--steps", "15")
		cmd.Env = append(cmd.Environ(), "CUDA_VISIBLE_DEVICES=", "OMP_NUM_THREADS=1", "GLOO_SOCKET_IFNAME=lo", "SLURM_JOB_ID=7")
		cmd.Stderr = &said[node]
		go func() { ended <- cmd.Run() }()
	}
	for range said {
		if err := <-ended; err != nil {
			t.Errorf("%v\n%s\n%s", err, &said[0], &said[1])
		}
	}
	told := -1
	for node := range said {
		at := bytes.IndexByte(said[node].Bytes(), '{')
		if at < 0 {
			continue
		}
		var r struct {
			Outcome, Stored string
			Steps           int
		}
		if err := json.Unmarshal(said[node].Bytes()[at:], &r); err != nil || r.Outcome != "ok" || r.Stored == "" || r.Steps != 10 || told >= 0 {
			t.Errorf("%v, %+v\n%s", err, r, &said[node])
		}
		told = node
	}
	if told != 0 {
		t.Errorf("node %d told the result, want 0:\n%s\n%s", told, &said[0], &said[1])
	}
	db, err := store.Open(filepath.Join(data, "store"), store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	rows, err := query.RowsOf(t.Context(), db, store.Filter{Sources: []string{"watch"}})
	if err != nil || len(rows) != 1 || rows[0].Config.Shape.Devices != "1+1" {
		t.Errorf("%+v, %v; want one row of 1+1", rows, err)
	}
	files, _ := filepath.Glob(filepath.Join(shared, "7.*", "rank*.jsonl"))
	if len(files) != 2 {
		t.Errorf("steps in %v, want those of two ranks", files)
	}
}

// TestWatchOldDirectory: a directory with steps of an earlier run is refused, and the command runs.
func TestWatchOldDirectory(t *testing.T) {
	shared := t.TempDir()
	file := filepath.Join(shared, "rank0-17.jsonl")
	writeFile(t, file, "{}\n")
	old := time.Now().Add(-2 * time.Hour)
	if err := os.Chtimes(file, old, old); err != nil {
		t.Fatal(err)
	}
	t.Setenv("SLURM_JOB_ID", "")
	cmd := exec.Command(selfAs(t, "pacer"), "--data", t.TempDir(), "watch", "--model", "GPT2-small", "--plan", "dp=1,mb=1,ga=1", "--shared", shared, "--", "echo", "trained")
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "trained") || !strings.Contains(string(out), "has steps of an earlier run (rank0-17.jsonl)") {
		t.Errorf("%v\n%s", err, out)
	}
}
