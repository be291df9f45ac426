package memory

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/pacer-ml/pacer/perfmodel"
	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// generated returns rows with exactly the peaks of the given constants: ten sources, each with fourteen models
// from 0.1 to 7 billion parameters that run seven plans.
func generated(t testing.TB, k Constants, framework string) []spec.Measurement {
	t.Helper()
	cal := &Calibration{Pooled: Distribution{Constants: k}}
	plans := []string{"mb=1", "mb=8", "dp=8,mb=4", "dp=8,tp=4,mb=4", "dp=4,tp=2,pp=4,mb=2,ga=8", "dp=64,mb=1,zero=3", "dp=8,mb=16,recompute=full"}
	var rows []spec.Measurement
	for i := range 140 {
		m := gpt(8*(1+i%4), 1024*(1+i%3), 8*(1+i%3))
		m.Name, m.Vocab = fmt.Sprint("model ", i), 32000*(1+i%5)
		p, err := spec.ParsePlan(plans[i%7] + ",precision=bf16")
		if err != nil {
			t.Fatal(err)
		}
		c := spec.Config{Model: m, Plan: p, Framework: framework}
		e, err := cal.For(c)
		if err != nil {
			t.Fatal(err)
		}
		rows = append(rows, spec.Measurement{Config: c, Outcome: spec.OK, PeakBytes: e.Measured(p, ""), Source: fmt.Sprint("source ", i%10), Origin: fmt.Sprint(i)})
	}
	return rows
}

func calibrated(t testing.TB, rows []spec.Measurement) *Calibration {
	t.Helper()
	cal, err := Calibrate(t.Context(), rows)
	if err != nil {
		t.Fatal(err)
	}
	return cal
}

// TestCalibrateRecovers: a fit to peaks generated from known constants predicts them.
func TestCalibrateRecovers(t *testing.T) {
	truth := Prior().Pooled.Constants
	truth.Activation, truth.Loss, truth.Unseen = 1.06, 0.85, 0.06
	rows := generated(t, truth, "Megatron-LM@2022")
	cal := calibrated(t, rows)
	prior := Prior()
	for _, m := range rows {
		after, before := peak(t, cal, m.Config)/m.PeakBytes-1, peak(t, prior, m.Config)/m.PeakBytes-1
		if math.Abs(after) > 0.02 {
			t.Errorf("%s %s: off by %.3f, before %.3f", m.Config.Model.Name, m.Config.Plan, after, before)
		}
	}
	k, _ := cal.of("")
	near(t, "loss", k.Loss, truth.Loss, 0.03)
	if k.Activation < 1.03 {
		t.Errorf("activation %.3f, made with %.3f", k.Activation, truth.Activation)
	}
}

func peak(t testing.TB, cal *Calibration, c spec.Config) float64 {
	t.Helper()
	e, err := cal.For(c)
	if err != nil {
		t.Fatal(err)
	}
	return e.Bytes(c.Plan)
}

// TestCalibrateLeavesOut: unusable rows do not change the result, and neither does the order of rows.
func TestCalibrateLeavesOut(t *testing.T) {
	rows := generated(t, Prior().Pooled.Constants, "Megatron-LM")
	want := calibrated(t, rows)
	change := func(f func(*spec.Measurement)) spec.Measurement {
		m := rows[0]
		f(&m)
		return m
	}
	useless := []spec.Measurement{
		change(func(m *spec.Measurement) { m.PeakBytes = 0 }),
		change(func(m *spec.Measurement) { m.PeakBytes = math.NaN() }),
		change(func(m *spec.Measurement) { m.PeakBytes = math.Inf(1) }),
		change(func(m *spec.Measurement) { m.PeakBytes = -1 }),
		change(func(m *spec.Measurement) { m.Outcome, m.PeakBytes = spec.OOM, 1 }),
		change(func(m *spec.Measurement) { m.Doubt, m.PeakBytes = "suspect", 1 }),
		change(func(m *spec.Measurement) { m.Config.Model.SeqLen, m.PeakBytes = 0, 1 }),
		change(func(m *spec.Measurement) { m.Config.Model, m.PeakBytes = spec.Model{Name: "nothing", SeqLen: 1}, 1 }),
	}
	same := func(what string, got *Calibration) {
		t.Helper()
		if diff := cmp.Diff(want, got, cmpopts.EquateApprox(1e-12, 0)); diff != "" {
			t.Errorf("%s:\n%s", what, diff)
		}
	}
	same("with useless rows", calibrated(t, append(slices.Clone(rows), useless...)))
	reversed := slices.Clone(rows)
	slices.Reverse(reversed)
	same("in reverse", calibrated(t, reversed))
	if diff := cmp.Diff(Prior(), calibrated(t, useless)); diff != "" {
		t.Errorf("useless rows alone are not the prior:\n%s", diff)
	}
}

