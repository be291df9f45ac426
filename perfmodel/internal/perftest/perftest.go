package perftest

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/pacer-ml/pacer/perfmodel"
	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/perfmodel/spec/stack"
)

// GPTModel returns an invented 7 B decoder.
func GPTModel() spec.Model {
	return spec.Model{Name: "gpt", Kind: spec.Decoder, Layers: 32, Hidden: 4096, FFN: 16384, Heads: 32, Vocab: 51200, SeqLen: 2048, TiedEmbeddings: true}
}

// GPTDevice returns an invented accelerator with 312 TFLOP/s and 80 GiB.
func GPTDevice() spec.Accelerator {
	return spec.Accelerator{Name: "A", Arch: "Ampere", FP32: 19.5e12, FP16: 312e12, BF16: 312e12, MemBytes: 80 << 30, MemBps: 2039e9, ScaleUpBps: 300e9, HostBps: 32e9}
}

// GPT returns a configuration of GPTModel on GPTDevice under Megatron Core with plan p.
func GPT(p spec.Plan) spec.Config {
	return spec.Config{Model: GPTModel(), Accelerator: GPTDevice(), Plan: p, Shape: spec.Packed(p.Devices(), 8),
		Link: spec.Link{IntraBps: 300e9, InterBps: 200e9}, Framework: "Megatron Core"}
}

// Stack returns the text of an invented training stack with the parts of Megatron Core.
func Stack(name string) string {
	return name + " " + stack.Of("Megatron Core", "Ampere").Stacks[0].Parts.String()
}

// DataParallel returns an invented data parallel job with the given numbers of devices per node.
func DataParallel(micro, accum int, nodes ...int) spec.Config {
	c := spec.Config{Model: spec.Model{Name: "toy", Kind: spec.Opaque}, Accelerator: spec.Accelerator{Name: "toychip"}, Shape: spec.NewShape(nodes...)}
	c.Plan = spec.Plan{DP: c.Shape.Total(), MicroBatch: micro, AccumSteps: accum}.Normal()
	return c
}

// DataParallelShapes are placements of up to 16 devices on nodes of 4.
var DataParallelShapes = [][]int{{1}, {2}, {3}, {4}, {1, 1}, {2, 2}, {4, 4}, {4, 4, 4}, {4, 4, 4, 4}}

// WorstError returns the largest relative error of f's step times.
func WorstError(t *testing.T, f perfmodel.Predictor, rows []spec.Measurement) float64 {
	t.Helper()
	worst := 0.0
	for _, m := range rows {
		p, err := f.Predict(t.Context(), m.Config)
		if err != nil {
			t.Fatal(err)
		}
		sec, lo, hi := p.StepSec(m.Config.Plan.GlobalBatch())
		if lo != sec || hi != sec {
			t.Fatalf("%s: interval %g..%g of a model that has none", m.Config.Plan, lo, hi)
		}
		worst = max(worst, math.Abs(sec/m.MedianStepSec()-1))
	}
	return worst
}

// Fit fits f to rows and fails the test on an error.
func Fit(t *testing.T, f perfmodel.Family, rows []spec.Measurement) (perfmodel.Fitted, perfmodel.Card) {
	t.Helper()
	fitted, card, err := f.Fit(t.Context(), perfmodel.Rows(rows))
	if err != nil {
		t.Fatal(err)
	}
	return fitted, card
}

// NotDataParallel are changes to a configuration that data parallel models do not cover, by the expected error
// text.
var NotDataParallel = map[string]func(*spec.Config){
	"has model parallelism":      func(c *spec.Config) { c.Plan.TP, c.Shape = 2, spec.NewShape(4, 4) },
	"shards or offloads":         func(c *spec.Config) { c.Plan.ZeRO = 2 },
	"is for 4 devices":           func(c *spec.Config) { c.Shape = spec.NewShape(4, 4) },
	"no shape":                   func(c *spec.Config) { c.Shape = spec.Shape{} },
	"not other on toychip":       func(c *spec.Config) { c.Model.Name = "other" },
	"not toy on other":           func(c *spec.Config) { c.Accelerator.Name = "other" },
	"77 tokens":                  func(c *spec.Config) { c.SeqLen = 77 },
	"recompute full":             func(c *spec.Config) { c.Plan.Recompute = spec.RecomputeFull },
	"below 1":                    func(c *spec.Config) { c.Plan.MicroBatch = -1 },
	"asynchronous without param": func(c *spec.Config) { c.Plan.Async = true },
}

