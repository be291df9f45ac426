//go:build linux

package hook

import (
	"bytes"
	"fmt"
	"math"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/pacer-ml/pacer/perfmodel/spec/spectest"
)

// python returns an interpreter with torch. Without one the test is skipped, or fails if CI=true.
func python(t testing.TB) string {
	t.Helper()
	if testing.Short() {
		t.Skip("imports torch in many processes")
	}
	file, err := findPython()
	if err != nil {
		spectest.Lacks(t, err)
	}
	return file
}

var findPython = sync.OnceValues(func() (string, error) {
	var why error
	for _, name := range []string{os.Getenv("PACER_PYTHON"), "python3", "/usr/bin/python3"} {
		if name == "" {
			continue
		}
		out, err := exec.Command(name, "-c", "import torch").CombinedOutput()
		if err == nil {
			return name, nil
		}
		why = fmt.Errorf("%s cannot import torch: %w: %s", name, err, out)
	}
	return "", why
})

// run runs a command with the hook in dir and returns its output. It must succeed.
func run(t testing.TB, dir string, env []string, args ...string) string {
	t.Helper()
	out, err := start(t, dir, env, args...)
	if err != nil {
		t.Fatalf("%q: %v\n%s", args, err, out)
	}
	return out
}

func start(t testing.TB, dir string, env []string, args ...string) (string, error) {
	t.Helper()
	vars, err := Write(dir, Out(dir), "")
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Env = append(append(os.Environ(), "OMP_NUM_THREADS=1", "GLOO_SOCKET_IFNAME=lo"), append(vars, env...)...)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

func read(t testing.TB, dir string) []Process {
	t.Helper()
	all, err := Read(Out(dir))
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range all {
		if len(p.Faults) > 0 {
			t.Errorf("rank %d: faults %q", p.Rank, p.Faults)
		}
	}
	return all
}

// torchrun returns the command of a script on n processes.
func torchrun(t *testing.T, n int, script string, args ...string) []string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port := l.Addr().(*net.TCPAddr).Port
	l.Close()
	return append([]string{python(t), "-m", "torch.distributed.run", "--nnodes=1", "--master_addr=127.0.0.1",
		"--master_port=" + strconv.Itoa(port), "--nproc_per_node=" + strconv.Itoa(n), "-r", "2", "-t", "2",
		"--log_dir", t.TempDir(), script}, args...)
}

// meanStep returns the mean step time that a script of testdata prints, without its first step.
func meanStep(t *testing.T, out string) float64 {
	t.Helper()
	_, rest, ok := strings.Cut(out, "mean step ")
	var sec float64
	if _, err := fmt.Sscan(rest, &sec); !ok || err != nil {
		t.Fatalf("no mean step in %q", out)
	}
	return sec
}

// TestPrograms: unchanged scripts are timed as they time themselves. Both read one clock in one run, so the load of
// the machine has no part in the difference.
func TestPrograms(t *testing.T) {
	for _, c := range []struct {
		script     string
		args       []string
		ranks      int
		steps      int
		backwards  int
		optimizer  string
		parameters float64
	}{
		{"plain.py", []string{"--steps", "30", "--accumulate", "3"}, 1, 30, 3, "AdamW", 6400 + 16640 + 25700},
		{"ddp.py", []string{"--steps", "20"}, 2, 20, 2, "SGD", 16640 + 257},
		{"zero.py", []string{"--steps", "20"}, 2, 20, 1, "ZeroRedundancyOptimizer", 16640 + 257},
	} {
		t.Run(c.script, func(t *testing.T) {
			dir, script := t.TempDir(), filepath.Join("testdata", c.script)
			command := append([]string{python(t), script}, c.args...)
			if c.ranks > 1 {
				command = torchrun(t, c.ranks, script, c.args...)
			}
			out := run(t, dir, nil, command...)
			all := read(t, dir)
			timing, err := Time(all, c.ranks, 1, c.steps)
			if err != nil {
				t.Fatal(err)
			}
			first := timing.Steps // of rank 0, which prints
			got, want := 0.0, meanStep(t, out)
			for _, s := range first {
				got += s.Sec / float64(len(first)-1)
			}
			if len(timing.StepSec) != c.steps-1 || math.Abs(got/want-1) > 0.01 {
				t.Errorf("%d steps of %g s in the mean, the script says %d of %g s", len(timing.StepSec), got, c.steps-1, want)
			}
			for _, p := range all {
				for _, s := range p.Steps {
					if s.Calls != 1 || s.Backwards != c.backwards || s.N > 1 && s.Clock != "host" {
						t.Errorf("rank %d: %+v, want 1 call and %d backward passes", p.Rank, s, c.backwards)
					}
				}
				if !p.Ended || p.Error != "" || p.Optimizer != c.optimizer || p.Parameters != c.parameters || p.Device != "cpu" {
					t.Errorf("rank %d: %+v", p.Rank, p)
				}
				if !(p.PeakBytes > 0 && p.ReservedBytes > p.PeakBytes) {
					t.Errorf("rank %d: peak %g, reserved %g", p.Rank, p.PeakBytes, p.ReservedBytes)
				}
			}
		})
	}
}

