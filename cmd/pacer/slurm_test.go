package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/pacer-ml/pacer/perfmodel/spec/spectest"
	"github.com/pacer-ml/pacer/scheduler/live/slurm/slurmtest"
)

// trainedStep is a line of testdata/slurm/train.py.
type trainedStep struct {
	Step int
	Loss float64
	Plan string
}

func trainedSteps(t *testing.T, dir string) (out []trainedStep) {
	b, err := os.ReadFile(filepath.Join(dir, "steps.jsonl"))
	if err != nil {
		return nil
	}
	for lines := bufio.NewScanner(bytes.NewReader(b)); lines.Scan(); {
		var s trainedStep
		if err := json.Unmarshal(lines.Bytes(), &s); err != nil {
			t.Fatalf("%s: %v", lines.Text(), err)
		}
		out = append(out, s)
	}
	return out
}

// TestE2ESlurmPage runs the commands of the guide on a real Slurm.
func TestE2ESlurmPage(t *testing.T) {
	slurmtest.Start(t, 2, 0)
	runPage(t, "docs/guides/slurm.md", 2)
}

// TestE2ESlurmTorch trains a network on a real Slurm under a policy that changes its plan: no
// step is repeated or skipped, and the loss is that of an uninterrupted run.
func TestE2ESlurmTorch(t *testing.T) {
	if testing.Short() {
		t.Skip("takes a minute")
	}
	needTorch(t)
	real := slurmtest.Start(t, 2, 0)
	pacer := pacerBinary(t)
	script := filepath.Join(moduleDir(t), "cmd/pacer/testdata/slurm/train.py")
	dir, steps := t.TempDir(), 1200
	job := fmt.Sprintf("#!/bin/bash\nexport PAUSE=0.05\nexec %s run -- /usr/bin/python3 %s %s %d\n", pacer, script, dir, steps)
	id := real.Submit(job, "-n1", "-N1", "--gres=gpu:1", fmt.Sprintf("--comment=pacer:model=GPT2-small,batch=8,steps=%d,progress=%s", steps, filepath.Join(dir, "progress.json")))

	data := t.TempDir()
	var log syncBuffer
	// under starts pacer schedule with a policy; end ends it, and jobs run on.
	under := func(policy string) (end func()) {
		cmd := exec.Command(pacer, "schedule", "--on", "slurm", "--policy", policy, "--gres", "a100=a100-80gb", "--start-cost", "5s", "--data", data)
		cmd.Stdout, cmd.Stderr = &log, &log
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = cmd.Process.Kill() })
		return func() {
			if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
				t.Fatal(err)
			}
			if err := cmd.Wait(); err != nil {
				t.Errorf("schedule after SIGTERM: %v", err)
			}
		}
	}
	report := func() {
		t.Logf("schedule:\n%s\njob:\n%s", log.String(), real.Output(id))
	}
	until := func(what string, holds func() bool) {
		t.Helper()
		for end := time.Now().Add(spectest.Patience(30 * time.Second)); !holds(); time.Sleep(200 * time.Millisecond) {
			if time.Now().After(end) {
				report()
				t.Fatalf("not reached: %s", what)
			}
		}
	}
	last := func() int {
		if s := trainedSteps(t, dir); len(s) > 0 {
			return s[len(s)-1].Step
		}
		return 0
	}
	state := func(id string) string { return real.Run("scontrol", "-o", "show", "job", id) }
	end := under("optimus") // all devices to the only job
	until("training", func() bool { return last() >= 40 })
	end()
	other := real.Submit("#!/bin/bash\nsleep 5\n", "-n1", "-N1", "--gres=gpu:1", "--comment=pacer:model=GPT2-small,batch=8,steps=100000")
	at := last()
	end = under("pacer:price=12:makespan=1") // which makes room, since others are said to wait
	until("the other job ends", func() bool { return strings.Contains(state(other), "JobState=COMPLETED") })
	until("training on fewer devices", func() bool { return last() >= at+40 })
	end()
	at = last()
	end = under("rubick")
	until("training after the other job", func() bool { return last() >= min(at+40, steps) })
	until("the job ends", func() bool { return strings.Contains(state(id), "JobState=COMPLETED") })
	end()

	alone := t.TempDir()
	cmd := exec.Command(pacer, "run", "--steps-file", filepath.Join(alone, "progress.json"), "--", "/usr/bin/python3", script, alone, fmt.Sprint(steps))
	cmd.Env = append(os.Environ(), "PACER_PLAN=dp=1,mb=8", "RANK=0", "WORLD_SIZE=1", "MASTER_ADDR=127.0.0.1", "MASTER_PORT=29517")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	got, want := trainedSteps(t, dir), trainedSteps(t, alone)
	plans := map[string]bool{}
	if len(got) != steps || len(want) != steps {
		report()
		t.Fatalf("%d steps, %d uninterrupted, want %d", len(got), len(want), steps)
	}
	for i := range got {
		plans[got[i].Plan] = true
		if got[i].Step != i+1 || math.Abs(got[i].Loss-want[i].Loss) > 1e-4 {
			t.Fatalf("step %d: %+v, uninterrupted %+v", i+1, got[i], want[i])
		}
	}
	t.Logf("plans %v", plans)
	if len(plans) < 3 {
		report()
		t.Errorf("only the plans %v", plans)
	}
}

// pacerBinary returns the program under test.
func pacerBinary(t *testing.T) string {
	if bin := os.Getenv("PACER_BIN"); bin != "" {
		return bin
	}
	return selfAs(t, "pacer")
}

// syncBuffer is a buffer that a process and a test use at a time.
type syncBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *syncBuffer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *syncBuffer) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}
