package main

import (
	"bytes"
	"context"
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pacer-ml/pacer/cmd/internal/fail"
	"github.com/pacer-ml/pacer/perfmodel/spec/spectest"
)

// cancelling is a writer that ends a context when it is given a text.
type cancelling struct {
	bytes.Buffer
	at     string
	cancel func()
}

func (w *cancelling) Write(p []byte) (int, error) {
	if strings.Contains(string(p), w.at) {
		w.cancel()
	}
	return w.Buffer.Write(p)
}

// An interruption prints the policies that are done, and exits with 4.
func TestInterruptedSimulate(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var out bytes.Buffer
	errs := &cancelling{at: "simulate: fifo done", cancel: cancel}
	code := run(ctx, []string{"pacer", "simulate", "-w", "synthetic:jobs=40", "--cluster", "2x8", "-p", "fifo,las,srtf", "-o", "json"}, nil, &out, errs)
	var got struct{ Runs []struct{ Policy string } }
	if err := json.Unmarshal(out.Bytes(), &got); err != nil || code != fail.Partial || len(got.Runs) != 1 || got.Runs[0].Policy != "fifo" {
		t.Errorf("exit code %d, %v: %s", code, err, out.String())
	}
	if !strings.Contains(errs.String(), `"message":"interrupted: simulate: 1 run of 3 done: `) {
		t.Error(errs.String())
	}
}

// An interruption prints the runs of a study that are done, and exits with 4.
func TestInterruptedSweep(t *testing.T) {
	dir := t.TempDir()
	study := filepath.Join(dir, "s.yaml")
	spectest.WriteFile(t, study, []byte("name: s\nworkloads: synthetic:jobs=40\ncluster: 2x8\npolicies: [fifo, las, srtf]\nseeds: 8\n"), 0o600)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var out bytes.Buffer
	errs := &cancelling{at: "2 of 24 runs", cancel: cancel}
	code := run(ctx, []string{"pacer", "sweep", study, "--out", filepath.Join(dir, "kept"), "-o", "json"}, nil, &out, errs)
	var got struct{ Runs, Failed int }
	if err := json.Unmarshal(out.Bytes(), &got); err != nil || code != fail.Partial || got.Runs != 24 || got.Failed < 1 || got.Failed > 22 {
		t.Errorf("exit code %d, %v: %s\n%s", code, err, out.String(), errs.String())
	}
}
