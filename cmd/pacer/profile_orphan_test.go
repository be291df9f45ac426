//go:build linux

package main

import (
	"bytes"
	cryptorand "crypto/rand"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/pacer-ml/pacer/cmd/internal/campaign"
	"github.com/pacer-ml/pacer/cmd/internal/query"
	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/perfmodel/spec/spectest"
	"github.com/pacer-ml/pacer/profiler"
	"github.com/pacer-ml/pacer/profiler/store"
)

// A launcher like torchrun and its ranks, which print the log of Megatron-LM. Like those of torchrun, the ranks end when one
// of them fails.
const (
	launcherProgram = `
import subprocess, sys, time
n = int(sys.argv[1])
ranks = [subprocess.Popen([sys.executable, sys.argv[2], str(r)] + sys.argv[3:]) for r in range(n)]
while True:
    codes = [p.poll() for p in ranks]
    if any(codes):
        for p in ranks:
            p.kill()
        sys.exit(next(c for c in codes if c) & 255)
    if None not in codes:
        sys.exit(0)
    time.sleep(0.01)
`
	rankProgram = `
import sys, time
rank, steps, batch = map(int, sys.argv[1:4])
for i in range(steps):
    time.sleep(0.02)
    if rank == 0:
        print(f"iteration {i + 1}/ {steps} | elapsed time per iteration (ms): 20.0 | global batch size: {batch} |", flush=True)
`
)

// TestE2EKilledProcesses kills random sets of pacer, its guard, its supervisor, the launcher and its ranks with SIGKILL, and
// starts the campaign again until it is done. After pacer is killed, no process is left within 5 seconds. No row that was
// said to be stored is lost, and no point has two usable rows. 8 kills, 200 with PACER_SOAK set.
func TestE2EKilledProcesses(t *testing.T) {
	python, err := exec.LookPath("/usr/bin/python3")
	if err != nil {
		spectest.Lacks(t, "no /usr/bin/python3")
	}
	kills := 8
	if os.Getenv("PACER_SOAK") != "" {
		kills = 200
	}
	dir := t.TempDir()
	writeFile(t, filepath.Join(dir, "launch.py"), launcherProgram)
	writeFile(t, filepath.Join(dir, "rank.py"), rankProgram)
	file := filepath.Join(dir, "orphans.yaml")
	writeFile(t, file, fmt.Sprintf(`
name: orphans
models: [{name: gpt-a, kind: decoder, layers: 2, hidden: 32, ffn: 64, heads: 2, vocab: 128, seq_len: 16}]
space: {shapes: [1, 2], micro_batch: [1, 2, 4, 8]}
choose: grid
runner:
  name: command
  command: "%s %s/launch.py {nproc} %s/rank.py {steps} {gbs}"
  warmup_steps: 2
  timed_steps: 10
`, python, dir, dir))
	began, done, campaigns := time.Now(), 0, 0
	r := rand.New(rand.NewPCG(22, 6))
	for done < kills {
		k := &processKills{pacer: selfAs(t, "pacer"), file: file, data: t.TempDir(), mark: "PACER_KILL_TEST=" + cryptorand.Text(), random: r}
		for range 3 {
			if done < kills && k.session(t, true) {
				done++
			}
		}
		for k.pacerKilled = true; k.pacerKilled; { // until it ends by itself
			k.session(t, false)
		}
		k.check(t)
		campaigns++
	}
	t.Logf("%d campaigns, %d sets of processes killed, in %s", campaigns, done, time.Since(began).Round(time.Second))
}

// processKills is a campaign with processes that are killed.
type processKills struct {
	pacer, file, data string
	mark              string // variable of all its processes
	random            *rand.Rand
	pacerKilled       bool           // in the last session
	sessions          int            // in which pacer was killed
	said              map[string]int // lines of points that were said to be stored, without their numbers
}

// saidOrphans is the line of a stored point: model, plan and outcome.
var saidOrphans = regexp.MustCompile(`^profile orphans: \d+ of \d+ points: (\S+ \S+ (ok|failed|oom|timeout))\b`)

