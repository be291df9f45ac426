package trainlog

import (
	"bytes"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/perfmodel/spec/spectest"
)

func readFile(t *testing.T, name string) Log {
	t.Helper()
	text := spectest.ReadFile(t, filepath.Join("testdata", name))
	// In pieces, as a pipe gives them.
	var r Reader
	for chunk := range slices.Chunk(text, 17) {
		_, _ = r.Write(chunk)
	}
	l, ok := r.Log("")
	if !ok {
		t.Fatalf("%s: nothing read", name)
	}
	whole, err := Read(bytes.NewReader(text), "")
	if err != nil || !slices.Equal(whole.Lines, l.Lines) {
		t.Errorf("%s: in one piece %+v, %v; in pieces %+v", name, whole, err, l)
	}
	return l
}

func plan(dp, mb, ga int) spec.Plan {
	return spec.Plan{DP: dp, TP: 1, PP: 1, MicroBatch: mb, AccumSteps: ga}
}

func TestLogs(t *testing.T) {
	const gib, mib = 1 << 30, 1 << 20
	for _, c := range []struct {
		file           string
		format         Format
		plan           spec.Plan
		warmup         int
		sec            []float64
		from, to       int
		peak, reserved float64
		warnings       int
	}{
		// Lines are means of five steps; the first one is also of the warm-up.
		{"megatron.log", Megatron, plan(2, 4, 8), 3, []float64{.8126, .8099, .8113}, 5, 20, 20481.5 * mib, 23041 * mib, 0},
		// 16 samples of 2048 tokens on 2 devices at 8192 tokens/s of each are 2 s.
		{"torchtitan.log", Torchtitan, plan(2, 8, 1), 4, []float64{2 * 8192. / 8190, 2, 2 * 8192. / 8194, 2}, 4, 12, 0, 46.5 * gib, 0},
		{"deepspeed.log", DeepSpeed, plan(2, 4, 4), 3, []float64{32 / 16.04, 32 / 16.05, 32 / 16.06}, 3, 6, 17.5 * gib, 0, 0},
		// The rate counts a quarter of the samples; the lines are 2 s apart.
		{"deepspeed_wrong.log", DeepSpeed, plan(2, 4, 4), 3, []float64{2, 2, 2}, 3, 6, 17.5 * gib, 0, 1},
		{"deepspeed_old.log", DeepSpeed, plan(2, 16, 1), 5, []float64{.5, .5, .5}, 10, 40, 9.02 * gib, 0, 0},
		{"nemo.log", NeMo, plan(4, 8, 1), 2, []float64{1.27, 1.28, 1.29, 1.30}, 2, 6, 0, 0, 0},
		{"trainer_end.log", Trainer, plan(2, 4, 2), 2, []float64{2.4}, 0, 8, 0, 0, 1},
		{"maxtext.log", MaxText, plan(4, 1, 1), 2, []float64{1.502, 1.503, 1.504, 1.505}, 2, 6, 0, 0, 0},
	} {
		t.Run(c.file, func(t *testing.T) {
			l := readFile(t, c.file)
			if l.Format != c.format || !near(l.PeakBytes, c.peak) || !near(l.ReservedBytes, c.reserved) {
				t.Errorf("format %s, peak %g, reserved %g", l.Format, l.PeakBytes, l.ReservedBytes)
			}
			if err := l.Check(c.plan, 2048, 0, 0); err != nil {
				t.Error(err)
			}
			got, err := l.Time(c.plan, 2048, c.warmup, 0)
			if err != nil || !slices.EqualFunc(got.StepSec, c.sec, near) || got.From != c.from || got.To != c.to || len(got.Warnings) != c.warnings {
				t.Errorf("%+v, %v; want %v of steps %d to %d", got, err, c.sec, c.from, c.to)
			}
		})
	}
}

// near allows for the three digits of rates.
func near(a, b float64) bool { return math.Abs(a-b) <= 1e-3*math.Abs(b) }

