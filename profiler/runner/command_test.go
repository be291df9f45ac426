//go:build linux

package runner

import (
	"context"
	"fmt"
	"math"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/profiler"
	"github.com/pacer-ml/pacer/profiler/executor"
)

func newCommand(t *testing.T, c profiler.CommandSpec, timeout time.Duration) *Command {
	t.Helper()
	r, err := NewCommand(CommandOptions{Command: c, Machine: profiler.Machine{Devices: []int{0, 1}, CPU: true},
		Point: profiler.PointOptions{Timeout: timeout}, Executor: executor.Local{Grace: 300 * time.Millisecond}})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// TestCommandEvil: any end of a command becomes an outcome, and none of its processes is left.
func TestCommandEvil(t *testing.T) {
	word := t.TempDir()
	for _, c := range []struct {
		line, reason string
		outcome      spec.Outcome
	}{
		{"echo Traceback; exit 3", `exit status 3, last line "Traceback"; no optimizer step was seen`, spec.Failed},
		{"echo all done", "no step times: hook: 0 ranks stepped an optimizer, want 1", spec.Failed},
		{"echo torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 2 GiB; exit 1", `the log says "OutOfMemoryError"`, spec.OOM},
		{"kill -9 $$", `ended by signal "killed"`, spec.Failed},
		{strings.ReplaceAll(hang, "WORD", word), "did not end within 1s and was killed; no optimizer step was seen", spec.Timeout},
		{`echo garbage >"$PACER_HOOK_OUT/rank0-1.jsonl"`, "rank0-1.jsonl: line 1: not a line of the hook", spec.Failed},
	} {
		timeout := 10 * time.Minute
		if c.outcome == spec.Timeout {
			timeout = time.Second
		}
		m, err := newCommand(t, profiler.CommandSpec{Args: []string{c.line}, WarmUp: 1, Timed: 2}, timeout).Run(context.Background(), tiny(1))
		if err != nil {
			t.Fatal(err)
		}
		if m.Outcome != c.outcome || !strings.Contains(m.Reason, c.reason) {
			t.Errorf("%s: %s %q, want %s %q", c.line, m.Outcome, m.Reason, c.outcome, c.reason)
		}
		check(t, m, tiny(1))
	}
	noneLeft(t, word)
	missing := profiler.CommandSpec{Args: []string{"/none/such", "x"}, WarmUp: 1, Timed: 1}
	if _, err := newCommand(t, missing, time.Second).Run(context.Background(), tiny(1)); err == nil || !strings.Contains(err.Error(), "/none/such") {
		t.Errorf("a program that is missing: %v", err)
	}
}

// TestCommandLines: what hook and log say about a plan decides the outcome. The shell writes their lines.
func TestCommandLines(t *testing.T) {
	hooked := func(world, steps, backwards int) string {
		return fmt.Sprintf(`(echo '{"event":"start","version":1,"world":%d}'
for i in $(seq %d); do echo '{"event":"step","n":'$i',"sec":1,"end":'$i',"backwards":%d}'; done) >"$PACER_HOOK_OUT/rank0-1.jsonl"`+"\n", world, steps, backwards)
	}
	logged := func(batch int) string {
		return fmt.Sprintf(`for i in 1 2 3 4 5 6 7 8 9; do echo "iteration $i/ 9 | elapsed time per iteration (ms): 900.0 | global batch size: %d |"; done`+"\n", batch)
	}
	for _, c := range []struct {
		name, lines string
		accumulate  int
		outcome     spec.Outcome
		steps       int
		want        string // in the reason, the doubt or the warning
	}{
		{"hook", hooked(1, 9, 1), 1, spec.OK, 6, ""},
		{"killed after its steps", hooked(1, 9, 1) + "kill -9 $$", 1, spec.OK, 6, `after its steps the command failed: ended by signal "killed"`},
		{"fewer steps", hooked(1, 7, 1), 1, spec.Failed, 0, "the command made 7 training steps, want 9"},
		{"crash after fewer steps", hooked(1, 7, 1) + "exit 3", 1, spec.Failed, 0, "exit status 3, last line \"\"; it made 7 of 9 training steps"},
		{"more steps", hooked(1, 18, 1), 1, spec.Failed, 0, "the command made 18 training steps, want 9"},
		{"no accumulation", hooked(1, 9, 1), 2, spec.OK, 6, "a step has 1 backward passes, plan dp=1,tp=1,pp=1,mb=2,ga=2 has 2 micro-batches"},
		{"other world", hooked(2, 9, 1), 1, spec.Failed, 0, "the job has 2 ranks (WORLD_SIZE), want 1"},
		{"log", logged(2), 1, spec.OK, 6, ""},
		{"other batch", logged(5), 1, spec.Failed, 0, "the log of megatron has 5 samples per step, the plan dp=1,tp=1,pp=1,mb=2,ga=1 has 2"},
		{"other batch, hook", hooked(1, 9, 1) + logged(5), 1, spec.Failed, 0, "has 5 samples per step, the plan dp=1,tp=1,pp=1,mb=2,ga=1 has 2"},
		{"hook and log differ", hooked(1, 9, 1) + logged(2), 1, spec.OK, 6, "steps 4 to 9 took 1 s in the mean, the log of megatron says 0.9 s"},
	} {
		config := tiny(1)
		config.Plan.AccumSteps = c.accumulate
		r := newCommand(t, profiler.CommandSpec{Args: []string{c.lines + "\n# {steps}"}, WarmUp: 3, Timed: 6}, 10*time.Minute)
		m, err := r.Run(context.Background(), config)
		said := m.Reason + m.Doubt + m.Env[profiler.EnvWarning]
		if err != nil || m.Outcome != c.outcome || len(m.StepSec) != c.steps || !strings.Contains(said, c.want) || c.want == "" && said != "" {
			t.Errorf("%s: %v, %s, %d steps, %q; want %s, %d, %q\n%s", c.name, err, m.Outcome, len(m.StepSec), said, c.outcome, c.steps, c.want, m.Env[profiler.EnvLog])
		}
		check(t, m, config)
	}
}

// TestCommandTrains: unchanged scripts that train with torch are measured.
func TestCommandTrains(t *testing.T) {
	if testing.Short() {
		t.Skip("imports torch in many processes")
	}
	python := withTorch(t, TorchrunOptions{}).features.Executable
	scripts, err := filepath.Abs("../hook/testdata")
	if err != nil {
		t.Fatal(err)
	}
	torchrun := python + " -m torch.distributed.run --nproc_per_node={nproc} --nnodes={nodes} --master_addr=127.0.0.1 --master_port={port} -r 2 -t 2 --log_dir {out} "
	for _, c := range []struct {
		name, line string
		devices    int
		accumulate int
	}{
		{"plain", python + " plain.py --steps {steps} --batch-size {mb} --accumulate {ga} --seq {seq}", 1, 2},
		{"ddp without end", torchrun + "ddp.py --steps 1000000 --batch-size {mb} --accumulate {ga}", 2, 2},
		{"zero", torchrun + "zero.py --steps {steps} --batch-size {mb}", 2, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newCommand(t, profiler.CommandSpec{Args: []string{c.line}, Dir: scripts, WarmUp: 3, Timed: 6}, 10*time.Minute)
			config := tiny(c.devices)
			config.Plan.AccumSteps = c.accumulate
			m, err := r.Run(context.Background(), config)
			if err != nil {
				t.Fatal(err)
			}
			if m.Outcome != spec.OK || m.Doubt != "" {
				t.Fatalf("%s, reason %q, doubt %q\n%s", m.Outcome, m.Reason, m.Doubt, m.Env[profiler.EnvLog])
			}
			check(t, m, config)
			noneLeft(t, "ddp.py\x00--steps\x001000000")
			if len(m.StepSec) != 6 || m.PeakBytes <= 0 || m.Env[profiler.EnvTiming] != "hook" || m.Env[profiler.EnvTorch] == "" || m.Env[profiler.EnvWarning] != "" {
				t.Errorf("%d steps, peak %g, env %v", len(m.StepSec), m.PeakBytes, m.Env)
			}
			if share, err := strconv.ParseFloat(m.Env[profiler.EnvHookShare], 64); err != nil || !(share > 0 && share < 1) {
				t.Errorf("share of the hook %q", m.Env[profiler.EnvHookShare])
			}
		})
	}
}

