package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/pacer-ml/pacer/cmd/internal/command"
	"github.com/pacer-ml/pacer/cmd/internal/fail"
	"github.com/pacer-ml/pacer/cmd/internal/query"
	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/perfmodel/spec/spectest"
	"github.com/pacer-ml/pacer/profiler"
	"github.com/pacer-ml/pacer/profiler/runner"
	"github.com/pacer-ml/pacer/profiler/store"
)

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
	errs, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	for sc := bufio.NewScanner(errs); sc.Scan(); {
		text.WriteString(sc.Text() + "\n")
		if strings.Contains(sc.Text(), ": 2 of 4 points: ") {
			if err := cmd.Process.Signal(syscall.SIGINT); err != nil {
				t.Fatal(err)
			}
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
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	for begin := time.Now(); ; time.Sleep(10 * time.Millisecond) {
		if _, err := os.Stat(filepath.Join(dir, "up")); err == nil {
			break
		} else if time.Since(begin) > spectest.Patience(30*time.Second) {
			t.Error("no point began")
			break
		}
	}
	for range 2 {
		if err := cmd.Process.Signal(syscall.SIGINT); err != nil {
			t.Fatal(err)
		}
		time.Sleep(spectest.Scaled(4 * sameInterrupt))
	}
	var exit *exec.ExitError
	if err := cmd.Wait(); !errors.As(err, &exit) || exit.ExitCode() != fail.Failed || !strings.Contains(text.String(), "campaign fake interrupted; its 0 points are stored") {
		t.Errorf("%v, want exit code 1\n%s", err, text.String())
	}
	if _, err := os.Stat(filepath.Join(dir, "ended")); err == nil {
		t.Error("the point had time to end")
	}
}

// tinyCampaign is one that a synthetic runner measures, and its measurementSetup.
func tinyCampaign(t *testing.T) (profiler.Campaign, measurementSetup) {
	t.Helper()
	text := `
name: tiny
models:
  - {name: gpt-a, kind: decoder, layers: 4, hidden: 128, ffn: 512, heads: 4, vocab: 1024, seq_len: 64}
space: {micro_batch: [1, 2, 4, 8]}
choose: grid
`
	camp, err := profiler.ReadCampaign("tiny.yaml", []byte(text), nil)
	if err != nil {
		t.Fatal(err)
	}
	m, err := assumed("h100", 1)
	if err != nil {
		t.Fatal(err)
	}
	truth, err := query.Analytic()
	if err != nil {
		t.Fatal(err)
	}
	return camp, measurementSetup{machine: m, runner: &runner.Synthetic{Truth: truth}, assumed: true}
}

// fullDisk keeps some measurements and no more.
type fullDisk struct{ room int }

func (d *fullDisk) Put(_ context.Context, ms ...spec.Measurement) error {
	if d.room -= len(ms); d.room < 0 {
		return store.ErrNoSpace
	}
	return nil
}

// TestProfileFullDisk: a sink that is full ends the campaign with exit code 1,
// and what was acknowledged before is in the summary.
func TestProfileFullDisk(t *testing.T) {
	camp, s := tinyCampaign(t)
	var out, errs bytes.Buffer
	app := &cli.App{
		Writer: &out, ErrWriter: &errs, Flags: command.GlobalFlags(), ExitErrHandler: func(*cli.Context, error) {},
		Action: func(c *cli.Context) error {
			o, err := profileOptions(c, camp, s, nil)
			if err != nil {
				return err
			}
			o.Sink = &fullDisk{room: 2}
			return measure(c, camp, s, o, nil)
		},
	}
	err := app.Run([]string{"pacer"})
	if !errors.Is(err, store.ErrNoSpace) || fail.Code(err) != fail.Failed {
		t.Errorf("%v, exit code %d; want %v and 1", err, fail.Code(err), store.ErrNoSpace)
	}
	if !strings.Contains(errs.String(), "tiny: 2 of 4 points: ") || strings.Contains(errs.String(), "tiny: 3 of 4 points: ") {
		t.Errorf("acknowledged are not two points:\n%s", errs.String())
	}
	if !strings.Contains(out.String(), "2 points of 4") {
		t.Errorf("the summary lacks the two points:\n%s", out.String())
	}
}

// TestProgressOnTerminal: one line that is drawn over, but points that are not
// ok stay.
func TestProgressOnTerminal(t *testing.T) {
	camp, s := tinyCampaign(t)
	points, _, err := s.points(camp)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	p := &campaignProgress{w: &out, camp: camp, redraw: true, done: make(chan struct{})}
	step := profiler.Step{Point: points[0], Why: "first of gpt-a", Seconds: 9}
	p.event(profiler.Event{State: profiler.State{Points: 4, ETASec: 36}, Next: &step})
	ok := spec.Measurement{Config: points[0].Config, Outcome: spec.OK, StepSec: []float64{.10, .11, .12, .10, .11, .12, .11},
		Env: map[string]string{profiler.EnvWall: "8.5", profiler.EnvThrottle: "power", profiler.EnvHalfWidth: "0.091"}}
	p.event(profiler.Event{State: profiler.State{Points: 4, Done: 1, DeviceSec: 8.5}, Last: &ok})
	oom := spec.Measurement{Config: points[1].Config, Outcome: spec.OOM, Reason: "needs 90 GiB of 80\nand more"}
	p.event(profiler.Event{State: profiler.State{Points: 4, Done: 2, Skipped: 1}, Last: &oom})
	p.finish()
	got := strings.ReplaceAll(out.String(), "\r\x1b[K", "<")
	lines := regexp.MustCompile(`<[^<]+`).FindAllString(got, -1)
	want := []string{
		"<0 of 4 points, 0 device-hours so far, 36.0 s to go | gpt-a dp=1,tp=1,pp=1,mb=1…",
		"<1 of 4 points, 0.0024 device-hours so far | last ok 0.110 s ±9.1 %, throttled",
		"<profile tiny: 2 of 3 points: gpt-a dp=1,tp=1,pp=1,mb=2,ga=1,precision=bf16 oom: needs 90 GiB of 80 (held 0.0 s, 0 device-hours so far)\n",
		"<2 of 3 points, 0 device-hours so far | last oom: needs 90 GiB of 80",
	}
	if strings.Join(lines, "|") != strings.Join(want, "|") {
		t.Errorf("drawn\n%q, want\n%q", lines, want)
	}
	if !strings.HasSuffix(got, "<") {
		t.Errorf("the line was not cleared at the end: %q", got)
	}
}

func TestHalfWidth(t *testing.T) {
	for text, want := range map[string]float64{"0.015": 0.015, "": 0, "0": 0, "NaN": 0, "x": 0} {
		m := spec.Measurement{Env: map[string]string{profiler.EnvHalfWidth: text}}
		if half, ok := halfWidth(m); ok != (want > 0) || ok && half != want {
			t.Errorf("%q: %g, %t", text, half, ok)
		}
	}
}

// TestTallyTellsDoubt keeps rows that no fit takes apart from the others.
func TestTallyTellsDoubt(t *testing.T) {
	m := spec.Measurement{Outcome: spec.OK, StepSec: []float64{1}, Doubt: "throttled"}
	clean := m
	clean.Doubt = ""
	tally := tallyRun("c", "1", []spec.Measurement{m, clean})
	if n := tally.Models[0]; n.Doubted != 1 || n.Outcomes.OK != 2 {
		t.Errorf("%+v, want 2 ok, 1 of them in doubt", n)
	}
	if said := lastResult(m); !strings.HasSuffix(said, "in doubt") {
		t.Error(said)
	}
}

func TestGroupRejected(t *testing.T) {
	reject := func(model, why, asked string) profiler.Rejected {
		return profiler.Rejected{Config: spec.Config{Model: spec.Model{Name: model}, Plan: spec.Plan{}.Normal()}, Why: why, UnusedValue: asked}
	}
	got := groupRejected([]profiler.Rejected{
		reject("a", "tp=2 does not divide 5 heads", ""),
		reject("b-7", "b-7: tp=4 does not divide 5 heads", ""),
		reject("a", "tp=8 does not divide 5 heads", ""),
		reject("a", "zero=1 needs dp > 1", ""),
		reject("a", "needs 8 devices", "shape=8"),
	})
	const plan = " dp=1,tp=1,pp=1,mb=1,ga=1"
	want := []rejectedGroup{
		{Why: "needs 8 devices", Count: 1, Example: "a" + plan, Asked: "shape=8"},
		{Why: "tp=N does not divide 5 heads", Count: 3, Example: "a" + plan},
		{Why: "zero=1 needs dp > 1", Count: 1, Example: "a" + plan},
	}
	if !slices.Equal(got, want) {
		t.Errorf("%+v, want %+v", got, want)
	}
}

func TestTallyRuns(t *testing.T) {
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	row := func(campaign, label, model string, o spec.Outcome, wall string, env ...string) spec.Measurement {
		m := spec.Measurement{Outcome: o, Source: sourcePrefix + campaign, At: at, Env: map[string]string{profiler.EnvRun: label, profiler.EnvWall: wall}}
		m.Config.Model.Name, m.Config.Accelerator.Name, m.Config.Plan = model, "acc", spec.Plan{DP: 2}.Normal()
		for _, k := range env {
			m.Env[k] = "yes"
		}
		at = at.Add(time.Minute)
		return m
	}
	runs := tallyRuns([]spec.Measurement{
		row("c", "2", "m", spec.OK, "36"),
		row("c", "1", "n", spec.OOM, "18"),
		row("c", "1", "m", spec.OK, "1800", profiler.EnvNoise, profiler.EnvShared),
		row("b", "1", "m", spec.Timeout, "nonsense"),
		row("c", "1", "m", spec.Failed, "-5", profiler.EnvThrottle),
	})
	if len(runs) != 3 || runs[0].Campaign != "b" || runs[1].Label != "1" || runs[2].Label != "2" {
		t.Fatalf("runs %+v", runs)
	}
	r := runs[1]
	if r.Points != 3 || r.Outcomes != (outcomeCount{OK: 1, OOM: 1, Failed: 1}) || r.HeldSec != 1818 || r.DeviceHours != 1.01 ||
		!r.First.Equal(time.Date(2026, 1, 2, 3, 5, 5, 0, time.UTC)) || r.Last.Sub(r.First) != 3*time.Minute {
		t.Errorf("run c/1: %+v", r)
	}
	if want := (modelTally{Model: "m", Accelerator: "acc", Points: 2, Outcomes: outcomeCount{OK: 1, Failed: 1}, Noisy: 1, Flagged: 2,
		DeviceHours: 1, HeldSec: 1800}); r.Models[0] != want {
		t.Errorf("model m of it: %+v, want %+v", r.Models[0], want)
	}
}

// TestE2ECPUSmoke measures for real: the campaign of two minutes, by the
// training worker, on the CPUs of this machine.
func TestE2ECPUSmoke(t *testing.T) {
	if testing.Short() {
		t.Skip("takes a minute")
	}
	needTorch(t)
	pacer := os.Getenv("PACER_BIN")
	if pacer == "" {
		pacer = selfAs(t, "pacer")
	}
	campaign := filepath.Join(moduleDir(t), "bench/campaigns/cpu-smoke.yaml")
	data, mark := t.TempDir(), "PACER_SMOKE_TEST="+filepath.Base(t.TempDir())+time.Now().Format("150405.000000000")
	want := plannedPoints(t, pacer, campaign)
	cmd := exec.Command(pacer, "--data", data, "profile", "run", campaign, "--max-wall", "20m", "--devices", "cpu") // all points, however busy the machine is
	cmd.Env = append(os.Environ(), mark, "XDG_CACHE_HOME="+t.TempDir())
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
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
			t.Errorf("%s: %s %s, %d steps, %g bytes, %v", pointName(m.Config), m.Outcome, m.Reason, len(m.StepSec), m.PeakBytes, m.Env)
		}
	}
	if len(rows) != want {
		t.Errorf("%d points are stored, want %d\n%s", len(rows), want, out)
	}
}

// plannedPoints returns how many points profile plan says a campaign has.
func plannedPoints(t *testing.T, pacer, campaign string) int {
	t.Helper()
	out, err := exec.Command(pacer, "--data", t.TempDir(), "profile", "plan", campaign, "--devices", "cpu", "-o", "json").Output()
	var plan struct{ Points []planPoint }
	if err == nil {
		err = json.Unmarshal(out, &plan)
	}
	if err != nil || len(plan.Points) == 0 {
		t.Fatalf("%v: no points in\n%s", err, out)
	}
	return len(plan.Points)
}

// needTorch skips where no python has PyTorch, but not where everything must
// be there.
func needTorch(t *testing.T) {
	t.Helper()
	r, err := runner.NewTorchrun(runner.TorchrunOptions{Machine: profiler.Machine{CPU: true, Devices: []int{0}}})
	if err == nil {
		_, err = r.Setup(context.Background())
	}
	if err != nil && os.Getenv("CI") == "true" {
		t.Fatal(err)
	}
	if err != nil {
		t.Skip(err)
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
