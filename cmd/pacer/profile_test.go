package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/pacer-ml/pacer/cmd/internal/campaign"
	"github.com/pacer-ml/pacer/cmd/internal/fail"
	"github.com/pacer-ml/pacer/cmd/internal/query"
	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/perfmodel/spec/spectest"
	"github.com/pacer-ml/pacer/profiler"
	"github.com/pacer-ml/pacer/profiler/runner"
	"github.com/pacer-ml/pacer/profiler/store"
)

func mustStart(t *testing.T, cmd *exec.Cmd) {
	t.Helper()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
}

func mustSignal(t *testing.T, p *os.Process, s os.Signal) {
	t.Helper()
	if err := p.Signal(s); err != nil {
		t.Fatal(err)
	}
}

// TestE2EInterruptedCampaign: Ctrl-C keeps what was acknowledged, says how to go
// on, and the same command does.
func TestE2EInterruptedCampaign(t *testing.T) {
	pacer, data, file := selfAs(t, "pacer"), t.TempDir(), filepath.Join(t.TempDir(), "slow.yaml")
	writeFile(t, file, `
name: slow
models:
  - {name: gpt-a, kind: decoder, layers: 4, hidden: 128, ffn: 512, heads: 4, vocab: 1024, seq_len: 64}
accelerator: h100
space: {micro_batch: [1, 2, 4, 8]}
choose: grid
runner: {name: synthetic, delay: 150ms}
`)
	cmd := exec.Command(pacer, "--data", data, "profile", "run", file)
	var out bytes.Buffer
	cmd.Stdout = &out
	var text strings.Builder
	for line := range start(t, cmd) {
		text.WriteString(line + "\n")
		if strings.Contains(line, ": 2 of 4 points: ") {
			mustSignal(t, cmd.Process, syscall.SIGINT)
		}
	}
	var exit *exec.ExitError
	if err := cmd.Wait(); !errors.As(err, &exit) || exit.ExitCode() != fail.Failed {
		t.Errorf("%v, want exit code 1", err)
	}
	if want := "campaign slow interrupted; its 2 points are stored, the same command goes on"; !strings.Contains(text.String(), want) {
		t.Errorf("%s\nlacks %q", text.String(), want)
	}
	if want := "2 points of 4"; !strings.Contains(out.String(), want) {
		t.Errorf("the summary lacks %q:\n%s", want, out.String())
	}
	all, err := exec.Command(pacer, "--data", data, "profile", "run", file).CombinedOutput()
	if err != nil || !strings.Contains(string(all), "slow: 4 of 4 points: ") || strings.Contains(string(all), "slow: 2 of 4 points: ") {
		t.Errorf("%v: the same command did not go on:\n%s", err, all)
	}
}

// fakeTorch is a python3 that says it has torch. For anything else it runs lines
// of shell, with the result's file in $out and a directory of its own in $dir.
func fakeTorch(t *testing.T, lines string) (python, dir string) {
	t.Helper()
	dir = t.TempDir()
	python = filepath.Join(dir, "python3")
	writeFile(t, python, `#!/bin/sh
dir='`+dir+`' features=
while [ $# -gt 0 ]; do
  case "$1" in
  --out) out=$2; shift;;
  --features) features=1;;
  esac
  shift
done
if [ -n "$features" ]; then
  echo '{"version":1,"python":"3.99","torch":"9.9","torchrun":true,"features":{}}' >"$out"
  exit 0
fi
`+lines+"\n")
	if err := os.Chmod(python, 0o755); err != nil {
		t.Fatal(err)
	}
	return python, dir
}

// torchCampaign returns a command that runs points with a fake torch.
func torchCampaign(t *testing.T, python string) (run func() *exec.Cmd, data string) {
	t.Helper()
	pacer, file := selfAs(t, "pacer"), filepath.Join(t.TempDir(), "torch.yaml")
	data = t.TempDir()
	writeFile(t, file, `
name: fake
models:
  - {name: gpt-a, kind: decoder, layers: 2, hidden: 32, ffn: 64, heads: 2, vocab: 128, seq_len: 16}
space: {micro_batch: [1, 2, 4]}
choose: grid
runner: torchrun
`)
	return func() *exec.Cmd {
		cmd := exec.Command(pacer, "--data", data, "profile", "run", file, "--devices", "cpu")
		cmd.Env = append(os.Environ(), "PACER_PYTHON="+python)
		return cmd
	}, data
}