// TestCommandLogs: programs that print the log of a framework. Hook and log agree within 1 % over the same steps, the log
// alone does as well.
func TestCommandLogs(t *testing.T) {
	if testing.Short() {
		t.Skip("imports torch in many processes")
	}
	python := withTorch(t, TorchrunOptions{}).features.Executable
	scripts, err := filepath.Abs("../hook/testdata")
	if err != nil {
		t.Fatal(err)
	}
	measure := func(t *testing.T, line string) spec.Measurement {
		t.Helper()
		r := newCommand(t, profiler.CommandSpec{Args: []string{line}, Dir: scripts, WarmUp: 4, Timed: 12}, 10*time.Minute)
		m, err := r.Run(context.Background(), tiny(1))
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
	for _, style := range []string{"megatron", "torchtitan", "trainer"} {
		t.Run(style, func(t *testing.T) {
			line := " logged.py " + style + " --steps {steps} --seq {seq} --batch-size "
			var m spec.Measurement
			diff, err := 1.0, error(nil)
			for range 3 { // between the two readings of the clock another program may run
				m = measure(t, python+line+"{mb}")
				if diff, err = strconv.ParseFloat(m.Env[profiler.EnvLogDifference], 64); math.Abs(diff) <= 0.01 {
					break
				}
			}
			if m.Outcome != spec.OK || m.Env[profiler.EnvTiming] != "hook" || len(m.StepSec) != 12 || err != nil || math.Abs(diff) > 0.01 {
				t.Errorf("%s %s, %d steps, env %v", m.Outcome, m.Reason, len(m.StepSec), m.Env)
			}
			t.Logf("log against hook: %+.2f %%", 100*diff)
			m = measure(t, python+" -E"+line+"{mb}") // -E: Python does not see PYTHONPATH
			if m.Outcome != spec.OK || m.Env[profiler.EnvTiming] != style || len(m.StepSec) != 6 {
				t.Errorf("log alone: %s %s, %d steps, env %v", m.Outcome, m.Reason, len(m.StepSec), m.Env)
			}
			if style == "torchtitan" && (m.PeakBytes != 1.5*(1<<30) || m.Env[spec.EnvMemKind] != "reserved") {
				t.Errorf("memory %g, %s", m.PeakBytes, m.Env[spec.EnvMemKind])
			}
		})
	}
}

// TestCommandCheck: a command that would run two points alike is refused.
func TestCommandCheck(t *testing.T) {
	points := func(change func(*spec.Plan)) []profiler.Point {
		a, b := tiny(1), tiny(1)
		change(&b.Plan)
		return []profiler.Point{{Config: a}, {Config: b}}
	}
	r := newCommand(t, profiler.CommandSpec{Args: []string{"train.py", "--batch", "{mb}"}, Env: []string{"GA={ga}"}, WarmUp: 1, Timed: 1}, 10*time.Minute)
	for name, change := range map[string]func(*spec.Plan){
		"mb": func(p *spec.Plan) { p.MicroBatch = 4 },
		"ga": func(p *spec.Plan) { p.AccumSteps = 4 },
	} {
		if err := r.Check(points(change)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	err := r.Check(points(func(p *spec.Plan) { p.Recompute = spec.RecomputeFull }))
	if err == nil || !strings.Contains(err.Error(), "recompute=full have the same command") {
		t.Errorf("recompute: %v", err)
	}
}

// TestCommandEmit: the settings of each point are written, and what the framework lacks is said.
func TestCommandEmit(t *testing.T) {
	c := tiny(1)
	c.Accelerator = spec.Accelerator{Name: "h100"}
	r := newCommand(t, profiler.CommandSpec{Args: []string{`cp {emit} $KEEP; echo "$TRAIN_ITERS $NODE_RANK"; exit 1`}, Emit: "megatron",
		Env: []string{"KEEP=" + filepath.Join(t.TempDir(), "script")}, WarmUp: 2, Timed: 3}, 10*time.Minute)
	m, err := r.Run(context.Background(), c)
	if err != nil || m.Env[profiler.EnvLog] != "5 0\n" {
		t.Errorf("%v, %+v", err, m)
	}
	if why := r.Lacks(c); why != "" {
		t.Errorf("lacks %q", why)
	}
	c.Plan.Offload = spec.OffloadParams
	if why := r.Lacks(c); !strings.Contains(why, "offload=params") {
		t.Errorf("lacks %q, want offload=params", why)
	}
}
