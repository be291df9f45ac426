package runner

import (
	"context"
	"errors"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/pacer-ml/pacer/perfmodel"
	"github.com/pacer-ml/pacer/perfmodel/family/analytic"
	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/profiler"
)

var (
	_ profiler.Runner = (*Replay)(nil)
	_ profiler.Tabled = (*Replay)(nil)
	_ profiler.Runner = (*Synthetic)(nil)
)

func config(mb int) spec.Config {
	return spec.Config{
		Model: spec.Model{Name: "m", Kind: spec.Decoder, Layers: 8, Hidden: 1024, FFN: 4096, Heads: 16, Vocab: 32000, SeqLen: 1024},
		Accelerator: spec.Accelerator{Name: "a", FP32: 2e13, TF32: 1e14, FP16: 3e14, BF16: 3e14,
			MemBytes: 80 << 30, MemBps: 2e12, ScaleUpBps: 3e11, HostBps: 2e10},
		Plan: spec.Plan{DP: 1, MicroBatch: mb, Precision: spec.BF16}.Normal(), Shape: spec.NewShape(1), Framework: "f",
	}
}

func stored(mb int, o spec.Outcome, sec ...float64) spec.Measurement {
	return spec.Measurement{Config: config(mb), Outcome: o, StepSec: sec, Source: "s", PeakBytes: float64(mb), Env: map[string]string{}}
}

func mustRun(t *testing.T, r profiler.Runner, c spec.Config) spec.Measurement {
	t.Helper()
	m, err := r.Run(context.Background(), c)
	if err != nil {
		t.Fatal(err)
	}
	if m.Config != c {
		t.Errorf("asked %s, answered %s", c.Plan, m.Config.Plan)
	}
	m.Source = "x"
	if err := m.Validate(); err != nil {
		t.Error(err)
	}
	return m
}

func TestReplay(t *testing.T) {
	doubted, wrong := stored(16, spec.OK, 9), stored(32, spec.OK, 9)
	doubted.Doubt, wrong.Env[spec.EnvWrongConfig] = "erratic", "half the batch"
	oom := stored(8, spec.OOM)
	oom.Reason, oom.Env[profiler.EnvLog], oom.Env[profiler.EnvWall], oom.Env[profiler.EnvRun] = "out of memory", "tail", "7.5", "3"
	rows := []spec.Measurement{
		oom, stored(1, spec.OK, 2), stored(2, spec.OK, 3, 1), stored(2, spec.Failed), stored(2, spec.OK, 2), doubted, wrong, stored(64, spec.OK),
		stored(128, spec.OOM).Quarantine("other driver"), stored(2, spec.OK, 9).Quarantine("throttled"),
	}
	r := NewReplay(rows, SimulatedTiming{})
	if got := len(r.Configs()); got != 3 || !slices.IsSortedFunc(r.Configs(), perfmodel.CompareConfigs) {
		t.Errorf("%d configurations, want 3 in canonical order: %v", got, r.Configs())
	}
	if m := mustRun(t, r, config(1)); m.Outcome != spec.OK || len(m.StepSec) != defaultSteps || m.MedianStepSec() != 2 || m.PeakBytes != 1 ||
		m.Env[profiler.EnvWall] != "40" {
		t.Errorf("one stored time: %+v", m)
	}
	if m := mustRun(t, r, config(2)); !slices.Equal(m.StepSec, []float64{1, 2, 3}) {
		t.Errorf("pooled rows: %v, want 1 2 3", m.StepSec)
	}
	m := mustRun(t, r, config(8))
	if m.Outcome != spec.OOM || m.Reason != "out of memory" || m.Env[profiler.EnvLog] != "tail" || m.Env[profiler.EnvWall] != "7.5" ||
		m.Env[profiler.EnvRun] != "" {
		t.Errorf("an outcome is replayed with its log, without its run: %+v", m)
	}
	for _, mb := range []int{16, 32, 64, 128} {
		if m := mustRun(t, r, config(mb)); m.Outcome != spec.Failed || !strings.HasPrefix(m.Reason, "not measured: no row of m on a, plan dp=1") {
			t.Errorf("micro-batch %d: %+v", mb, m)
		}
	}
	slices.Reverse(rows)
	if other := mustRun(t, NewReplay(rows, SimulatedTiming{}), config(2)); !slices.Equal(other.StepSec, []float64{1, 2, 3}) {
		t.Errorf("rows in another order: %v", other.StepSec)
	}
}