// CheckRefused checks that f does not cover DataParallel(8, 1, 4) with each of the changes, with the error text
// given by the key.
func CheckRefused(t *testing.T, f perfmodel.Predictor, refused map[string]func(*spec.Config)) {
	t.Helper()
	for want, change := range refused {
		c := DataParallel(8, 1, 4)
		change(&c)
		_, err := f.Predict(t.Context(), c)
		if !errors.Is(err, perfmodel.ErrNotCovered) || !strings.Contains(err.Error(), want) {
			t.Errorf("want %q: %v", want, err)
		}
	}
}

// CheckNothingToFit checks that f, a family for data parallel jobs, returns an error without usable rows.
func CheckNothingToFit(t *testing.T, f perfmodel.Family) {
	t.Helper()
	sharded := DataParallel(4, 1, 2)
	sharded.Plan.ZeRO = 3
	doubted, good := Measured(DataParallel(4, 1, 1), 0.1), Measured(DataParallel(4, 1, 1), 0.1)
	doubted.Doubt = "a test says so"
	for what, rows := range map[string][]spec.Measurement{
		"no rows": nil, "a row in doubt": {doubted}, "a plan without terms": {Measured(sharded, 0.1)},
	} {
		if _, _, err := f.Fit(t.Context(), perfmodel.Rows(rows)); !errors.Is(err, perfmodel.ErrTooFewPoints) || !strings.Contains(err.Error(), f.Name) {
			t.Errorf("%s of %s: %v", f.Name, what, err)
		}
	}
	other := Measured(DataParallel(4, 1, 1), 0.1)
	other.Config.Accelerator.Name = "other"
	rows := []spec.Measurement{good, other}
	if _, _, err := f.Fit(t.Context(), perfmodel.Rows(rows)); err == nil || !strings.Contains(err.Error(), "want one job type") {
		t.Errorf("%s of two keys: %v", f.Name, err)
	}
	boom := errors.New("boom")
	_, _, err := f.Fit(t.Context(), func(yield func(spec.Measurement, error) bool) { yield(spec.Measurement{}, boom) })
	if !errors.Is(err, boom) {
		t.Errorf("%s of rows that cannot be read: %v", f.Name, err)
	}
}

// CheckKeepsCommonestJob checks that f, a family for data parallel jobs, does not mix rows of several jobs.
// rows are of DataParallel with micro-batches 4 and 16 on DataParallelShapes.
func CheckKeepsCommonestJob(t *testing.T, f perfmodel.Family, rows []spec.Measurement) {
	t.Helper()
	for _, m := range rows[:5] {
		m.Config.SeqLen, m.StepSec = 512, []float64{99}
		rows = append(rows, m)
	}
	fitted, card := Fit(t, f, rows)
	if card.NLeftOut != 5 || !strings.Contains(strings.Join(card.Warnings, " "), "5 rows that are not of toy on toychip") {
		t.Errorf("%s: %+v", f.Name, card)
	}
	if e := WorstError(t, fitted, rows[:2*len(DataParallelShapes)]); e > 0.5 {
		t.Errorf("%s: worst error %.2f: rows of the other job were fitted", f.Name, e)
	}
}