// session runs pacer. If kill is set, it kills a random set of processes at a random moment, and reports whether there were
// any.
func (k *processKills) session(t *testing.T, kill bool) (killed bool) {
	t.Helper()
	cmd := exec.Command(k.pacer, "--data", k.data, "profile", "run", k.file, "--devices", "cpu")
	cmd.Env = append(os.Environ(), k.mark)
	lines := start(t, cmd)
	if k.said == nil {
		k.said = map[string]int{}
	}
	var timer *time.Timer // set once the first point begins
	attack := make(chan bool, 1)
	after := time.Duration(k.random.Float64() * float64(spectest.Scaled(3*time.Second)))
	share := k.random.Float64()
	var text []string
	for line := range lines {
		text = append(text, line)
		if m := saidOrphans.FindStringSubmatch(line); m != nil {
			k.said[m[1]]++
		}
		if kill && timer == nil && strings.HasPrefix(line, "profile orphans: ") {
			timer = time.AfterFunc(after, func() { attack <- k.killSome(share) })
		}
	}
	err := cmd.Wait()
	if timer != nil && !timer.Stop() {
		killed = <-attack
	}
	status, _ := cmd.ProcessState.Sys().(syscall.WaitStatus)
	if k.pacerKilled = status.Signal() == syscall.SIGKILL; k.pacerKilled {
		k.sessions++
		k.checkOrphans(t)
	} else if err != nil && cmd.ProcessState.ExitCode() != 4 {
		t.Fatalf("%v\n%s", err, strings.Join(text, "\n"))
	}
	return killed
}

// killSome kills a random share of the processes, in random order, and reports whether there were any.
func (k *processKills) killSome(share float64) bool {
	all := k.processes()
	k.random.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	n := min(1+int(share*float64(len(all)+1)), len(all))
	for _, pid := range all[:n] {
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
	return n > 0
}

// processes returns the running processes with the mark.
func (k *processKills) processes() (out []int) {
	entries, _ := os.ReadDir("/proc")
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		env, _ := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid)) // empty for a zombie
		if bytes.Contains(env, []byte(k.mark)) {
			out = append(out, pid)
		}
	}
	return out
}

// checkOrphans waits until no process is left.
func (k *processKills) checkOrphans(t *testing.T) {
	t.Helper()
	for deadline := time.Now().Add(spectest.Patience(5 * time.Second)); ; time.Sleep(20 * time.Millisecond) {
		left := k.processes()
		if len(left) == 0 {
			return
		}
		if time.Now().After(deadline) {
			for _, pid := range left {
				args, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
				t.Errorf("process %d is left: %q", pid, args)
				_ = syscall.Kill(pid, syscall.SIGKILL)
			}
			t.FailNow()
		}
	}
}

// check compares the stored rows with those that were said to be stored.
func (k *processKills) check(t *testing.T) {
	t.Helper()
	k.checkOrphans(t)
	db, err := store.Open(filepath.Join(k.data, "store"), store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	rows, err := query.RowsOf(t.Context(), db, store.Filter{})
	if err := errors.Join(err, db.Close()); err != nil {
		t.Fatal(err)
	}
	stored, usable, points, said := map[string]int{}, map[profiler.Identity]int{}, map[profiler.Identity]bool{}, 0
	for _, m := range rows {
		stored[campaign.PointName(m.Config)+" "+string(m.Outcome)]++
		points[profiler.IdentityOf(m.Config)] = true
		if m.Outcome == spec.OK && m.Doubt == "" {
			usable[profiler.IdentityOf(m.Config)]++
		}
	}
	for name, n := range k.said {
		said += n
		if stored[name] < n {
			t.Errorf("%s was said to be stored %d times, it is %d times", name, n, stored[name])
		}
	}
	if len(rows) > said+k.sessions {
		t.Errorf("%d rows are stored, %d were said to be and pacer was killed %d times", len(rows), said, k.sessions)
	}
	for id, n := range usable {
		if n > 1 {
			t.Errorf("%d usable rows of %s", n, id)
		}
	}
	if len(points) != 8 {
		t.Errorf("%d points have rows, want 8", len(points))
	}
}
