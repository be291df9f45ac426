//go:build unix

package runner

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/perfmodel/spec/spectest"
	"github.com/pacer-ml/pacer/profiler"
	"github.com/pacer-ml/pacer/profiler/worker"
)

// readNothing returns the error of a result that was never written.
func readNothing(t *testing.T) (worker.Result, error) {
	t.Helper()
	return worker.ReadResult(filepath.Join(t.TempDir(), "result.json"))
}

// script writes a program with the given lines.
func script(t *testing.T, lines string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "python3")
	spectest.WriteFile(t, file, []byte("#!/bin/sh\n"+lines+"\n"), 0o755)
	return file
}

// TestTorchrunSetupMissing: if a program is missing, Setup and Run return an error that says what to install.
func TestTorchrunSetupMissing(t *testing.T) {
	tell := func(features string) string { return `for out; do :; done; echo '` + features + `' >"$out"` }
	for _, c := range []struct{ name, python, want string }{
		{"python", filepath.Join(t.TempDir(), "python3"), "apt-get install -y --no-install-recommends python3"},
		{"python, no file name", "python-that-is-not-here", "no Python at python-that-is-not-here"},
		{"no program", script(t, "echo oops; exit 9"), `exit status 9, last line "oops"`},
		{"garbage", script(t, tell("garbage")), "not a working Python"},
		{"torch", script(t, tell(`{"version":1,"error":"ModuleNotFoundError: No module named 'torch'"}`)), "apt-get install -y --no-install-recommends python3-torch, or pip install torch"},
		{"launcher", script(t, tell(`{"version":1,"torch":"1.0"}`)), "without torch.distributed.run"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newTorchrun(t, TorchrunOptions{Python: c.python})
			if _, err := r.Setup(context.Background()); !errors.Is(err, profiler.ErrSetup) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want %q", err, c.want)
			}
			if m, err := r.Run(context.Background(), tiny(1)); !errors.Is(err, profiler.ErrSetup) || m.Outcome != "" {
				t.Errorf("measured %+v, error %v", m, err)
			}
		})
	}
}

func TestTorchrunSetupOnce(t *testing.T) {
	python, dir := fakePython(t, goodResult(1))
	count := script(t, `echo "$@" >>`+dir+`/calls; exec `+python+` "$@"`)
	t.Setenv("PACER_PYTHON", count)
	r := newTorchrun(t, TorchrunOptions{})
	for range 2 {
		f, err := r.Setup(context.Background())
		if err != nil || f.Torch != "9.9" || f.Executable != count {
			t.Fatalf("%+v, %v", f, err)
		}
	}
	if m, err := r.Run(context.Background(), tiny(1)); err != nil || m.Outcome != spec.OK {
		t.Errorf("%+v, %v", m, err)
	}
	calls, err := os.ReadFile(filepath.Join(dir, "calls"))
	if err != nil || strings.Count(string(calls), "--features") != 1 {
		t.Errorf("calls:\n%s", calls)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 300*time.Millisecond)
	defer cancel()
	slow := newTorchrun(t, TorchrunOptions{Python: script(t, "sleep 1000")})
	if _, err := slow.Setup(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("set-up that was interrupted: %v", err)
	}
}

// TestPythons: by default, python3 on PATH is tried before /usr/bin/python3.
func TestPythons(t *testing.T) {
	t.Setenv("PACER_PYTHON", "")
	python := script(t, "exit 1")
	t.Setenv("PATH", filepath.Dir(python))
	got := pythons("")
	if n := len(got); n == 0 || got[0] != python || n == 2 && got[1] != "/usr/bin/python3" {
		t.Errorf("candidates %v", got)
	}
	t.Setenv("PACER_PYTHON", "/opt/python")
	if got := pythons(""); len(got) != 1 || got[0] != "/opt/python" {
		t.Errorf("candidates %v", got)
	}
	if got := pythons("mine"); len(got) != 1 || got[0] != "mine" {
		t.Errorf("candidates %v", got)
	}
}

// TestTorchrunSetupEnvironment: features are probed in the environment of the measurement, and Hidden probes
// without it.
func TestTorchrunSetupEnvironment(t *testing.T) {
	python := script(t, `for out; do :; done; n=1; [ "${CUDA_VISIBLE_DEVICES-unset}" = "" ] && n=0
echo '{"version":1,"torch":"2.8","cuda":"12.8","torchrun":true,"devices":'$n'}' >"$out"`)
	t.Setenv("CUDA_VISIBLE_DEVICES", "") // restored after the test
	if err := os.Unsetenv("CUDA_VISIBLE_DEVICES"); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		cpu          bool
		seen, hidden int
	}{{true, 0, 1}, {false, 1, 0}} {
		r := newTorchrun(t, TorchrunOptions{Python: python, Machine: profiler.Machine{Devices: []int{0}, CPU: c.cpu}})
		f, err := r.Setup(context.Background())
		if err != nil || f.Devices != c.seen {
			t.Errorf("cpu=%t: %d devices, %v; want %d", c.cpu, f.Devices, err, c.seen)
		}
		if n, err := r.Hidden(context.Background()); err != nil || n != c.hidden {
			t.Errorf("cpu=%t: %d hidden, %v; want %d", c.cpu, n, err, c.hidden)
		}
	}
}
