package worker

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/perfmodel/spec/spectest"
)

// torchPython returns a python3 that imports torch, for tests of the worker itself.
func torchPython(t testing.TB) string {
	t.Helper()
	python := findPython()
	if python == "" {
		spectest.Lacks(t, "no python3 with torch")
	}
	return python
}

var findPython = sync.OnceValue(func() string {
	for _, python := range []string{os.Getenv("PACER_PYTHON"), "/usr/bin/python3", "python3"} {
		if python != "" && exec.Command(python, "-c", "import torch").Run() == nil {
			return python
		}
	}
	return ""
})

// fakeProgram extracts the worker with the engine replaced by that of testdata/fake, and returns the directory
// of the package.
func fakeProgram(t *testing.T) string {
	t.Helper()
	dir, err := Extract(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"engine.py", "features.py"} {
		text, err := os.ReadFile(filepath.Join("testdata", "fake", name))
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, name), text, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return filepath.Dir(dir)
}

// fakeResults measures each of fakes with testdata/fake/engine.py and returns the results. All run in one
// process, since importing torch takes most of the time.
func fakeResults(t *testing.T, fakes []string, limits Request) []Result {
	t.Helper()
	python, base := torchPython(t), fakeProgram(t)
	args := []string{filepath.Join("testdata", "fake", "each.py")}
	for i, fake := range fakes {
		limits.Version, limits.Device, limits.Threads, limits.Timeout = Version, CPU, 1, 60
		limits.Devices = max(limits.Devices, 1)
		text, err := json.Marshal(limits)
		if err != nil {
			t.Fatal(err)
		}
		text = []byte(strings.Replace(string(text), `"config":{`, `"config":{"fake":`+fake+`,`, 1))
		file := filepath.Join(base, fmt.Sprintf("request%d", i))
		spectest.WriteFile(t, file, text, 0o600)
		args = append(args, file)
	}
	ctx, cancel := context.WithTimeout(context.Background(), spectest.Patience(2*time.Minute))
	defer cancel()
	cmd := exec.CommandContext(ctx, python, args...)
	cmd.Env = append(os.Environ(), "PYTHONPATH="+base, "OMP_NUM_THREADS=1")
	log, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, log)
	}
	out := make([]Result, len(fakes))
	for i := range fakes {
		if out[i], err = ReadResult(filepath.Join(base, fmt.Sprintf("request%d.out", i))); err != nil {
			t.Errorf("%s: %v\n%s", fakes[i], err, log)
		}
	}
	return out
}

func TestMeasureStops(t *testing.T) {
	limits := Request{MinSteps: 5, MaxSteps: 8, MaxTime: 2, Interval: 0.2}
	cases := []struct {
		fake          string
		warmup, steps int
		warm, stopped string
		median, half  float64
		phases        bool
	}{
		{`{"seconds":[0.03]}`, 6, 6, "steady", "interval", 0.03, 0, true},
		// A slow first step does not count as warm-up time, and later steps do not wait for it.
		{`{"seconds":[9,0.1,0.1,0.1,0.1,0.1,0.1,0.1,0.1,0.1,0.1,0.1,0.1,0.1,0.1,0.1,0.1,0.1,0.1]}`, 6, 6, "steady", "interval", 0.1, 0, true},
		{`{"seconds":[0.005,0.03]}`, 20, 8, "max_steps", "max_steps", 0.0175, 0.0125 / 0.0175, true},
		{`{"seconds":[0.2,0.95]}`, 3, 3, "max_time", "max_time", 0.95, 0, true},
		// Warm-up ends after two steps of any duration, timing after one.
		{`{"seconds":[0.1,1.1,2.1]}`, 2, 1, "max_time", "max_time", 2.1, 0, false},
	}
	var fakes []string
	for _, c := range cases {
		fakes = append(fakes, c.fake)
	}
	for i, r := range fakeResults(t, fakes, limits) {
		c := cases[i]
		if len(r.WarmupSec) != c.warmup || len(r.StepSec) != c.steps || r.WarmupStopped != c.warm || r.Stopped != c.stopped {
			t.Errorf("%s: %d and %d steps, stopped by %s and %s, want %+v", c.fake, len(r.WarmupSec), len(r.StepSec), r.WarmupStopped, r.Stopped, c)
		}
		if med := (spec.Measurement{StepSec: r.StepSec}).MedianStepSec(); !near(med, c.median) || !near(r.HalfWidth, c.half) {
			t.Errorf("%s: median step %g s, half width %g, want %g and %g", c.fake, med, r.HalfWidth, c.median, c.half)
		}
		if (len(r.PhaseSec) > 0) != c.phases {
			t.Errorf("%s: phases %v", c.fake, r.PhaseSec)
		}
		took := 0.0
		for _, s := range r.StepSec {
			took += s
		}
		if !near(r.Ended-r.Began, took) {
			t.Errorf("%s: %g s of steps in %g s", c.fake, took, r.Ended-r.Began)
		}
		if r.LossFirst != 1 || r.LossLast != 1 || r.PeakBytes < 0 || r.ReservedBytes < 1<<20 || r.World != 1 || r.Parameters != 1000 {
			t.Errorf("%s: %+v", c.fake, r)
		}
	}
}