// TestPatterns: calls of optimizers are merged to training steps.
func TestPatterns(t *testing.T) {
	dir := t.TempDir()
	out := run(t, dir, nil, python(t), "testdata/patterns.py")
	byPID := map[int]Process{}
	for _, p := range read(t, dir) {
		byPID[p.PID] = p
	}
	want := map[string][2]int{"two_optimizers": {2, 2}, "parts": {3, 1}, "groups": {3, 1}, "engine": {1, 1},
		"subclass": {1, 1}, "closure": {1, 1}, "raises": {1, 1}, "other_raises": {1, 1}, "leaves": {1, 1}, "many": {1, 1}, "elsewhere": {1, 1}}
	for line := range strings.Lines(out) {
		var name string
		var pid int
		if _, err := fmt.Sscan(line, &name, &pid); err != nil {
			t.Fatal(err)
		}
		p, w := byPID[pid], want[name]
		delete(want, name)
		if device := map[bool]string{true: "meta", false: "cpu"}[name == "elsewhere"]; p.Device != device || device != "cpu" && p.PeakBytes+p.ReservedBytes > 0 {
			t.Errorf("%s: on %q with %g bytes, want %q", name, p.Device, p.PeakBytes, device)
		}
		if len(p.Steps) != 4 {
			t.Errorf("%s: %d training steps, want 4: %+v", name, len(p.Steps), p.Steps)
		}
		for _, s := range p.Steps[min(1, len(p.Steps)):] {
			if s.Calls != w[0] || s.Backwards != w[1] {
				t.Errorf("%s: %+v, want %d calls and %d backward passes", name, s, w[0], w[1])
			}
		}
	}
	if len(want) > 0 {
		t.Errorf("not run: %v", want)
	}
}

// TestSitecustomize: the user's own sitecustomize runs after the hook, whatever is wrong with the hook.
func TestSitecustomize(t *testing.T) {
	mine := t.TempDir()
	text := "import sys\nprint('mine', 'pacer_hook' in sys.modules)\nVALUE = 7\n"
	spectest.WriteFile(t, filepath.Join(mine, "sitecustomize.py"), []byte(text), 0o600)
	dir := t.TempDir()
	vars, err := Write(dir, Out(dir), mine)
	if err != nil {
		t.Fatal(err)
	}
	for name, prepare := range map[string]func() error{
		"good": func() error { return nil },
		"wrong": func() error {
			return os.WriteFile(filepath.Join(dir, programDir, "pacer_hook.py"), []byte("1/0"), 0o600)
		},
	} {
		if err := prepare(); err != nil {
			t.Fatal(err)
		}
		cmd := exec.Command(python(t), "-c", "import sitecustomize; print(sitecustomize.VALUE)")
		cmd.Env = append(os.Environ(), vars...)
		out, err := cmd.CombinedOutput()
		if want := fmt.Sprintf("mine %s\n7\n", map[bool]string{true: "True", false: "False"}[name == "good"]); err != nil || string(out) != want {
			t.Errorf("%s: %v, output %q, want %q", name, err, out, want)
		}
		if name == "wrong" {
			break
		}
	}
}