// TestE2EInterruptedTwice: a second Ctrl-C leaves the point no time to end.
func TestE2EInterruptedTwice(t *testing.T) {
	python, dir := fakeTorch(t, `trap 'sleep 60; : >"$dir/ended"; exit' TERM; : >"$dir/up"; while :; do sleep 0.05; done`)
	run, _ := torchCampaign(t, python)
	cmd := run()
	var text bytes.Buffer
	cmd.Stderr = &text
	mustStart(t, cmd)
	for begin := time.Now(); ; time.Sleep(10 * time.Millisecond) {
		if _, err := os.Stat(filepath.Join(dir, "up")); err == nil {
			break
		} else if time.Since(begin) > spectest.Patience(30*time.Second) {
			t.Error("no point began")
			break
		}
	}
	for range 2 {
		mustSignal(t, cmd.Process, syscall.SIGINT)
		time.Sleep(spectest.Scaled(time.Second))
	}
	var exit *exec.ExitError
	if err := cmd.Wait(); !errors.As(err, &exit) || exit.ExitCode() != fail.Failed || !strings.Contains(text.String(), "campaign fake interrupted; its 0 points are stored") {
		t.Errorf("%v, want exit code 1\n%s", err, text.String())
	}
	if _, err := os.Stat(filepath.Join(dir, "ended")); err == nil {
		t.Error("the point had time to end")
	}
}

// TestE2ECPUSmoke measures for real: the campaign of two minutes, by the
// training worker, on the CPUs of this machine.
func TestE2ECPUSmoke(t *testing.T) {
	if testing.Short() {
		t.Skip("takes a minute")
	}
	needTorch(t)
	pacer := pacerBinary(t)
	file := filepath.Join(moduleDir(t), "bench/campaigns/cpu-smoke.yaml")
	data, mark := t.TempDir(), "PACER_SMOKE_TEST="+filepath.Base(t.TempDir())+time.Now().Format("150405.000000000")
	want := plannedPoints(t, pacer, file)
	cmd := exec.Command(pacer, "--data", data, "profile", "run", file, "--max-wall", "20m", "--devices", "cpu") // all points, however busy the machine is
	cmd.Env = append(os.Environ(), mark, "XDG_CACHE_HOME="+t.TempDir())
	out, runErr := cmd.CombinedOutput()
	if left := processesWith(t, mark); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
	db, err := store.Open(filepath.Join(data, "store"), store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	rows, err := query.RowsOf(context.Background(), db, store.Filter{Sources: []string{"campaign/cpu-smoke"}})
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range rows {
		if m.Outcome != spec.OK || m.MedianStepSec() <= 0 || m.PeakBytes <= 0 || m.Env["torch"] == "" {
			t.Errorf("%s: %s %s, %d steps, %g bytes, %v", campaign.PointName(m.Config), m.Outcome, m.Reason, len(m.StepSec), m.PeakBytes, m.Env)
		}
	}
	latest := profiler.Latest(rows)
	if n := len(latest); n != want { // a point in doubt is measured once more
		t.Errorf("%d points are stored, want %d\n%s", n, want, out)
	}
	if i := slices.IndexFunc(latest, func(m spec.Measurement) bool {
		return m.Doubt != "" && !strings.Contains(m.Doubt, "other processes used")
	}); i >= 0 {
		t.Errorf("%s is in doubt: %s", campaign.PointName(latest[i].Config), latest[i].Doubt)
	}
	if !slices.ContainsFunc(latest, func(m spec.Measurement) bool { return m.Doubt == "" }) {
		// Other programs took the CPUs at every point, and the command must say so.
		var exit *exec.ExitError
		if !errors.As(runErr, &exit) || exit.ExitCode() != fail.Partial || !bytes.Contains(out, []byte("none of its "+strconv.Itoa(want)+" points is usable")) {
			t.Errorf("every point is in doubt: %v, want exit code 4 and a message\n%s", runErr, out)
		}
	} else if runErr != nil {
		t.Errorf("%v\n%s", runErr, out)
	}
}

// plannedPoints returns how many points profile plan says a campaign has.
func plannedPoints(t *testing.T, pacer, file string) int {
	t.Helper()
	out, err := exec.Command(pacer, "--data", t.TempDir(), "profile", "plan", file, "--devices", "cpu", "-o", "json").Output()
	var plan struct{ Points []campaign.PlanPoint }
	if err == nil {
		err = json.Unmarshal(out, &plan)
	}
	if err != nil || len(plan.Points) == 0 {
		t.Fatalf("%v: no points in\n%s", err, out)
	}
	return len(plan.Points)
}

// needTorch ends a test where no python has PyTorch.
func needTorch(t *testing.T) {
	t.Helper()
	r, err := runner.NewTorchrun(runner.TorchrunOptions{Machine: profiler.Machine{CPU: true, Devices: []int{0}}})
	if err == nil {
		_, err = r.Setup(context.Background())
	}
	if err != nil {
		spectest.Lacks(t, err)
	}
}

// processesWith returns the command lines of the processes with a setting in
// their environment.
func processesWith(t *testing.T, setting string) (found []string) {
	t.Helper()
	dirs, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		t.Fatal(err)
	}
	for _, dir := range dirs {
		if env, err := os.ReadFile(dir + "/environ"); err == nil && bytes.Contains(env, []byte(setting)) {
			line, _ := os.ReadFile(dir + "/cmdline")
			found = append(found, string(bytes.ReplaceAll(line, []byte{0}, []byte(" "))))
		}
	}
	return found
}