// TestCondition: rows of one stack move the constants of that stack towards their values, more rows move them
// further, and other stacks are unchanged.
func TestCondition(t *testing.T) {
	truth := Prior().Pooled.Constants
	truth.Unseen = 0.12
	rows := generated(t, truth, "torchtitan")
	cal := calibrated(t, generated(t, Prior().Pooled.Constants, "Megatron-LM"))
	off := func(cal *Calibration) float64 {
		worst := 0.0
		for _, m := range rows {
			e, err := cal.For(m.Config)
			if err != nil {
				t.Fatal(err)
			}
			worst = max(worst, math.Abs(math.Log(e.Measured(m.Config.Plan, "")/m.PeakBytes)))
		}
		return worst
	}
	last := off(cal)
	for _, n := range []int{1, 5, len(rows)} {
		got, err := Condition(t.Context(), cal, rows[:n])
		if err != nil {
			t.Fatal(err)
		}
		if o := off(got); o >= last {
			t.Errorf("%d rows: off by %.3f, before %.3f", n, o, last)
		} else {
			last = o
		}
		if diff := cmp.Diff(cal.Stacks[""], got.Stacks[""]); diff != "" {
			t.Errorf("another stack changed:\n%s", diff)
		}
	}
	if _, ok := cal.Stacks["torchtitan"]; ok {
		t.Error("the calibration that was conditioned has changed")
	}
	same, err := Condition(t.Context(), cal, nil)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(cal, same); diff != "" {
		t.Errorf("no rows change something:\n%s", diff)
	}
}

// TestFitProbability: one half at the estimate, larger on larger devices, steeper with less spread, never NaN.
func TestFitProbability(t *testing.T) {
	b := Breakdown{Parameters: 40 * GiB, LogSD: 0.1}
	near(t, "at the estimate", b.FitProbability(40*GiB/usableShare), 0.5, 1e-9)
	near(t, "one standard deviation more", b.FitProbability(40*GiB*math.Exp(0.1)/usableShare), 0.8413, 1e-3)
	if !b.Fits(48*GiB) || b.Fits(44*GiB) || b.Fits(40*GiB) {
		t.Error("40 GiB ± 10 % fit 48 GiB surely, 44 and 40 GiB not")
	}
	near(t, "median", b.Quantile(0.5), 40*GiB, 1e-9)
	near(t, "95 %", b.Quantile(0.95), 40*GiB*math.Exp(0.16449), 1e-4)
	b.LogSD = 0
	if b.FitProbability(39*GiB) != 0 || b.FitProbability(41*GiB) != 1 {
		t.Error("without spread it is no step")
	}
	for _, limit := range []float64{0, -1, math.NaN()} {
		if p := b.FitProbability(limit); p != 0 {
			t.Errorf("a device of %g bytes fits with %g", limit, p)
		}
	}
	if p := (Breakdown{}).FitProbability(1); p != 1 {
		t.Errorf("nothing fits with %g", p)
	}
}

