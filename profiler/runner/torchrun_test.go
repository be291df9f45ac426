//go:build unix

package runner

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/perfmodel/spec/spectest"
	"github.com/pacer-ml/pacer/profiler"
	"github.com/pacer-ml/pacer/profiler/executor"
)

// tiny returns a configuration with dp devices.
func tiny(dp int) spec.Config {
	return spec.Config{
		Model: spec.Model{Name: "tiny", Kind: spec.Decoder, Layers: 2, Hidden: 32, FFN: 64, Heads: 2, Vocab: 100, SeqLen: 16},
		Plan:  spec.Plan{DP: dp, TP: 1, PP: 1, MicroBatch: 2, AccumSteps: 1}, Accelerator: spec.Accelerator{Name: "cpu"},
		Shape: spec.Shape{Devices: strconv.Itoa(dp)},
	}
}

// goodResult returns a line of shell that writes the result of a worker on world devices.
func goodResult(world int) string {
	return fmt.Sprintf(`echo '{"version":1,"outcome":"ok","world":%d,"parameters":1000,"torch":"9.9","python":"3.99",`+
		`"notes":{"attention":"sdpa"},"warmup_sec":[0.3,0.2],"warmup_stopped":"steady","step_sec":[0.5,0.5,0.25,0.5,0.5,0.5],`+
		`"stopped":"max_steps","half_width":0.25,"began":1700000000,"ended":1700000002,"phase_sec":{"forward":0.5},`+
		`"peak_bytes":1e9,"reserved_bytes":2e9,"loss_first":7,"loss_last":6}' >"$out"`, world)
}

// fakePython writes a python3 that handles --features and otherwise runs the given lines of shell, with the
// result file in $out. Every process that it starts has the returned directory among its arguments.
func fakePython(t *testing.T, lines string) (python, dir string) {
	t.Helper()
	dir = t.TempDir()
	python = filepath.Join(dir, "python3")
	lines = strings.ReplaceAll(lines, "WORD", dir)
	script := `#!/bin/sh
all="$*" out= features=
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
` + lines + "\n"
	spectest.WriteFile(t, python, []byte(script), 0o755)
	return python, dir
}

// noneLeft checks that no running process has word in its arguments.
func noneLeft(t *testing.T, word string) {
	t.Helper()
	files, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, file := range files {
		args, _ := os.ReadFile(file)
		if bytes.Contains(args, []byte(word)) {
			t.Errorf("still alive: %s %q", file, args)
		}
	}
}