// near compares with a tolerance for sums of float64.
func near(a, b float64) bool { return math.Abs(a-b) < 1e-9 }

// TestMeasureLeastTime: steps continue for the minimum time; only max_time ends them earlier.
func TestMeasureLeastTime(t *testing.T) {
	limits := Request{MinSteps: 5, MaxSteps: 8, MinTime: 1, MaxTime: 4, Interval: 0.2}
	r := fakeResults(t, []string{`{"seconds":[0.03125]}`, `{"seconds":[2.5]}`}, limits)
	if w, n := len(r[0].WarmupSec), len(r[0].StepSec); w < 33 || w > 34 || n < 32 || n > 33 || r[0].WarmupStopped != "steady" || r[0].Stopped != "interval" {
		t.Errorf("steps of 1/32 s: %d and %d, stopped by %s and %s; want 1 s of each, the first step aside", w, n, r[0].WarmupStopped, r[0].Stopped)
	}
	if r[1].WarmupStopped != "max_time" || r[1].Stopped != "max_time" {
		t.Errorf("steps of 2.5 s: stopped by %s and %s", r[1].WarmupStopped, r[1].Stopped)
	}
}

func TestMeasurePhases(t *testing.T) {
	limits := Request{MinSteps: 5, MaxSteps: 20, MaxTime: 5, Interval: 0.5}
	cases := []struct {
		fake string
		want map[string]float64
	}{
		{`{"seconds":[0.1]}`, map[string]float64{"forward": 0.02, "backward": 0.05, "communication": 0.01, "optimizer": 0.01, "other": 0.01}},
		{`{"seconds":[0.1],"hidden_s":0.05}`, map[string]float64{"forward": 0.02, "backward": 0.05, "communication": 0.06, "optimizer": 0.01, "other": 0.01}},
		// Phases of later, slower steps are scaled to the median of the timed steps.
		{`{"seconds":[0.1,0.1,0.1,0.1,0.1,0.1,0.1,0.1,0.1,0.1,0.1,0.1,0.2,0.2,0.2,0.2,0.2,0.2]}`,
			map[string]float64{"forward": 0.02, "backward": 0.05, "communication": 0.01, "optimizer": 0.01, "other": 0.01}},
	}
	var fakes []string
	for _, c := range cases {
		fakes = append(fakes, c.fake)
	}
	for i, r := range fakeResults(t, fakes, limits) {
		c, sum := cases[i], 0.0
		for phase, sec := range r.PhaseSec {
			sum += sec
			if !near(sec, c.want[phase]) {
				t.Errorf("%s: %s takes %g s, want %g", c.fake, phase, sec, c.want[phase])
			}
		}
		if med := (spec.Measurement{StepSec: r.StepSec}).MedianStepSec(); math.Abs(sum-med) > 1e-9 || len(r.PhaseSec) != len(c.want) {
			t.Errorf("%s: phases %v add up to %g s, want the median %g", c.fake, r.PhaseSec, sum, med)
		}
	}
}