// TestBudget: Budget is the limit of Fits and the point where FitProbability is Sure. No plan fits a device of
// unknown size.
func TestBudget(t *testing.T) {
	for _, sd := range []float64{0, 0.02, 0.1, 0.4} {
		most := Budget(80*GiB, sd)
		for _, of := range []float64{0.999, 1.001} {
			b := Breakdown{Activations: of * most, LogSD: sd}
			if fits := of < 1; b.Fits(80*GiB) != fits || (b.FitProbability(80*GiB) >= Sure) != fits {
				t.Errorf("spread %g: %g of the budget fits: %v, with probability %.3f", sd, of, b.Fits(80*GiB), b.FitProbability(80*GiB))
			}
		}
		if !(most < 80*GiB) || Budget(40*GiB, sd) != most/2 {
			t.Errorf("spread %g: %g bytes of 80 GiB, %g of 40 GiB", sd, most, Budget(40*GiB, sd))
		}
	}
	for bytes, want := range map[float64]string{
		70.04 * GiB: "needs 70.0 GiB of 80.0 GiB, but only up to 67.2 GiB fit with 95 % probability",
		81 * GiB:    "needs 81.0 GiB of 80.0 GiB",
	} {
		if got := Misfit(bytes, Budget(80*GiB, 0.1), 80*GiB); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	if (Breakdown{}).Fits(0) {
		t.Error("something fits a device of unknown size for sure")
	}
}

// TestOf: a model's own estimator takes precedence over the given calibration, unless it does not cover the
// configuration.
func TestOf(t *testing.T) {
	c := spec.Config{Model: gpt(8, 2048, 16), Plan: spec.Plan{DP: 1, MicroBatch: 1}}
	large := Prior()
	large.Pooled.ContextBytes = 100 * GiB
	for _, tc := range []struct {
		p    perfmodel.Predictor
		want float64
	}{{memoryOnly{cal: large}, peak(t, large, c)}, {memoryOnly{err: perfmodel.ErrNotCovered}, peak(t, Prior(), c)}, {nil, peak(t, Prior(), c)}} {
		if e, err := Of(tc.p, Prior(), c); err != nil || e.Bytes(c.Plan) != tc.want {
			t.Errorf("%+v: %g bytes, %v; want %g", tc.p, e.Bytes(c.Plan), err, tc.want)
		}
	}
	broken := errors.New("broken")
	if _, err := Of(memoryOnly{err: broken}, Prior(), c); !errors.Is(err, broken) {
		t.Errorf("error %v, want that of the model", err)
	}
}

// memoryOnly is a performance model that predicts memory only.
type memoryOnly struct {
	perfmodel.Predictor
	cal *Calibration
	err error
}

func (k memoryOnly) Memory(c spec.Config) (Estimator, error) {
	if k.err != nil {
		return Estimator{}, k.err
	}
	return k.cal.For(c)
}

// TestStages: Plan returns the peak over stages, and Parts add up to Total.
func TestStages(t *testing.T) {
	m := gpt(30, 2048, 16)
	m.Vocab = 250000
	for _, plan := range []string{"mb=1", "pp=4,mb=2,ga=8", "pp=8,mb=1,ga=64", "pp=4,vp=2,mb=1,ga=8", "pp=7,mb=1,ga=7,recompute=full"} {
		p, err := spec.ParsePlan(plan)
		if err != nil {
			t.Fatal(err)
		}
		e, err := For(spec.Config{Model: m, Framework: "Megatron Core"})
		if err != nil {
			t.Fatal(err)
		}
		top := Breakdown{}
		stages := e.Stages(p)
		for _, b := range stages {
			if b.Total() > top.Total() {
				top = b
			}
			sum := 0.0
			for _, part := range b.Parts() {
				sum += part.Bytes
			}
			near(t, plan+" parts", sum, b.Total(), 1e-12)
		}
		if got := e.Plan(p); got != top || len(stages) != p.PP {
			t.Errorf("%s: %d stages, peak %v of stage %d, Plan says %v of %d", plan, len(stages), top, top.Stage, got, got.Stage)
		}
	}
}

// TestPrinted: a stack's own figure of peak memory excludes what the stack cannot see.
func TestPrinted(t *testing.T) {
	for framework, part := range map[string]func(Breakdown, *Estimator) float64{
		"Megatron-LM@2021":   func(b Breakdown, _ *Estimator) float64 { return b.Total() },
		"torchtitan":         func(b Breakdown, e *Estimator) float64 { return b.Total() - e.k.ContextBytes - e.k.CommunicatorBytes },
		spec.FrameworkWorker: func(b Breakdown, _ *Estimator) float64 { return b.Total() - b.Overhead },
	} {
		e, err := For(spec.Config{Model: gpt(16, 2048, 16), Framework: framework})
		if err != nil {
			t.Fatal(err)
		}
		p := spec.Plan{DP: 8, MicroBatch: 1}
		near(t, framework, e.Measured(p, ""), part(e.Plan(p), &e), 1e-12)
	}
}

// TestContradictoryCountIsNotBelieved: a parameter count that contradicts the layers is ignored; one that is
// slightly off scales them.
func TestContradictoryCountIsNotBelieved(t *testing.T) {
	m := gpt(10, 14336, 112)
	m.Vocab = 250000
	counted := weightsOf(m)
	want := counted.total()
	m.ParamCount = 0.64 * want
	far := weightsOf(m)
	near(t, "far off", far.total(), want, 1e-12)
	m.ParamCount = 0.97 * want
	close := weightsOf(m)
	near(t, "close", close.total(), m.ParamCount, 1e-12)
}

// TestHostTotal: host memory is the sum over the devices of a node.
func TestHostTotal(t *testing.T) {
	b := estimate(t, spec.Config{Model: gpt(24, 2048, 16), Plan: spec.Plan{DP: 8, ZeRO: 2, Offload: spec.OffloadOptimizer, MicroBatch: 1}})
	near(t, "node", b.HostTotal(8), 8*b.HostBytes, 1e-12)
}

func BenchmarkCalibrate(b *testing.B) {
	rows := generated(b, Prior().Pooled.Constants, "Megatron-LM")
	for b.Loop() {
		if _, err := Calibrate(b.Context(), rows); err != nil {
			b.Fatal(err)
		}
	}
}