func newTorchrun(t *testing.T, o TorchrunOptions) *Torchrun {
	t.Helper()
	if o.Machine.Devices == nil {
		o.Machine = profiler.Machine{Devices: []int{0, 1}, CPU: true}
	}
	r, err := NewTorchrun(o)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

const (
	oomOnRank1 = `echo '{"version":1,"outcome":"oom","reason":"cannot allocate 9 GiB","rank":1,"failed_at":5}' >"$out.rank1"`
	hang       = `(setsid sh -c 'trap "" TERM HUP; while :; do sleep 0.1; done' WORD &); while :; do sleep 0.1; done`
)

// TestTorchrunEvil: any behaviour of a worker becomes an outcome, and none of its processes is left.
func TestTorchrunEvil(t *testing.T) {
	for _, c := range []struct {
		name, script string
		devices      int
		outcome      spec.Outcome
		reason, log  string // parts
	}{
		{"garbage", "echo training...; head -c 100000 /dev/urandom; echo bye", 1, spec.Failed, "no result: exit status 0", "bye"},
		{"crash", "echo Traceback >&2; exit 3", 1, spec.Failed, "no result: exit status 3", "Traceback"},
		{"crash of a rank", "echo Traceback >&2; exit 1", 2, spec.Failed, "no result: exit status 1", "Traceback"},
		{"segfault", "kill -SEGV $$", 1, spec.Failed, `ended by signal "segmentation fault"`, ""},
		{"killed", "kill -9 $$", 1, spec.Failed, "another process sent it", ""},
		{"killed rank", "echo 'exitcode  : -9 (pid: 7)'; exit 1", 2, spec.Failed, "another process sent it", ""},
		{"peer of a killed rank", `echo '{"version":1,"outcome":"failed","reason":"closed by peer","lost_peer":true}' >"$out.rank0"; echo "exitcode: -9"; exit 1`,
			2, spec.Failed, "a process disappeared (closed by peer): killed by SIGKILL", ""},
		{"NaN", `echo '{"version":1,"outcome":"ok","step_sec":[NaN]}' >"$out"`, 1, spec.Failed, "not a result in JSON", ""},
		{"half a file", goodResult(1) + `; head -c 90 "$out" >"$out.x"; mv "$out.x" "$out"`, 1, spec.Failed, "truncated after 90 bytes", ""},
		{"empty file", `: >"$out"`, 1, spec.Failed, "the file is empty", ""},
		{"directory", `mkdir "$out"`, 1, spec.Failed, "is a directory", ""},
		{"impossible times", `echo '{"version":1,"outcome":"ok","world":1,"step_sec":[0],"stopped":"x","warmup_stopped":"x","began":1,"ended":2}' >"$out"`,
			1, spec.Failed, "step_sec[0]=0", ""},
		{"other world", goodResult(1), 2, spec.Failed, "ran on 1 devices, plan dp=2", ""},
		{"nan loss", `echo '{"version":1,"outcome":"failed","reason":"loss is nan after step 3"}' >"$out"`, 1, spec.Failed, "loss is nan after step 3", ""},
		{"oom of a rank", oomOnRank1 + "; echo tail; exit 1", 2, spec.OOM, "cannot allocate 9 GiB", "tail"},
		{"oom of a rank, others hang", oomOnRank1 + "; " + hang, 2, spec.OOM, "cannot allocate 9 GiB", ""},
		{"oom of a rank after all", oomOnRank1 + "; " + goodResult(2), 2, spec.OOM, "cannot allocate 9 GiB", ""},
		{"forks and hangs", "echo started; " + hang, 1, spec.Timeout, "did not end within 3s", "started"},
		{"result of a part, then hangs", goodResult(1) + "; " + hang, 2, spec.Timeout, "did not end within 3s", ""},
		{"too many devices", "exit 0", 3, spec.Failed, "needs 3 devices, the machine has 2", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			python, word := fakePython(t, c.script)
			timeout := 10 * time.Minute
			if strings.Contains(c.script, hang) {
				timeout = 3 * time.Second
			}
			r := newTorchrun(t, TorchrunOptions{Python: python, Point: profiler.PointOptions{Timeout: timeout},
				Executor: executor.Local{Grace: 300 * time.Millisecond}})
			m, err := r.Run(context.Background(), tiny(c.devices))
			if err != nil {
				t.Fatal(err)
			}
			if m.Outcome != c.outcome || !strings.Contains(m.Reason, c.reason) || !strings.Contains(m.Env[profiler.EnvLog], c.log) {
				t.Errorf("outcome %s, reason %q, log %q; want %s, %q, %q", m.Outcome, m.Reason, m.Env[profiler.EnvLog], c.outcome, c.reason, c.log)
			}
			check(t, m, tiny(c.devices))
			if len(m.StepSec) > 0 || m.PeakBytes != 0 {
				t.Errorf("a point that is not ok has figures: %v, %g", m.StepSec, m.PeakBytes)
			}
			noneLeft(t, word)
		})
	}
}

// check checks the fields that every measurement has.
func check(t *testing.T, m spec.Measurement, c spec.Config) {
	t.Helper()
	if m.Config != c || m.At.IsZero() {
		t.Errorf("config %+v at %v", m.Config, m.At)
	}
	if wall, err := strconv.ParseFloat(m.Env[profiler.EnvWall], 64); err != nil || wall < 0 || wall > 600 {
		t.Errorf("wall time %q", m.Env[profiler.EnvWall])
	}
	m.Source = "test"
	if err := m.Validate(); err != nil {
		t.Error(err)
	}
}

// watch is a Watcher that records its calls.
type watch struct {
	devices []int
	pgid    func() int
	during  int // process group at the end
	seconds float64
}

func (w *watch) Watch(devices []int, pgid func() int) func(_, _ time.Time) Watched {
	w.devices, w.pgid = devices, pgid
	return func(began, ended time.Time) Watched {
		w.during, w.seconds = pgid(), ended.Sub(began).Seconds()
		return Watched{Env: map[string]string{profiler.EnvThrottle: "hot"}, EnergyJoules: 600, AvgWatts: 300, Doubt: "throttled"}
	}
}