// CheckFitted checks that the fit of f does not depend on the order of rows, and that it predicts the same
// after storing and loading.
func CheckFitted(t *testing.T, f perfmodel.Family, rows []spec.Measurement) {
	t.Helper()
	name := f.Name
	fitted, card := Fit(t, f, rows)
	shuffled := slices.Clone(rows)
	rand.New(rand.NewPCG(1, 2)).Shuffle(len(rows), func(i, j int) { shuffled[i], shuffled[j] = shuffled[j], shuffled[i] })
	_, again := Fit(t, f, shuffled)
	if fmt.Sprint(card) != fmt.Sprint(again) {
		t.Errorf("%s: the card depends on the order of rows:\n%+v\n%+v", name, card, again)
	}
	b, err := fitted.MarshalBinary()
	if err != nil {
		t.Fatal(err)
	}
	loaded, err := f.Load(b)
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range rows {
		want, err1 := fitted.Predict(t.Context(), m.Config)
		got, err2 := loaded.Predict(t.Context(), m.Config)
		if err1 != nil || err2 != nil || got.Throughput != want.Throughput || got.By != want.By || fmt.Sprint(got.Warnings) != fmt.Sprint(want.Warnings) {
			t.Errorf("%s: %+v, %v came back as %+v, %v", name, want, err1, got, err2)
		}
	}
}

// LargestFall returns the index of the gain with the largest Fall.
func LargestFall(gains []perfmodel.Gain) int {
	i := 0
	for j, g := range gains {
		if g.Fall > gains[i].Fall {
			i = j
		}
	}
	return i
}

// CheckGainsInAnyOrder checks that each configuration's gain is the same in several random orders of rows and
// space.
func CheckGainsInAnyOrder(t *testing.T, gains func(testing.TB, []spec.Measurement, []spec.Config) []perfmodel.Gain, rows []spec.Measurement, space []spec.Config, orders int) {
	t.Helper()
	want := map[spec.Config]perfmodel.Gain{}
	for i, g := range gains(t, rows, space) {
		want[space[i]] = g
	}
	rng := rand.New(rand.NewPCG(2, uint64(len(rows))))
	have, mixed := slices.Clone(rows), slices.Clone(space)
	for range orders {
		rng.Shuffle(len(mixed), func(i, j int) { mixed[i], mixed[j] = mixed[j], mixed[i] })
		rng.Shuffle(len(have), func(i, j int) { have[i], have[j] = have[j], have[i] })
		for i, g := range gains(t, have, mixed) {
			if g != want[mixed[i]] {
				t.Fatalf("%d rows: %s: %+v, in another order %+v", len(rows), mixed[i].Plan, want[mixed[i]], g)
			}
		}
	}
}

// GainGrid returns n plans of the toy job type, with batch sizes that are not in ToyGrid.
func GainGrid(n int) []spec.Config {
	var out []spec.Config
	for batch := 1; len(out) < n; batch++ {
		for _, c := range ToyGrid() {
			c.Plan.MicroBatch *= batch
			out = append(out, c)
		}
	}
	return out[:n]
}

// Toy returns a configuration of an invented job type: a 1.3 B decoder on 80 GiB devices, 8 per node.
func Toy(p spec.Plan, nodes ...int) spec.Config {
	p.Precision = spec.BF16
	return spec.Config{
		Model: spec.Model{Name: "toy", Kind: spec.Decoder, Layers: 24, Hidden: 2048, FFN: 8192, Heads: 16, Vocab: 32000, SeqLen: 1024},
		Accelerator: spec.Accelerator{Name: "toychip", BF16: 300e12, FP32: 20e12, MemBytes: 80 << 30, MemBps: 2e12,
			ScaleUpBps: 200e9, HostBps: 32e9},
		Link:  spec.Link{IntraBps: 200e9, InterBps: 50e9, HostBps: 32e9},
		Shape: spec.NewShape(nodes...), Plan: p.Normal(),
	}
}

