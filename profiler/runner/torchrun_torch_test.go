//go:build linux

package runner

import (
	"cmp"
	"context"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/perfmodel/spec/spectest"
	"github.com/pacer-ml/pacer/profiler"
	"github.com/pacer-ml/pacer/profiler/executor"
	"github.com/pacer-ml/pacer/profiler/worker"
)

// torch is the result of withTorch.
var torch struct {
	features *worker.Features
	program  string
}

// withTorch returns a runner that trains with torch. Without a python3 that has torch the test is skipped, but
// if CI=true it fails.
func withTorch(t *testing.T, o TorchrunOptions) *Torchrun {
	t.Helper()
	if o.Point.Timeout == 0 {
		o.Point.Timeout = time.Minute
	}
	o.Point.MaxSteps, o.Point.MaxTime, o.Point.Interval = 8, 2*time.Second, 0.1
	o.Executor = executor.Local{Grace: 300 * time.Millisecond}
	r := newTorchrun(t, o)
	if torch.features != nil && o.Python == "" { // probe once, since importing torch takes a while
		r.features, r.program = torch.features, cmp.Or(o.Program, torch.program)
		return r
	}
	if _, err := r.Setup(context.Background()); err != nil {
		spectest.Lacks(t, err)
	}
	if o.Python == "" {
		torch.features, torch.program = r.features, cmp.Or(torch.program, r.program)
	}
	return r
}

func TestTorchrunTrains(t *testing.T) {
	r := withTorch(t, TorchrunOptions{})
	for _, devices := range []int{1, 2} {
		c := tiny(devices)
		m, err := r.Run(context.Background(), c)
		if err != nil {
			t.Fatal(err)
		}
		if m.Outcome != spec.OK {
			t.Errorf("%d devices: %s %s\n%s", devices, m.Outcome, m.Reason, m.Env[profiler.EnvLog])
			continue
		}
		check(t, m, c)
		sum := 0.0
		for _, sec := range m.PhaseSec {
			sum += sec
		}
		if med := m.MedianStepSec(); med <= 0 || med > 5 || math.Abs(sum-med) > 1e-9 || m.PhaseSec["forward"] <= 0 || m.PhaseSec["backward"] <= 0 {
			t.Errorf("%d devices: median step %g s, phases %v", devices, med, m.PhaseSec)
		}
		if _, err := os.Stat("/usr/lib/x86_64-linux-gnu/libblas.so.3"); err == nil && m.Env["blas"] == "" {
			t.Errorf("%d devices: the BLAS library is missing: %v", devices, m.Env)
		}
		if m.PeakBytes < 1e5 || m.PeakBytes > 1e9 || m.Env["torch"] == "" || m.Env["params"] == "" || m.Env[profiler.EnvFLOPS] == "" {
			t.Errorf("%d devices: peak %g bytes, %v", devices, m.PeakBytes, m.Env)
		}
		t.Logf("%d devices, BLAS %s: %s s for %v", devices, m.Env["blas"], m.Env[profiler.EnvWall], m.StepSec)
	}
}

func TestTorchrunRunsOutOfMemory(t *testing.T) {
	r := withTorch(t, TorchrunOptions{})
	python := script(t, "ulimit -v 16000000; exec "+r.features.Executable+` "$@"`)
	r = withTorch(t, TorchrunOptions{Python: python})
	c := tiny(1)
	c.Model.Hidden, c.Model.FFN, c.Model.Vocab = 1<<14, 1<<16, 1<<20 // embeddings of 64 GiB
	m, err := r.Run(context.Background(), c)
	if err != nil || m.Outcome != spec.OOM || !strings.Contains(m.Reason, "memory") {
		t.Errorf("%s %s, %v\n%s", m.Outcome, m.Reason, err, m.Env[profiler.EnvLog])
	}
	check(t, m, c)
}

func TestTorchrunUnsupported(t *testing.T) {
	r := withTorch(t, TorchrunOptions{})
	c := tiny(1)
	c.Plan.Precision = spec.FP4
	m, err := r.Run(context.Background(), c)
	if err != nil || m.Outcome != spec.Failed || !strings.HasPrefix(m.Reason, "unsupported: ") || !strings.Contains(m.Reason, "fp4") {
		t.Errorf("%s %q, %v\n%s", m.Outcome, m.Reason, err, m.Env[profiler.EnvLog])
	}
}

// TestTorchrunRankFails: if one of two real processes fails, the point reports it, and the other process does not
// continue.
func TestTorchrunRankFails(t *testing.T) {
	if testing.Short() {
		t.Skip("imports torch in many processes")
	}
	base, err := worker.Extract(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"engine.py", "features.py"} {
		text, err := os.ReadFile(filepath.Join("..", "worker", "testdata", "fake", name))
		if err == nil {
			err = os.WriteFile(filepath.Join(base, name), text, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		kind    string
		outcome spec.Outcome
		want    string
		timeout time.Duration
	}{
		{"cpu allocator", spec.OOM, "memory", 10 * time.Minute},
		{"killed", spec.Failed, "another process sent it", 10 * time.Minute},
		{"hangs", spec.Timeout, "did not end within 4s", 4 * time.Second},
	} {
		r := withTorch(t, TorchrunOptions{Program: base, Point: profiler.PointOptions{Timeout: c.timeout}})
		config := tiny(2)
		config.Model.Name = `{"fail":{"step":2,"rank":1,"kind":"` + c.kind + `"}}`
		m, err := r.Run(context.Background(), config)
		if err != nil || m.Outcome != c.outcome || !strings.Contains(m.Reason, c.want) {
			t.Errorf("%s: %s %q, %v\n%s", c.kind, m.Outcome, m.Reason, err, m.Env[profiler.EnvLog])
		}
		t.Logf("%s: %s s", c.kind, m.Env[profiler.EnvWall])
		noneLeft(t, base)
	}
}
