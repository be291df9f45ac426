package main

import (
	"context"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/pacer-ml/pacer/cmd/internal/fail"
	"github.com/pacer-ml/pacer/perfmodel/spec/spectest"
	"github.com/pacer-ml/pacer/scheduler/live/recording"
)

// recordedSlurm puts commands into the PATH that show recorded nodes and jobs: one held, one running. They refuse every
// change.
func recordedSlurm(t *testing.T) {
	t.Helper()
	dir := t.TempDir()
	for _, name := range []string{"nodes", "jobs"} {
		text := spectest.ReadFile(t, filepath.Join(moduleDir(t), "scheduler/live/slurm/testdata", name+"-v0.0.40.json"))
		writeFile(t, filepath.Join(dir, name+".json"), strings.ReplaceAll(string(text), "model=m,", "model=GPT2-small,"))
	}
	for name, script := range map[string]string{
		"sinfo":    "echo slurm 24.05.1",
		"squeue":   "cat " + dir + "/jobs.json",
		"scontrol": `if [ "$1" = show ]; then cat ` + dir + "/nodes.json; else echo refused >&2; exit 1; fi",
	} {
		spectest.WriteFile(t, filepath.Join(dir, name), []byte("#!/bin/sh\n"+script+"\n"), 0o755)
	}
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
}

var scheduleArgs = []string{"schedule", "--on", "slurm", "--policy", "optimus", "--gres", "a100=a100-80gb", "--gres", "v100=v100-32gb"}

// TestE2EScheduleMetrics scrapes a scheduler on a Slurm that refuses every change: it counts what failed. With a performance
// server that hangs it decides all the same, and leaves the job that runs as it is, so that there is no room for the other.
func TestE2EScheduleMetrics(t *testing.T) {
	recordedSlurm(t)
	hangs, err := net.Listen("tcp", "127.0.0.1:0") // accepts connections, and answers nothing
	if err != nil {
		t.Fatal(err)
	}
	defer hangs.Close()
	t.Run("refused", func(t *testing.T) { scrapesSchedule(t, 1, 2, 0) })
	t.Run("server hangs", func(t *testing.T) {
		scrapesSchedule(t, 0, 0, 1, "--server", "http://"+hangs.Addr().String())
	})
}

// scrapesSchedule scrapes a scheduler until it has decided and so many changes failed. Then so many jobs are to be off target, and
// so many planners faulty.
func scrapesSchedule(t *testing.T, failed, offTarget, faulty float64, args ...string) {
	ctx, stop := context.WithCancel(t.Context())
	var stdout, stderr syncBuffer
	ended := make(chan int)
	data := t.TempDir()
	go func() {
		ended <- run(ctx, append(append([]string{"pacer", "--data", data}, scheduleArgs...), append(args, "--metrics", "127.0.0.1:0")...), nil, &stdout, &stderr)
	}()
	url, text := "", ""
	value := func(name string) float64 {
		found := regexp.MustCompile(`(?m)^` + regexp.QuoteMeta(name) + ` (\S+)$`).FindStringSubmatch(text)
		if found == nil {
			return -1
		}
		v, err := strconv.ParseFloat(found[1], 64)
		if err != nil {
			t.Error(err)
		}
		return v
	}
	for end := time.Now().Add(spectest.Patience(10 * time.Second)); ; time.Sleep(200 * time.Millisecond) {
		if found := regexp.MustCompile(`metrics at (\S+)`).FindStringSubmatch(stderr.String()); found != nil {
			url = found[1]
			text = scrape(t, url)
		}
		if value(`pacer_schedule_decisions_total{result="made"}`) > 0 && value(`pacer_schedule_actions_total{result="failed"}`) >= failed &&
			max(value(`pacer_schedule_faulty{object="planner"}`), 0) == faulty {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("no decision, or no failed action:\n%s\n%s\n%s", text, stdout.String(), stderr.String())
		}
	}
	for name, want := range map[string]float64{
		`pacer_schedule_jobs{state="held"}`: 1, `pacer_schedule_jobs{state="running"}`: 1, `pacer_schedule_jobs{state="stopping"}`: 0,
		`pacer_schedule_jobs_off_target`:              offTarget, // nothing could be written
		`pacer_schedule_actions_total{result="done"}`: 0, `pacer_schedule_decisions_total{result="failed"}`: 0,
		`pacer_schedule_decision_seconds_count`:              value(`pacer_schedule_decisions_total{result="made"}`),
		`pacer_schedule_observations_total{result="failed"}`: 0, `pacer_schedule_job_changes_total{change="started"}`: 0, `pacer_schedule_refits_total`: 0,
	} {
		if got := value(name); got != want {
			t.Errorf("%s is %g, want %g", name, got, want)
		}
	}
	if age := value("pacer_schedule_state_age_seconds"); !(age >= 0) || age > 60 {
		t.Errorf("the state is %g s old", age)
	}
	if got := value(`pacer_schedule_actions_total{result="failed"}`); failed == 0 && got > 0 {
		t.Errorf("%g changes failed, want none", got)
	}
	if warned := strings.Contains(stderr.String(), "warning: the server does not answer, models of this process do"); warned != (faulty > 0) {
		t.Errorf("warning of the server is %v: %s", warned, stderr.String())
	}
	stop()
	if code := <-ended; code != 0 {
		t.Errorf("exit code %d: %s", code, stderr.String())
	}
	for until := time.Now().Add(spectest.Patience(10 * time.Second)); ; time.Sleep(200 * time.Millisecond) {
		resp, err := http.Get(url)
		if err != nil {
			break
		}
		_ = resp.Body.Close()
		if time.Now().After(until) { // before that, another test may have the port
			t.Fatal("the metrics are served after the end")
		}
	}
}

