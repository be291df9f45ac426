package slurm

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestHang: a command of Slurm that does not answer is an error after the limit, also if a script around it leaves a
// process that holds its output.
func TestHang(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{"sinfo": "echo slurm 24.05.1\n", "scontrol": "sleep 60\n", "squeue": "sleep 60\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\n"+text+"exit 0\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	o := reader().Options
	o.Limit = 10 * time.Second // of the version
	c, err := New(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	c.Limit = 200 * time.Millisecond
	began := time.Now()
	_, err = c.Observe(t.Context())
	if took := time.Since(began); took > 20*time.Second {
		t.Errorf("an observation takes %v", took)
	}
	if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "slurm: scontrol show: no answer within 200ms") {
		t.Errorf("error %v", err)
	}
}
