package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/pacer-ml/pacer/perfmodel/spec/spectest"
	"github.com/pacer-ml/pacer/scheduler/live/slurm/slurmtest"
)

// TestE2ESlurmPage runs the commands of the guide on a real Slurm.
func TestE2ESlurmPage(t *testing.T) {
	slurmtest.Start(t, 2, 0)
	runPage(t, "docs/guides/slurm.md", 2)
}

// TestE2ESlurmSpool submits by plain sbatch to a real Slurm with the job_submit.lua of pacer: the second submission of a job
// shows what pacer said of the first.
func TestE2ESlurmSpool(t *testing.T) {
	spool, pacer := filepath.Join(t.TempDir(), "spool"), pacerBinary(t)
	advise := func(args ...string) string {
		t.Helper()
		cmd := exec.Command(pacer, append([]string{"advise", "--spool", spool, "--data", t.TempDir()}, args...)...)
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("advise %v: %v\n%s", args, err, out)
		}
		return string(out)
	}
	real := slurmtest.Start(t, 2, 0, advise("--lua"))
	script := filepath.Join(t.TempDir(), "job.sh")
	writeFile(t, script, "#!/bin/bash\n# \"quoted\" \\ and ünicode\n#SBATCH -o /dev/null --hold\ntrue\n")
	const comment = "--comment=pacer:model=GPT2-small,batch=64"
	submit := func(args ...string) string { return real.Run("sbatch", append(args, script)...) }
	if out := submit("--gres=gpu:1", comment); !strings.HasPrefix(out, "Submitted") { // the spool does not exist yet
		t.Errorf("without a spool: %s", out)
	}
	if out := advise("--once"); out != "" {
		t.Errorf("of an empty spool: %s", out)
	}
	for name, args := range map[string][]string{"known": {"-J", "night", "--gres=gpu:a100:1", comment}, "wrong": {"-G1", "--comment=pacer:model=nosuch"},
		"other": {"--gres=gpu:1"}, "no GPU": {comment}} {
		if out := submit(args...); !strings.HasPrefix(out, "Submitted") {
			t.Errorf("%s: %s", name, out)
		}
	}
	writeFile(t, filepath.Join(spool, "new", "x.json"), `{"key":"../../etc/passwd"}`)
	out := advise("--once", "-a", "a100-80gb")
	for _, want := range []string{"user root\npacer: night: GPT2-small, batch 64, on 1 x A100-80GB-SXM (1)", "pacer: best: 2 devices (2), dp=2,", `unknown model "nosuch"`,
		`warning: submission: key "../../etc/passwd" is not what job_submit.lua writes`} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
	if n := strings.Count(out, "user "); n != 2 {
		t.Errorf("%d submissions, want 2:\n%s", n, out)
	}
	if left, err := filepath.Glob(filepath.Join(spool, "new", "*")); err != nil || len(left) > 0 {
		t.Errorf("files left %v, %v", left, err)
	}
	if out := submit("-J", "again", "--gres=gpu:a100:1", comment); !strings.Contains(out, "sbatch: pacer: best: 2 devices (2), dp=2,") {
		t.Errorf("second submission: %s", out)
	}
	if out := submit("-G1", "--comment=pacer:model=nosuch"); !strings.Contains(out, `unknown model "nosuch"`) || !strings.Contains(out, "Submitted") {
		t.Errorf("second submission of a wrong job: %s", out)
	}
	rows := json.NewDecoder(strings.NewReader(advise("--once", "-a", "a100-80gb", "--output", "json")))
	for _, want := range []string{"again", ""} {
		var row struct {
			User, Job, Error string
			Devices          int
			Best             *struct{ Devices int }
		}
		if err := rows.Decode(&row); err != nil || row.User != "root" || row.Job != want || (want == "") != (row.Error != "") || want != "" && (row.Devices != 1 || row.Best.Devices != 2) {
			t.Errorf("%+v, %v", row, err)
		}
	}
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
	job := fmt.Sprintf("#!/bin/bash\nexport PAUSE=0.25\nexec %s run -- /usr/bin/python3 %s %s %d\n", pacer, script, dir, steps)
	id := real.Submit(job, "-n1", "-N1", "--gres=gpu:1", fmt.Sprintf("--comment=pacer:model=GPT2-small,batch=8,steps=%d,progress=%s", steps, filepath.Join(dir, "progress.json")))

	data := t.TempDir()
	record := filepath.Join(data, "record.jsonl")
	var log syncBuffer
	// under starts pacer schedule with a policy; end ends it, and jobs run on.
	under := func(policy string) (end func()) {
		args := []string{"schedule", "--on", "slurm", "--policy", policy, "--gres", "a100=a100-80gb", "--start-cost", "5s", "--data", data, "--record", record}
		cmd := exec.Command(pacer, args...)
		cmd.Stdout, cmd.Stderr = &log, &log
		fmt.Fprintf(&log, "$ pacer %s\n", strings.Join(args, " "))
		mustStart(t, cmd)
		t.Cleanup(func() { _ = cmd.Process.Kill() })
		return func() {
			mustSignal(t, cmd.Process, syscall.SIGTERM)
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
	// trains waits for twenty more steps, and that so many plans have run by then.
	trains := func(what string, plans int) {
		from := len(trainedSteps(t, dir))
		until(what, func() bool {
			done, seen := trainedSteps(t, dir), map[string]bool{}
			for _, s := range done {
				seen[s.Plan] = true
			}
			return len(done) >= from+20 && len(seen) >= plans
		})
	}
	state := func(id string) string { return real.Run("scontrol", "-o", "show", "job", id) }
	end := under("optimus") // all devices to the only job
	trains("training", 1)
	end()
	other := real.Submit("#!/bin/bash\nsleep 5\n", "-n1", "-N1", "--gres=gpu:1", "--comment=pacer:model=GPT2-small,batch=8,steps=100000")
	end = under("pacer:price=12:makespan=1") // which makes room, since others are said to wait
	until("the other job ends", func() bool { return strings.Contains(state(other), "JobState=COMPLETED") })
	trains("training on fewer devices", 2)
	end()
	end = under("rubick")
	trains("training after the other job", 3)
	spectest.WriteFile(t, filepath.Join(dir, "hurry"), nil, 0o644)
	until("the job ends", func() bool { return strings.Contains(state(id), "JobState=COMPLETED") })
	until("the end is recorded", func() bool {
		text, err := os.ReadFile(record)
		return err == nil && strings.Contains(string(text), `"ended":["`+id)
	})
	end()

	var replayed, warned syncBuffer
	code := run(t.Context(), []string{"pacer", "--data", data, "simulate", "--replay", record, "--policy", "fifo,rubick"}, nil, &replayed, &warned)
	t.Logf("replayed:\n%s%s", replayed.String(), warned.String())
	if code != 0 || !regexp.MustCompile(`(?m)^3 policies \[live\] +2 `).MatchString(replayed.String()) ||
		!regexp.MustCompile(`(?m)^fifo +2 `).MatchString(replayed.String()) || !strings.Contains(warned.String(), "1 job that reported progress ran at") {
		t.Errorf("replay: exit code %d", code)
	}

	alone := t.TempDir()
	cmd := exec.Command(pacer, "run", "--steps-file", filepath.Join(alone, "progress.json"), "--", "/usr/bin/python3", script, alone, fmt.Sprint(steps))
	cmd.Env = append(os.Environ(), "PACER_PLAN=dp=1,mb=8", "RANK=0", "WORLD_SIZE=1", "MASTER_ADDR=127.0.0.1", "MASTER_PORT=29517")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	got, want := trainedSteps(t, dir), trainedSteps(t, alone)
	if len(got) != steps || len(want) != steps {
		report()
		t.Fatalf("%d steps, %d uninterrupted, want %d", len(got), len(want), steps)
	}
	trained := sameTraining(t, got, want)
	keepTranscript(t, "live-slurm.txt", fmt.Sprintf("$ sinfo\n%s\n$ sbatch --hold -n1 -N1 --gres=gpu:1 ... job.sh\n%s\n%s\nWhat the job printed:\n\n%s\nWhat it trained:\n\n%s\n$ pacer simulate --replay DIR/record.jsonl --policy fifo,rubick\n%s",
		real.Run("sinfo"), job, log.String(), real.Output(id), trained, replayed.String()), data, "DIR", dir, "JOB", pacer, "pacer", script, "train.py")
}

// TestE2ESlurmPartlyDone: a rank of a job ends well, and the other waits for ever. The job is stopped after the limit of its
// comment, and ends when it is started again.
func TestE2ESlurmPartlyDone(t *testing.T) {
	real := slurmtest.Start(t, 1, 0)
	pacer, dir := pacerBinary(t), t.TempDir()
	script := filepath.Join(dir, "rank.sh")
	writeFile(t, script, "[ -z \"$SLURM_RESTART_COUNT\" ] && [ \"$RANK\" = 1 ] || exit 0\ntrap 'exit 0' TERM\nsleep 100000 & wait\n")
	id := real.Submit(fmt.Sprintf("#!/bin/bash\nexec %s run -- bash %s\n", pacer, script), "-n2", "-N1", "--gres=gpu:2",
		fmt.Sprintf("--comment=pacer:model=GPT2-small,batch=8,steps=100,plan=dp=2+mb=4,progress=%s/steps.json,release-after=1s", dir))
	var log syncBuffer
	cmd := exec.Command(pacer, "schedule", "--on", "slurm", "--policy", "fifo", "--gres", "a100=a100-80gb", "--data", t.TempDir())
	cmd.Stdout, cmd.Stderr = &log, &log
	mustStart(t, cmd)
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	state := func() string { return real.Run("scontrol", "-o", "show", "job", id) }
	for end := time.Now().Add(spectest.Patience(30 * time.Second)); !strings.Contains(state(), "JobState=COMPLETED"); time.Sleep(200 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%s\n%s\n%s", state(), log.String(), real.Output(id))
		}
	}
	if text := state(); !strings.Contains(text, "Restarts=1 ") || !strings.Contains(log.String(), "partly done for") {
		t.Errorf("%s\n%s\n%s", text, log.String(), real.Output(id))
	}
	if left, err := filepath.Glob(filepath.Join(dir, "steps.json.ended*")); err != nil || len(left) > 0 {
		t.Errorf("files left: %q, %v", left, err)
	}
}