// ToyGrid returns all plans with a global batch of 32 that tests measure.
func ToyGrid() []spec.Config {
	var out []spec.Config
	for _, nodes := range [][]int{{1}, {2}, {4}, {8}, {1, 1}, {2, 2}, {4, 4}, {3, 5}, {2, 2, 2, 2}, {8, 8}, {8, 8, 8, 8}} {
		n := 0
		for _, g := range nodes {
			n += g
		}
		dp := spec.Plan{DP: n, MicroBatch: 32 / n}
		gc, zero := dp, dp
		gc.Recompute, zero.ZeRO = spec.RecomputeFull, 2
		off := zero
		off.Offload = spec.OffloadOptimizer
		for _, p := range []spec.Plan{dp, gc, zero, off} {
			out = append(out, Toy(p, nodes...))
		}
		for _, d := range [][2]int{{2, 1}, {4, 1}, {1, 2}, {2, 2}, {4, 2}, {8, 2}, {2, 4}} {
			if tp, pp := d[0], d[1]; n%(tp*pp) == 0 && !slices.Contains(nodes, 3) {
				dp := n / (tp * pp)
				out = append(out, Toy(spec.Plan{DP: dp, TP: tp, PP: pp, MicroBatch: 1, AccumSteps: 32 / dp}, nodes...))
			}
		}
	}
	return out
}

// Measured returns an OK row of c with the given step time.
func Measured(c spec.Config, sec float64) spec.Measurement {
	return spec.Measurement{Config: c, Outcome: spec.OK, StepSec: []float64{sec}, Source: "test"}
}

// Impossible are plans that no machine can run.
var Impossible = []spec.Plan{{DP: -8, TP: 2}, {DP: 8, PP: 4, MicroBatch: 1, AccumSteps: -1}, {DP: 1, MicroBatch: -1, AccumSteps: 64},
	{DP: 8, VirtualStages: -2}, {DP: 1 << 20, TP: 1 << 20}, {DP: 1 << 16, TP: 1 << 16, PP: 1 << 16, CP: 1 << 16}}

// CheckServersRefused checks that f, a model without terms for parameter servers, does not cover plans with
// parameter servers.
func CheckServersRefused(t *testing.T, name string, f perfmodel.Predictor) {
	t.Helper()
	for _, async := range []bool{false, true} {
		c := Toy(spec.Plan{DP: 4, ParamServers: 2, MicroBatch: 8, Async: async}, 4)
		c.Model.SeqLen, c.Plan.Precision = 0, ""
		if _, err := f.Predict(t.Context(), c); !errors.Is(err, perfmodel.ErrNotCovered) || !strings.Contains(err.Error(), "parameter servers") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// CheckImpossible checks that f does not cover plans that no machine can run.
func CheckImpossible(t *testing.T, name string, f perfmodel.Predictor) {
	t.Helper()
	for _, p := range Impossible {
		c := Toy(p, 1)
		c.Shape = spec.Shape{}
		if got, err := f.Predict(t.Context(), c); !errors.Is(err, perfmodel.ErrNotCovered) {
			t.Errorf("%s predicts %g samples/s of %s, %v", name, got.Throughput, p, err)
		}
	}
}

// CheckGainOfOneKey checks that a Gain refuses rows and spaces of several keys, with errors that contain the given texts.
func CheckGainOfOneKey(t *testing.T, gain func(context.Context, []spec.Measurement, []spec.Config, []spec.Config) ([]perfmodel.Gain, error), rows []spec.Measurement, space []spec.Config, mixed, otherKey string) {
	t.Helper()
	other := slices.Clone(space)
	other[2].Model.Name = "other"
	if _, err := gain(t.Context(), nil, other, nil); err == nil || !strings.Contains(err.Error(), mixed) {
		t.Errorf("a mixed space: %v, want %q", err, mixed)
	}
	if _, err := gain(t.Context(), rows[:2], other[2:3], nil); err == nil || !strings.Contains(err.Error(), otherKey) {
		t.Errorf("rows of another key: %v, want %q", err, otherKey)
	}
}

// CheckGainErrors checks a Gain of an empty space, and after the end of a context.
func CheckGainErrors(t *testing.T, gain func(context.Context, []spec.Measurement, []spec.Config, []spec.Config) ([]perfmodel.Gain, error), rows []spec.Measurement, space []spec.Config) {
	t.Helper()
	if g, err := gain(t.Context(), rows, nil, nil); err != nil || len(g) != 0 {
		t.Errorf("an empty space: %v, %v", g, err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := gain(ended, rows, space, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("a context that ended: %v", err)
	}
}