func TestMeasureFailures(t *testing.T) {
	limits := Request{MinSteps: 3, MaxSteps: 10, MaxTime: 5, Interval: 0.001}
	cases := []struct {
		fake    string
		outcome spec.Outcome
		want    string
	}{
		{`{"loss":{"3":"nan"}}`, spec.Failed, "loss is nan after step 3"},
		{`{"seconds":[0.03],"loss":{"12":"-inf"}}`, spec.Failed, "loss is infinite after step 12"},
		{`{"fail":{"step":0,"kind":"unsupported"}}`, spec.Failed, "unsupported: this plan needs FSDP2, torch 2.6 or later"},
		{`{"fail":{"step":2,"kind":"memory"}}`, spec.OOM, "MemoryError"},
		{`{"fail":{"step":2,"kind":"cpu allocator"}}`, spec.OOM, "memory"},
		{`{"fail":{"step":2,"kind":"cuda allocator"}}`, spec.OOM, "CUDA out of memory. Tried to allocate 2.00 GiB"},
		{`{"fail":{"step":1,"kind":"cublas"}}`, spec.OOM, "CUBLAS_STATUS_ALLOC_FAILED"},
		{`{"fail":{"step":1,"kind":"error"}}`, spec.Failed, "ValueError: a shape is wrong"},
	}
	var fakes []string
	for _, c := range cases {
		fakes = append(fakes, c.fake)
	}
	for i, r := range fakeResults(t, fakes, limits) {
		if c := cases[i]; r.Outcome != c.outcome || !strings.Contains(r.Reason, c.want) || r.FailedAt == 0 {
			t.Errorf("%s: %s %q, want %s %q", c.fake, r.Outcome, r.Reason, c.outcome, c.want)
		}
	}
	limits.Devices = 2
	r := fakeResults(t, []string{`{}`}, limits)[0]
	if r.Outcome != spec.Failed || !strings.Contains(r.Reason, "1 processes were started, the plan needs 2") {
		t.Errorf("one process for two devices: %s %q", r.Outcome, r.Reason)
	}
}

// TestMedianInterval: the ranks are those in tables of the two-sided sign test at 5 %; see
// pacer_worker/interval.py.
func TestMedianInterval(t *testing.T) {
	python := torchPython(t)
	cmd := exec.Command(python, "-c", `
from pacer_worker.interval import half_width, low_rank, median
print([low_rank(n) for n in (1, 5, 6, 8, 9, 11, 12, 15, 17, 20, 25, 30, 50, 100)])
print(half_width([5.0, 1, 2, 3, 4]), half_width([10.0, 9, 11, 8, 12, 10]), median([4.0, 1, 3, 2]))
print([low_rank(n) for n in (1000, 1002, 4000, 1000000)])`)
	cmd.Env = append(os.Environ(), "PYTHONPATH=.")
	out, err := cmd.CombinedOutput()
	want := "[0, 0, 1, 1, 2, 2, 3, 4, 5, 6, 8, 10, 18, 40]\nNone 0.2 2.5\n[469, 470, 1938, 499020]\n"
	if err != nil || string(out) != want {
		t.Errorf("%v, %s; want %s", err, out, want)
	}
}

func TestFeatures(t *testing.T) {
	python, base := torchPython(t), fakeProgram(t)
	out := filepath.Join(base, "features.json")
	if log, err := exec.Command(python, filepath.Join(base, programDir), "--features", "--out", out).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, log)
	}
	f, err := ReadFeatures(out)
	if err != nil || f.Torch == "" || !f.Torchrun || f.Features["ddp"] != true || f.Error != "" {
		t.Errorf("%+v, %v", f, err)
	}
	for text, want := range map[string]string{"{": "features", `{"version":7}`: "version 7", `{"version":1}`: "neither"} {
		spectest.WriteFile(t, out, []byte(text), 0o600)
		if _, err := ReadFeatures(out); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v", text, err)
		}
	}
}

// TestMeasureOutlivesPhases: the steps that measure phases run after a point is measured and need more memory. Their
// failure does not change the result of the point.
func TestMeasureOutlivesPhases(t *testing.T) {
	limits := Request{MinSteps: 5, MaxSteps: 8, MaxTime: 2, Interval: 0.2}
	fakes := []string{ // 6 steps to warm up, 6 timed
		`{"seconds":[0.03],"fail":{"step":13,"kind":"cuda allocator"}}`,
		`{"seconds":[0.03],"fail":{"step":99,"kind":"cuda allocator"}}`,
	}
	for i, r := range fakeResults(t, fakes, limits) {
		if failed := i == 0; r.Outcome != spec.OK || len(r.StepSec) != 6 || failed != (len(r.PhaseSec) == 0) {
			t.Errorf("%s: %s, %d steps, phases %v", fakes[i], r.Outcome, len(r.StepSec), r.PhaseSec)
		}
	}
}

// TestTimer: kernels are timed while the host runs ahead, without a GPU.
func TestTimer(t *testing.T) {
	t.Parallel()
	cmd := exec.CommandContext(t.Context(), torchPython(t), filepath.Join("testdata", "timer.py"), ".")
	cmd.Env = append(os.Environ(), "PYTHONDONTWRITEBYTECODE=1")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}
