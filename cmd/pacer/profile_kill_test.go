package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
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
	"github.com/pacer-ml/pacer/profiler/store"
)

// TestE2EKilledCampaigns kills campaigns with SIGKILL at random moments and
// starts them again until they are done: no point that was said to be stored is
// lost or measured again, and the rows are those of an undisturbed run.
// 6 campaigns, 1000 with PACER_SOAK set.
func TestE2EKilledCampaigns(t *testing.T) {
	campaigns := 6
	if os.Getenv("PACER_SOAK") != "" {
		campaigns = 1000
	}
	pacer := selfAs(t, "pacer")
	table := playedTable(t, pacer)
	r := rand.New(rand.NewPCG(3, 4))
	orders := []profiler.Order{profiler.Grid, profiler.Random, profiler.Adaptive}
	files, want := map[profiler.Order]string{}, map[profiler.Order][]spec.Measurement{}
	for _, o := range orders {
		files[o] = replayCampaign(t, o)
		want[o] = undisturbed(t, pacer, table, files[o])
	}
	kills, began := 0, time.Now()
	for i := range campaigns {
		order := orders[i%len(orders)]
		k := killedCampaign{pacer: pacer, file: files[order], data: copyDir(t, table), said: map[int]string{}}
		for range 1 + r.IntN(3) {
			if !k.run(t, randomKill(r, killPoints-len(k.said))) {
				kills++
			}
		}
		if !k.run(t, nil) {
			t.Fatalf("%s campaign %d was killed, though not by this test", order, i)
		}
		if err := k.check(want[order]); err != nil {
			t.Fatalf("%s campaign %d: %v", order, i, err)
		}
		if err := os.RemoveAll(k.data); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("%d campaigns, killed %d times, in %s", campaigns, kills, time.Since(began).Round(time.Second))
	if kills < campaigns {
		t.Errorf("only %d kills of %d campaigns under way", kills, campaigns)
	}
}

// TestE2EPointThatKills: a point at which pacer is killed again and again has
// failed, and the campaign goes on. What the killed ones left among the temporary
// files goes with the next point.
func TestE2EPointThatKills(t *testing.T) {
	python, dir := fakeTorch(t, `if [ $(ls "$dir" | grep -c point) = 1 ]; then
  guard=$(cut -d ' ' -f 4 /proc/$PPID/stat) # the parent of the supervisor
  kill -9 $(cut -d ' ' -f 4 /proc/$guard/stat); sleep 60
fi
: >"$dir/point$$"
echo '{"version":1,"outcome":"ok","world":1,"warmup_sec":[0.3],"warmup_stopped":"steady","step_sec":[0.5,0.5],'\
'"stopped":"max_steps","began":1700000000,"ended":1700000002}' >"$out"`)
	run, data := torchCampaign(t, python)
	tmp := t.TempDir()
	t.Setenv("TMPDIR", tmp)
	for i := range 3 {
		out, err := run().CombinedOutput()
		var exit *exec.ExitError
		if !errors.As(err, &exit) || exit.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
			t.Fatalf("session %d: %v, want a kill\n%s", i, err, out)
		}
		if left, _ := filepath.Glob(filepath.Join(tmp, "pacer-point-*")); len(left) != 1 {
			t.Errorf("session %d left %q, want the point under way alone", i, left)
		}
	}
	// With two files nothing kills any more.
	writeFile(t, filepath.Join(dir, "point"), "")
	out, err := run().CombinedOutput()
	if want := "mb=2,ga=1,precision=fp32 failed: pacer or the machine went down while it was measured, 3 times in a row"; err != nil && !busyMachine(err, out) || !strings.Contains(string(out), want) {
		t.Errorf("%v, want %s\n%s", err, want, out)
	}
	if left, _ := filepath.Glob(filepath.Join(tmp, "pacer-*")); len(left) != 0 {
		t.Errorf("left are %q", left)
	}
	if out, err = exec.Command(run().Path, "--data", data, "profile", "status", "fake", "-o", "json").CombinedOutput(); err != nil ||
		!regexp.MustCompile(`"points": 3,\s*"outcomes": \{\s*"ok": 2,\s*"oom": 0,\s*"timeout": 0,\s*"failed": 1`).Match(out) {
		t.Errorf("%v\n%s", err, out)
	}
}

// busyMachine reports whether a command ended with exit code 4 since other processes used the CPUs, so that all of its
// points are in doubt.
func busyMachine(err error, out []byte) bool {
	var exit *exec.ExitError
	return errors.As(err, &exit) && exit.ExitCode() == fail.Partial && strings.Contains(string(out), "in doubt")
}

const killPoints = 12

// playedTable returns a data directory with the table that campaigns replay.
func playedTable(t *testing.T, pacer string) (dir string) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "table.yaml")
	writeFile(t, file, `
name: table
models:
  - {name: gpt-a, kind: decoder, layers: 4, hidden: 128, ffn: 512, heads: 4, vocab: 1024, seq_len: 64}
accelerator: h100
space: {shapes: [1, 2, 4], micro_batch: [1, 4], accumulation: [1, 4]}
choose: grid
runner: {name: synthetic, noise: 0.05}
`)
	dir = t.TempDir()
	if out, err := exec.Command(pacer, "--data", dir, "profile", "run", file).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return dir
}

func replayCampaign(t *testing.T, order profiler.Order) (file string) {
	t.Helper()
	file = filepath.Join(t.TempDir(), string(order)+".yaml")
	writeFile(t, file, fmt.Sprintf(`
name: killed
space: {measured: true}
choose: %s
budget: {points: %d}
runner: {name: replay, source: campaign/table, noise: 0.02, delay: 3ms}
`, order, killPoints))
	return file
}

