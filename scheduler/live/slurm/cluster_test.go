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
	o.Limit = time.Minute // of the version
	c, err := New(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	c.Limit = 200 * time.Millisecond
	began := time.Now()
	_, err = c.Observe(t.Context())
	if took := time.Since(began); took > 50*time.Second {
		t.Errorf("an observation takes %v", took)
	}
	if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "slurm: scontrol show: no answer within 200ms") {
		t.Errorf("error %v", err)
	}
}

// TestReadRecord: a job that starts while slurmctld does not answer waits for it; one that does not exist is an error at once.
func TestReadRecord(t *testing.T) {
	pause, limit, patience := showPause, showLimit, showPatience
	t.Cleanup(func() { showPause, showLimit, showPatience = pause, limit, patience })
	showPause, showLimit = time.Millisecond, time.Minute
	dir := t.TempDir()
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	scontrol := func(text string) {
		if err := os.WriteFile(filepath.Join(dir, "scontrol"), []byte("#!/bin/sh\necho try >>"+dir+"/tries\n"+text), 0o755); err != nil {
			t.Fatal(err)
		}
		_ = os.Remove(filepath.Join(dir, "tries"))
	}
	tries := func() int {
		b, _ := os.ReadFile(filepath.Join(dir, "tries"))
		return strings.Count(string(b), "try")
	}
	scontrol(`if [ $(wc -l <` + dir + `/tries) -lt 3 ]; then echo "Unable to contact slurm controller" >&2; exit 1; fi
echo 'JobId=1 AdminComment={"run-plan":"dp=2","run-slots":"a=2"} Comment=pacer:model=m,progress=/x/%j.json'
`)
	r, progress, err := ReadRecord(t.Context(), "1")
	if err != nil || r.RunPlan != "dp=2" || progress != "/x/1.json" || tries() != 3 {
		t.Errorf("%+v, %q, %v after %d tries", r, progress, err, tries())
	}
	scontrol("echo 'slurm_load_jobs error: Invalid job id specified' >&2; exit 1\n")
	if _, _, err := ReadRecord(t.Context(), "1"); err == nil || !strings.Contains(err.Error(), "Invalid job id") || tries() != 1 {
		t.Errorf("%v after %d tries", err, tries())
	}
	showPatience = 0
	scontrol("exit 1\n")
	if _, _, err := ReadRecord(t.Context(), "1"); err == nil || tries() != 1 {
		t.Errorf("%v after %d tries", err, tries())
	}
}