func scrape(t *testing.T, url string) string {
	t.Helper()
	res, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode != http.StatusOK {
		t.Fatalf("status %d, %v", res.StatusCode, err)
	}
	return string(b)
}

// TestScheduleMetricsAddress: an address that cannot be used is an error that names it.
func TestScheduleMetricsAddress(t *testing.T) {
	recordedSlurm(t)
	var stdout, stderr syncBuffer
	code := run(t.Context(), append(append([]string{"pacer", "--data", t.TempDir()}, scheduleArgs...), "--dry-run", "--once", "--metrics", "nowhere"), nil, &stdout, &stderr)
	if code != fail.Failed || !strings.Contains(stderr.String(), `--metrics "nowhere"`) {
		t.Errorf("exit code %d: %s", code, stderr.String())
	}
}

// TestScheduleRecord: each run of a scheduler appends a session to the recording, and no run writes to another file, nor to
// one that another process writes.
func TestScheduleRecord(t *testing.T) {
	recordedSlurm(t)
	path, data := filepath.Join(t.TempDir(), "week.jsonl"), t.TempDir()
	schedule := func(args ...string) (code int, errors string) {
		t.Helper()
		var stdout, stderr syncBuffer
		code = run(t.Context(), append(append([]string{"pacer", "--data", data}, scheduleArgs...), args...), nil, &stdout, &stderr)
		return code, stderr.String()
	}
	for range 2 {
		if code, text := schedule("--once", "--record", path); code != fail.Failed || !strings.Contains(text, "writes failed") { // this Slurm refuses all
			t.Fatalf("exit code %d: %s", code, text)
		}
	}
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	r, err := recording.Read(f, path, recording.Window{})
	if err != nil || r.Sessions != 2 || r.Cluster.Devices() < 1 || len(r.Jobs) != 2 || r.Policies[0] != "optimus" || r.Last.StartSec != 60 || !r.Last.Even {
		t.Fatalf("%+v, %v", r, err)
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX); err != nil {
		t.Fatal(err)
	}
	if code, text := schedule("--once", "--record", path); code != fail.Failed || !strings.Contains(text, "another pacer writes "+path) {
		t.Errorf("exit code %d: %s", code, text)
	}
	other := filepath.Join(t.TempDir(), "jobs.csv")
	writeFile(t, other, "job_id,submit_s\n")
	if code, text := schedule("--once", "--record", other); code != fail.Failed || !strings.Contains(text, "jobs.csv:1: ") || !strings.Contains(text, "is no recording") {
		t.Errorf("exit code %d: %s", code, text)
	}
	for _, flag := range []string{"--dry-run", "--record="} {
		if code, text := schedule("--once", "--record", path, flag); code != fail.Usage || !strings.Contains(text, "--record wants a FILE") {
			t.Errorf("%s: exit code %d: %s", flag, code, text)
		}
	}
}