// TestCheck: a log that contradicts the plan is refused with both values.
func TestCheck(t *testing.T) {
	for _, c := range []struct {
		file       string
		plan       spec.Plan
		seq, steps int
		want       string
	}{
		{"megatron.log", plan(2, 4, 8), 2048, 25, "the log of megatron has 20 training steps, the plan dp=2,tp=1,pp=1,mb=4,ga=8 has 25"},
		{"megatron.log", plan(2, 4, 4), 2048, 20, "has 64 samples per step, the plan dp=2,tp=1,pp=1,mb=4,ga=4 has 32"},
		{"torchtitan.log", plan(2, 8, 1), 4096, 0, "has 2048 tokens per sample, the plan dp=2,tp=1,pp=1,mb=8,ga=1 has 4096"},
		{"torchtitan.log", plan(2, 4, 2), 2048, 0, "has 8 samples per micro-batch, the plan dp=2,tp=1,pp=1,mb=4,ga=2 has 4"},
		{"torchtitan.log", plan(1, 8, 2), 2048, 0, "has 1 micro-batches per step, the plan dp=1,tp=1,pp=1,mb=8,ga=2 has 2"},
		{"torchtitan.log", spec.Plan{DP: 1, TP: 2, PP: 1, MicroBatch: 16, AccumSteps: 1}, 2048, 0, "has 8 samples per micro-batch"},
		{"torchtitan.log", spec.Plan{DP: 1, TP: 1, PP: 2, MicroBatch: 4, AccumSteps: 4}, 2048, 0, "has 2 data-parallel replicas, the plan dp=1,tp=1,pp=2,mb=4,ga=4 has 1"},
		{"trainer.log", plan(1, 4, 4), 0, 0, "has 2 micro-batches per step, the plan dp=1,tp=1,pp=1,mb=4,ga=4 has 4"},
		{"nemo.log", plan(1, 8, 1), 0, 0, "has 32 samples per step"},
	} {
		l := readFile(t, c.file)
		if err := l.Check(c.plan, c.seq, c.steps, 0); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.file, err, c.want)
		}
	}
	l := readFile(t, "maxtext.log")
	if _, err := l.Time(plan(1, 1, 1), 0, 6, 0); err == nil || !strings.Contains(err.Error(), "steps 7 and later") {
		t.Errorf("too few steps: %v", err)
	}
}

// TestNothing: texts without a step are none, and long or binary lines do no harm.
func TestNothing(t *testing.T) {
	for _, text := range []string{"", "hello\n", "iteration 5/10 |", strings.Repeat("x", 3*maxLine) + "\n", "step: 1 loss: nan tps: 0\n",
		" iteration 0/ 9 | elapsed time per iteration (ms): 1e999 |\n", "\x00\xff\x1b[31m\n"} {
		if l, err := Read(strings.NewReader(text), ""); err == nil {
			t.Errorf("%.40q: %+v", text, l)
		}
	}
	long := strings.Repeat("y", 2*maxLine) + "\ncompleted step: 3, seconds: 1.5, loss: 2\n"
	if l, err := Read(strings.NewReader(long), MaxText); err != nil || len(l.Lines) != 1 {
		t.Errorf("after a long line: %+v, %v", l, err)
	}
	if _, err := Read(strings.NewReader(long), Megatron); err == nil {
		t.Error("another format is read")
	}
}

func FuzzRead(f *testing.F) {
	files, _ := filepath.Glob("testdata/*.log")
	for _, file := range files {
		text := spectest.ReadFile(f, file)
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		l, err := Read(bytes.NewReader(text), "")
		if err != nil {
			return
		}
		_ = l.Check(plan(2, 2, 2), 128, 10, 0)
		got, err := l.Time(plan(2, 2, 2), 128, 1, 10)
		for _, sec := range got.StepSec {
			if err == nil && !(sec > 0 && !math.IsInf(sec, 0)) {
				t.Errorf("step of %g s", sec)
			}
		}
	})
}