func writeFile(t *testing.T, file, text string) {
	t.Helper()
	spectest.WriteFile(t, file, []byte(text), 0o666)
}

// copyDir returns a copy of a data directory.
func copyDir(t *testing.T, dir string) string {
	t.Helper()
	to := filepath.Join(t.TempDir(), "data")
	if err := os.CopyFS(to, os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	return to
}

// undisturbed returns the rows of a campaign that runs to its end at once.
func undisturbed(t *testing.T, pacer, table, file string) []spec.Measurement {
	t.Helper()
	data := copyDir(t, table)
	if out, err := exec.Command(pacer, "--data", data, "profile", "run", file).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	rows, err := killedRows(data)
	if err != nil {
		t.Fatal(err)
	}
	if len(rows) != killPoints {
		t.Fatalf("%d points, want %d", len(rows), killPoints)
	}
	return rows
}

// killedRows returns the rows of the campaign by number.
func killedRows(data string) (rows []spec.Measurement, err error) {
	db, err := store.Open(filepath.Join(data, "store"), store.Options{})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	if rows, err = query.RowsOf(context.Background(), db, store.Filter{Sources: []string{"campaign/killed"}}); err != nil {
		return nil, err
	}
	number := func(m spec.Measurement) int { n, _ := strconv.Atoi(m.Env[profiler.EnvPoint]); return n }
	slices.SortFunc(rows, func(a, b spec.Measurement) int { return number(a) - number(b) })
	return rows, nil
}

// A kill says when a session is killed: some time after the nth line of its
// progress, 0 = after its start.
type kill struct {
	line  int
	after time.Duration
}

// randomKill is anywhere in a session: while it opens the store, while it
// measures, or while it stores one of the points that are left.
func randomKill(r *rand.Rand, left int) *kill {
	k := kill{line: r.IntN(left + 1), after: time.Duration(r.Float64() * float64(12*time.Millisecond))}
	if k.line == 0 {
		k.after *= 10
	}
	return &k
}

// killedCampaign is a campaign that is killed and started again.
type killedCampaign struct {
	pacer, file, data string
	said              map[int]string // what was said to be stored as point n
}

// saidLine is the line of an acknowledged point: its number, model and plan;
// startLine the first of a session.
var (
	saidLine  = regexp.MustCompile(`^profile killed: (\d+) of \d+ points: (\S+ \S+) ok `)
	startLine = regexp.MustCompile(`^profile killed: (\d+) of \d+ points, next: `)
)

// run starts the campaign, kills it at a random moment unless it is to go on, and
// reports whether it ended by itself.
func (k *killedCampaign) run(t *testing.T, at *kill) (done bool) {
	t.Helper()
	cmd := exec.Command(k.pacer, "--data", k.data, "profile", "run", k.file)
	text := start(t, cmd)
	lines, progress, had := []string{}, 0, len(k.said)
	aim := func() {
		if at != nil && progress == at.line {
			time.AfterFunc(at.after, func() { _ = cmd.Process.Kill() }) // SIGKILL; it may have ended
		}
	}
	aim()
	for line := range text {
		lines = append(lines, line)
		if k.take(t, line, had) {
			progress++
			aim()
		}
	}
	err := cmd.Wait()
	if status, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); err != nil && (!ok || status.Signal() != syscall.SIGKILL) {
		t.Fatalf("%v\n%s", err, strings.Join(lines, "\n"))
	}
	return err == nil
}

// take reads a line of a session before which had points were said to be
// stored, and reports whether it is one of progress.
func (k *killedCampaign) take(t *testing.T, line string, had int) bool {
	t.Helper()
	if m := startLine.FindStringSubmatch(line); m != nil {
		if n, _ := strconv.Atoi(m[1]); n < had {
			t.Fatalf("%d points were said to be stored, the next session begins with %d", had, n)
		}
		return true
	}
	m := saidLine.FindStringSubmatch(line)
	if m == nil {
		return false
	}
	n, _ := strconv.Atoi(m[1])
	if old, ok := k.said[n]; ok {
		t.Fatalf("point %d was %s, now it is measured again as %s", n, old, m[2])
	}
	k.said[n] = m[2]
	return true
}

// check compares what is stored at the end with what was said and with the rows
// of an undisturbed run.
func (k *killedCampaign) check(want []spec.Measurement) error {
	rows, err := killedRows(k.data)
	if err != nil {
		return err
	}
	if len(rows) != len(want) {
		return fmt.Errorf("%d points are stored, an undisturbed run has %d", len(rows), len(want))
	}
	for i, m := range rows {
		w := want[i]
		if m.Env[profiler.EnvPoint] != strconv.Itoa(i+1) {
			return fmt.Errorf("point %d is stored as %s", i+1, m.Env[profiler.EnvPoint])
		}
		if m.Config != w.Config || m.Outcome != w.Outcome || !slices.Equal(m.StepSec, w.StepSec) || m.Env[profiler.EnvWall] != w.Env[profiler.EnvWall] {
			return fmt.Errorf("point %d: %s %v, undisturbed it is %s %v", i+1, campaign.PointName(m.Config), m.StepSec, campaign.PointName(w.Config), w.StepSec)
		}
		if said, ok := k.said[i+1]; ok && said != campaign.PointName(m.Config) {
			return fmt.Errorf("point %d was said to be %s, stored is %s", i+1, said, campaign.PointName(m.Config))
		}
	}
	return nil
}