// TestHarmless: a program runs the same when the hook cannot write.
func TestHarmless(t *testing.T) {
	dir := t.TempDir()
	for _, out := range []string{filepath.Join(dir, "none"), ""} {
		text := run(t, dir, []string{outVar + "=" + out}, python(t), "testdata/plain.py", "--steps", "3")
		if !strings.Contains(text, "mean step") || strings.Contains(text, "Traceback") {
			t.Errorf("%q: output %q", out, text)
		}
	}
	if all := read(t, dir); len(all) > 0 {
		t.Errorf("read %+v", all)
	}
}

// TestOutOfMemory: the exception that ends a program is in its last line.
func TestOutOfMemory(t *testing.T) {
	dir := t.TempDir()
	out, err := start(t, dir, nil, python(t), "testdata/plain.py", "--out-of-memory")
	all := read(t, dir)
	if err == nil || len(all) != 1 || !all[0].OOM || !strings.Contains(all[0].Error, "allocate") || !strings.Contains(out, "Traceback") {
		t.Errorf("%v, read %+v, output %s", err, all, out)
	}
}

// TestOverhead: the CPU time of the hook is below 0.5 % of a step of 50 ms. It is CPU time, so other programs on the
// machine count little.
func TestOverhead(t *testing.T) {
	perStep, _ := overhead(t, 400, 0)
	t.Logf("%.0f µs per step", 1e6*perStep)
	if perStep > mostOverhead {
		t.Errorf("the hook takes %g s per step", perStep)
	}
}

// mostOverhead is 0.5 % of a step of 50 ms.
const mostOverhead = 0.005 * 0.05

// overhead returns the CPU time of the hook per step, and the mean step, of a program with steps of at least some seconds.
func overhead(t testing.TB, steps int, least float64) (perStep, step float64) {
	t.Helper()
	dir := t.TempDir()
	run(t, dir, nil, python(t), "testdata/plain.py", "--steps", strconv.Itoa(steps), "--least-sec", fmt.Sprint(least))
	p := read(t, dir)[0]
	if len(p.Steps) != steps {
		t.Fatalf("%d steps, want %d", len(p.Steps), steps)
	}
	n := float64(steps)
	return p.HookSec / n, (p.Steps[steps-1].End - p.Steps[0].End) / (n - 1)
}

// BenchmarkOverhead measures the CPU time of the hook in a program that computes for 50 ms per step, so that the caches are cold
// and lines are written as often as in such a program: -benchtime 1x.
func BenchmarkOverhead(b *testing.B) {
	for range b.N {
		perStep, step := overhead(b, 400, 0.05)
		b.ReportMetric(1e6*perStep, "µs/step")
		b.ReportMetric(1e3*step, "ms/step")
		b.ReportMetric(100*perStep/0.05, "%-of-50ms")
	}
}

// TestTruncated: the last line of a process that still writes is ignored, and other damage is an error.
func TestTruncated(t *testing.T) {
	step := func(n int) string { return fmt.Sprintf(`{"event":"step","n":%d,"sec":1,"end":%d}`+"\n", n, n) }
	head := `{"event":"start","version":1,"rank":0,"world":1}` + "\n"
	for text, want := range map[string]struct {
		steps int
		err   string
	}{
		head + step(1) + step(2) + `{"event":"st`:       {2, ""},
		head + step(1) + step(3):                        {0, "step 3 follows step 1"},
		head + `{"event":"step","n":1,"sec":-1}` + "\n": {0, "value -1"},
		head + "garbage\n":                              {0, "line 2: not a line of the hook"},
		`{"event":"start","version":9}` + "\n":          {0, "version 9, want 1"},
		head + strings.Repeat("x", maxLine+1) + "\n":    {0, "line 2"},
		"": {0, ""},
	} {
		p, err := readProcess(bytes.NewReader([]byte(text)))
		if want.err == "" && (err != nil || len(p.Steps) != want.steps) || want.err != "" && (err == nil || !strings.Contains(err.Error(), want.err)) {
			t.Errorf("%.80q: %d steps, %v; want %d, %q", text, len(p.Steps), err, want.steps, want.err)
		}
	}
}

// TestPeaksOfAllocator: the peaks of memory are those that torch tells, read in another way.
func TestPeaksOfAllocator(t *testing.T) {
	cmd := exec.Command(python(t), filepath.Join("testdata", "peaks.py"))
	cmd.Env = append(os.Environ(), "PYTHONDONTWRITEBYTECODE=1")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}