func TestTorchrunGood(t *testing.T) {
	python, word := fakePython(t, goodResult(2)+"; sleep 1000 & exit 4")
	w := &watch{}
	r := newTorchrun(t, TorchrunOptions{Python: python, Watch: w, Machine: profiler.Machine{Devices: []int{3, 5, 6}, CPU: true}})
	m, err := r.Run(context.Background(), tiny(2))
	if err != nil {
		t.Fatal(err)
	}
	check(t, m, tiny(2))
	noneLeft(t, word)
	if m.Outcome != spec.OK || len(m.StepSec) != 6 || m.StepSec[2] != 0.25 || m.PhaseSec["forward"] != 0.5 || m.PeakBytes != 1e9 || m.Doubt != "throttled" {
		t.Errorf("%+v", m)
	}
	flops := tiny(2).Model.TrainFLOPs(16) * 4 / 0.5 / 2
	for key, want := range map[string]string{
		profiler.EnvReserved: "2e+09", profiler.EnvEnergy: "100", profiler.EnvThrottle: "hot", "power_w": "300",
		profiler.EnvFLOPS: number(flops), "torch": "9.9", "python": "3.99", "used_attention": "sdpa", "params": "1000",
		profiler.EnvNoise:   "95 % interval of the median step time is +-25.0 % after 6 steps, wanted +-2.0 %; stopped by max_steps",
		profiler.EnvWarning: "after writing its result the worker failed: exit status 4; 1 processes outlived the worker and were killed",
		profiler.EnvLog:     "", "cuda": "", profiler.EnvHalfWidth: "0.25",
	} {
		if m.Env[key] != want {
			t.Errorf("%s is %q, want %q", key, m.Env[key], want)
		}
	}
	if !slices.Equal(w.devices, []int{3, 5}) || w.during == 0 || w.seconds != 2 {
		t.Errorf("watched %v, group %d, for %g s", w.devices, w.during, w.seconds)
	}
}

// TestTorchrunHangsAfterResult: a worker that hangs after all measurements still gives its result.
func TestTorchrunHangsAfterResult(t *testing.T) {
	python, word := fakePython(t, goodResult(1)+"; "+hang)
	r := newTorchrun(t, TorchrunOptions{Python: python, Point: profiler.PointOptions{Timeout: 2 * time.Second},
		Executor: executor.Local{Grace: 300 * time.Millisecond}})
	m, err := r.Run(context.Background(), tiny(1))
	if err != nil || m.Outcome != spec.OK || len(m.StepSec) != 6 || !strings.Contains(m.Env[profiler.EnvWarning], "the worker hung") {
		t.Errorf("%+v, %v", m, err)
	}
	noneLeft(t, word)
}

// TestTorchrunLaunch: device indices, threads and the rendezvous reach the processes.
func TestTorchrunLaunch(t *testing.T) {
	python, _ := fakePython(t, `echo "cuda=$CUDA_VISIBLE_DEVICES order=$CUDA_DEVICE_ORDER omp=$OMP_NUM_THREADS args=$all"; exit 1`)
	run := func(o TorchrunOptions, devices int) string {
		o.Python = python
		config := tiny(devices)
		if devices == 3 {
			config.Shape.CPUs = 16
		}
		m, err := newTorchrun(t, o).Run(context.Background(), config)
		if err != nil {
			t.Fatal(err)
		}
		return m.Env[profiler.EnvLog]
	}
	t.Setenv("CUDA_VISIBLE_DEVICES", "9")
	t.Setenv("OMP_NUM_THREADS", "77")
	gpus := profiler.Machine{Devices: []int{2, 0, 7}}
	cpus := profiler.Machine{Devices: []int{0, 1}, CPU: true}
	for _, c := range []struct {
		o       TorchrunOptions
		devices int
		want    []string
	}{
		{TorchrunOptions{Machine: gpus}, 2, []string{"cuda=2,0 ", "order=PCI_BUS_ID", "omp=77 ", "-m torch.distributed.run", "--nproc_per_node=2", "--request "}},
		{TorchrunOptions{Machine: gpus, Point: profiler.PointOptions{Threads: 4}}, 1, []string{"cuda=2 ", "omp=4 "}},
		{TorchrunOptions{Machine: gpus}, 3, []string{"cuda=2,0,7 ", "omp=5 "}}, // 5 of 16 CPUs
		{TorchrunOptions{Machine: cpus}, 2, []string{"cuda= ", "omp=1 "}},
		{TorchrunOptions{Machine: cpus, Point: profiler.PointOptions{Threads: 2}}, 1, []string{"cuda= ", "omp=2 "}},
	} {
		log := run(c.o, c.devices)
		for _, want := range c.want {
			if !strings.Contains(log, want) {
				t.Errorf("%d of %v: %q is not in %q", c.devices, c.o.Machine.Devices, want, log)
			}
		}
		if c.devices == 1 && strings.Contains(log, "torch.distributed.run") {
			t.Errorf("one device is launched by torchrun: %q", log)
		}
	}
}