// TestE2ESlurmRefit: jobs under pacer run and pacer watch post their step times to a server, which fits the model anew. The
// scheduler sees that, and decides on the next job by what was measured: from two configurations on, see perfmodel.Card.
func TestE2ESlurmRefit(t *testing.T) {
	real := slurmtest.Start(t, 1, 0)
	pacer, dir := pacerBinary(t), t.TempDir()
	server := startServing(t, pacer, t.TempDir())
	const steps, measured = 1000, 0.25 // seconds of a step with a batch of 8
	hook := filepath.Join(dir, "hook.sh")
	writeFile(t, hook, `(echo '{"event":"start","version":1,"world":1,"device":"cuda","parameters":124439808}'
for i in $(seq 30); do echo '{"event":"step","n":'$i',"sec":'$1',"end":'$i',"calls":1,"backwards":'$PACER_ACCUM_STEPS',"allocated":1e9}'; done) >"$PACER_HOOK_OUT/rank0-1.jsonl"
`)
	var log syncBuffer
	cmd := exec.Command(pacer, "--data", t.TempDir(), "schedule", "--on", "slurm", "--policy", "srtf", "--gres", "a100=a100-80gb", "--start-cost", "1s", "--server", server.url)
	cmd.Stdout, cmd.Stderr = &log, &log
	mustStart(t, cmd)
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	// train submits a job, waits until there have been some fits, and returns the seconds that the scheduler expected of it.
	train := func(batch, fits int) (sec float64) {
		t.Helper()
		id := real.Submit(fmt.Sprintf("#!/bin/bash\nexec %s run --tasks node -- %s --data %s watch --server %s -m GPT2-small -a a100-80gb -- sh %s %g\n",
			pacer, pacer, dir, server.url, hook, measured*float64(batch)/8), "-n1", "--gres=gpu:1", fmt.Sprintf("--comment=pacer:model=GPT2-small,batch=%d,steps=%d", batch, steps))
		decided := regexp.MustCompile(`job ` + id + ` +Decided .*: next in order, key (\S+)`)
		for end := time.Now().Add(spectest.Patience(30 * time.Second)); ; time.Sleep(200 * time.Millisecond) {
			found := decided.FindStringSubmatch(log.String())
			if found != nil && strings.Count(log.String(), "Refitted") >= fits {
				sec, err := strconv.ParseFloat(found[1], 64)
				if err != nil {
					t.Error(err)
				}
				return sec
			}
			if time.Now().After(end) {
				t.Fatalf("no decision, or not %d fits:\n%s\njob:\n%s", fits, log.String(), real.Output(id))
			}
		}
	}
	before := train(8, 1)
	train(16, 2)
	after := train(8, 2)
	if before > steps*measured/2 || math.Abs(math.Log(after/(steps*measured))) > math.Log(1.5) {
		t.Errorf("the scheduler expects %g s before the fit, and %g s after it; measured %g s for each of %d steps\n%s", before, after, measured, steps, log.String())
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