// TestNoise: the noise has the configured width and depends only on seed and configuration.
func TestNoise(t *testing.T) {
	rows := []spec.Measurement{stored(1, spec.OK, 2), stored(2, spec.OK, 2)}
	p := SimulatedTiming{Noise: 0.05, Seed: 1, Steps: 4000}
	r := NewReplay(rows, p)
	one, two := mustRun(t, r, config(1)).StepSec, mustRun(t, r, config(2)).StepSec
	if slices.Equal(one, two) {
		t.Error("two configurations have the same noise")
	}
	if again := mustRun(t, NewReplay(rows, p), config(1)).StepSec; !slices.Equal(one, again) {
		t.Error("the same seed gives other noise")
	}
	p.Seed = 2
	if other := mustRun(t, NewReplay(rows, p), config(1)).StepSec; slices.Equal(one, other) {
		t.Error("another seed gives the same noise")
	}
	mean, sq := 0.0, 0.0
	for _, s := range one {
		z := math.Log(s / 2)
		mean, sq = mean+z/4000, sq+z*z/4000
	}
	if sd := math.Sqrt(sq - mean*mean); math.Abs(sd-0.05) > 0.003 || math.Abs(mean) > 0.004 { // 4 standard errors
		t.Errorf("log step times have mean %.4f and deviation %.4f, want 0 and 0.05", mean, sd)
	}
}

func TestSynthetic(t *testing.T) {
	truth := &analytic.Model{}
	s := &Synthetic{Truth: truth, Timing: SimulatedTiming{Noise: 0.02, Seed: 3}}
	m, again := mustRun(t, s, config(4)), mustRun(t, s, config(4))
	want, err := truth.Predict(context.Background(), config(4))
	if err != nil {
		t.Fatal(err)
	}
	if got := m.MedianStepSec() / (4 / want.Throughput); math.Abs(got-1) > 0.03 || len(m.StepSec) != defaultSteps || m.PeakBytes != want.MemoryBytes {
		t.Errorf("median is %.3f of the truth, %d steps, %g bytes", got, len(m.StepSec), m.PeakBytes)
	}
	if !slices.Equal(m.StepSec, again.StepSec) {
		t.Error("two runs of one point differ")
	}
	sum := 0.0
	for _, x := range m.StepSec {
		sum += x
	}
	if wall, _ := strconv.ParseFloat(m.Env[profiler.EnvWall], 64); wall != sum {
		t.Errorf("held its device for %g s, its steps are %g", wall, sum)
	}
	if m := mustRun(t, s, config(4096)); m.Outcome != spec.OOM || !strings.Contains(m.Reason, "GiB of 80.0") || m.StepSec != nil {
		t.Errorf("a huge batch: %+v", m)
	}
	s.MemBytes = 1 << 30
	if m := mustRun(t, s, config(4)); m.Outcome != spec.OOM {
		t.Errorf("on a device of 1 GiB: %+v", m)
	}
	unknown := config(1)
	unknown.Accelerator = spec.Accelerator{Name: "a"}
	if m := mustRun(t, s, unknown); m.Outcome != spec.Failed || m.Reason == "" {
		t.Errorf("without figures: %+v", m)
	}
}

// silent predicts no memory; broken predicts nothing.
type silent struct{}

func (silent) Predict(context.Context, spec.Config) (spec.Prediction, error) {
	return spec.Prediction{Throughput: 1}, nil
}

type broken struct{}

func (broken) Predict(context.Context, spec.Config) (spec.Prediction, error) {
	return spec.Prediction{}, errors.New("no disk")
}

func TestSyntheticTruths(t *testing.T) {
	if m := mustRun(t, &Synthetic{Truth: silent{}}, config(4096)); m.Outcome != spec.OOM {
		t.Errorf("memory is estimated where the truth is silent: %+v", m)
	}
	if _, err := (&Synthetic{Truth: broken{}}).Run(context.Background(), config(1)); !errors.Is(err, profiler.ErrSetup) {
		t.Errorf("a truth that fails: %v, want ErrSetup", err)
	}
}

func TestDelay(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Millisecond)
	defer cancel()
	for _, r := range []profiler.Runner{
		NewReplay(nil, SimulatedTiming{Delay: time.Hour}), &Synthetic{Truth: silent{}, Timing: SimulatedTiming{Delay: time.Hour}},
	} {
		if _, err := r.Run(ctx, config(1)); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%T: %v, want the error of ctx", r, err)
		}
	}
	began := time.Now()
	m := mustRun(t, NewReplay([]spec.Measurement{stored(1, spec.OK, 1)}, SimulatedTiming{Delay: 30 * time.Millisecond, Steps: 2}), config(1))
	held, _ := strconv.ParseFloat(m.Env[profiler.EnvWall], 64)
	if took := time.Since(began); took < 30*time.Millisecond || math.Abs(held-2.03) > 1e-9 {
		t.Errorf("took %s, held %g s; want 30 ms and 2.03", took, held)
	}
}