// TestTorchrunPortTaken: a port that is taken before the launch is not an outcome, regardless of what a rank
// reports.
func TestTorchrunPortTaken(t *testing.T) {
	python, _ := fakePython(t, `if [ ! -e WORD/tried ]; then : >WORD/tried; echo 'errno: 98 - Address already in use'
echo '{"version":1,"outcome":"failed","reason":"RuntimeError: no store","rank":1,"failed_at":1}' >"$out.rank1"; exit 1; fi
`+goodResult(2))
	m, err := newTorchrun(t, TorchrunOptions{Python: python}).Run(context.Background(), tiny(2))
	if err != nil || m.Outcome != spec.OK {
		t.Errorf("%+v, %v", m, err)
	}
}

// TestTorchrunDiskFull: a full disk is an error and not an outcome of the point.
func TestTorchrunDiskFull(t *testing.T) {
	python, _ := fakePython(t, `echo 'OSError: [Errno 28] No space left on device'; exit 1`)
	m, err := newTorchrun(t, TorchrunOptions{Python: python}).Run(context.Background(), tiny(1))
	if err == nil || !strings.Contains(err.Error(), "no space left") || m.Outcome != "" {
		t.Errorf("%+v, %v", m, err)
	}
	t.Setenv("TMPDIR", filepath.Join(t.TempDir(), "none"))
	if m, err := newTorchrun(t, TorchrunOptions{Python: python}).Run(context.Background(), tiny(1)); err == nil || m.Outcome != "" {
		t.Errorf("%+v, %v", m, err)
	}
}

func TestTorchrunContext(t *testing.T) {
	python, word := fakePython(t, hang)
	ctx, cancel := context.WithCancel(context.Background())
	time.AfterFunc(500*time.Millisecond, cancel)
	begin := time.Now()
	m, err := newTorchrun(t, TorchrunOptions{Python: python}).Run(ctx, tiny(1))
	if !errors.Is(err, context.Canceled) || m.Outcome != "" {
		t.Errorf("%+v, %v", m, err)
	}
	if took := time.Since(begin); took > spectest.Patience(10*time.Second) {
		t.Errorf("took %v", took)
	}
	noneLeft(t, word)
}

// TestEndingKilledForMemory: the kernel's counter distinguishes its own kills from those of other processes.
func TestEndingKilledForMemory(t *testing.T) {
	e := workerExit{exit: profiler.Exit{Code: -1, Signal: "killed"}, outOfMemoryKill: true}
	_, e.noResult = readNothing(t)
	m := spec.Measurement{Env: map[string]string{}}
	if e.setOutcome(&m); m.Outcome != spec.OOM || !strings.Contains(m.Reason, "kernel") {
		t.Errorf("%s %q", m.Outcome, m.Reason)
	}
	e.exit = profiler.Exit{Code: 1} // another process was killed
	if e.setOutcome(&m); m.Outcome != spec.Failed {
		t.Errorf("%s %q", m.Outcome, m.Reason)
	}
	if _, err := os.Stat("/proc/vmstat"); err == nil && oomKills() < 0 {
		t.Error("no counter")
	}
}

func TestTorchrunOptionsValidate(t *testing.T) {
	m := profiler.Machine{Devices: []int{0}}
	for name, o := range map[string]TorchrunOptions{
		"devices":  {},
		"timeout":  {Machine: m, Point: profiler.PointOptions{Timeout: -1}},
		"time":     {Machine: m, Point: profiler.PointOptions{MaxTime: -1}},
		"least":    {Machine: m, Point: profiler.PointOptions{MinTime: time.Hour}},
		"steps":    {Machine: m, Point: profiler.PointOptions{MinSteps: 9, MaxSteps: 3}},
		"interval": {Machine: m, Point: profiler.PointOptions{Interval: -0.1}},
		"threads":  {Machine: m, Point: profiler.PointOptions{Threads: -1}},
	} {
		if _, err := NewTorchrun(o); err == nil || !strings.HasPrefix(err.Error(), "runner: torchrun: ") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
