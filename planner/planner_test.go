package planner_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/pacer-ml/pacer/perfmodel"
	"github.com/pacer-ml/pacer/perfmodel/family"
	"github.com/pacer-ml/pacer/perfmodel/memory"
	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/planner"
)

var ctx = context.Background()

func analyticModel(t testing.TB) perfmodel.Predictor {
	f, err := family.Lookup("analytic")
	if err != nil {
		t.Fatal(err)
	}
	return f.Unfitted
}

func testModel(layers, hidden, heads int) spec.Model {
	return spec.Model{Name: fmt.Sprintf("gpt-%d-%d", layers, hidden), Kind: spec.Decoder, Layers: layers, Hidden: hidden,
		FFN: 4 * hidden, Heads: heads, Vocab: 51200, SeqLen: 2048, TiedEmbeddings: true}
}

func testAccelerator(memGiB float64) spec.Accelerator {
	return spec.Accelerator{Name: "X100", Arch: "Ampere", FP32: 19.5e12, FP16: 312e12, BF16: 312e12,
		MemBytes: memGiB * memory.GiB, MemBps: 2e12, ScaleUpBps: 300e9, HostBps: 32e9}
}

func request(devices, batch int) planner.Request {
	return planner.Request{Model: testModel(24, 2048, 16), Accelerator: testAccelerator(80), Devices: devices, GlobalBatch: batch}
}

func TestRankIsLegalOrderedAndStable(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := randomRequest(rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 7)))
		f, _ := family.Lookup("analytic")
		pl := planner.New(f.Unfitted, planner.Options{})
		got, err := pl.Rank(ctx, r)
		if errors.Is(err, planner.ErrInfeasible) {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		seen := map[spec.Plan]bool{}
		for i, c := range got.Choices {
			p := c.Config.Plan
			if err := c.Config.Check(); err != nil {
				t.Fatalf("%s: %v", p, err)
			}
			if p.GlobalBatch() != r.GlobalBatch || seen[p] {
				t.Fatalf("%s: global batch %d, listed before: %v", p, p.GlobalBatch(), seen[p])
			}
			seen[p] = true
			if c.Fits == (c.Why != "") {
				t.Fatalf("%s: fits %v, why %q", p, c.Fits, c.Why)
			}
			if i == 0 {
				continue
			}
			prev := got.Choices[i-1]
			if c.Fits && (!prev.Fits || prev.Prediction.Throughput < c.Prediction.Throughput) ||
				!c.Fits && !prev.Fits && prev.Prediction.MemoryBytes > c.Prediction.MemoryBytes {
				t.Fatalf("%s comes after %s", p, prev.Config.Plan)
			}
		}
		again, _ := planner.New(f.Unfitted, planner.Options{}).Rank(ctx, r)
		if d := cmp.Diff(plansOf(got), plansOf(again)); d != "" {
			t.Fatalf("a second ranking differs:\n%s", d)
		}
	})
}

func plansOf(r planner.Ranking) (out []string) {
	for _, c := range r.Choices {
		out = append(out, c.Config.Plan.String())
	}
	return out
}

func TestCurveNeverFalls(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := randomRequest(rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 11)))
		f, _ := family.Lookup("analytic")
		pl := planner.New(f.Unfitted, planner.Options{})
		c, err := pl.Curve(ctx, r)
		if errors.Is(err, planner.ErrInfeasible) {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		for i, p := range c.Points {
			used := p.Choice.Config.Plan.Devices()
			if used > p.Devices || p.Devices > r.Devices {
				t.Fatalf("point %d uses %d devices", p.Devices, used)
			}
			if i > 0 {
				prev := c.Points[i-1]
				if p.Devices != prev.Devices+1 || p.Choice.Prediction.Throughput < prev.Choice.Prediction.Throughput {
					t.Fatalf("from %d to %d devices: %g to %g samples/s", prev.Devices, p.Devices,
						prev.Choice.Prediction.Throughput, p.Choice.Prediction.Throughput)
				}
			}
			at := r
			at.Devices = p.Devices
			if best, err := pl.Best(ctx, at); err == nil && best.Prediction.Throughput > p.Choice.Prediction.Throughput {
				t.Fatalf("%d devices: curve %g, best %g samples/s", p.Devices, p.Choice.Prediction.Throughput, best.Prediction.Throughput)
			}
		}
	})
}

func TestRankTop(t *testing.T) {
	pl := planner.New(analyticModel(t), planner.Options{})
	all, err := pl.Rank(ctx, request(8, 16))
	if err != nil {
		t.Fatal(err)
	}
	r := request(8, 16)
	r.Top = 3
	top, err := pl.Rank(ctx, r)
	if err != nil || len(top.Choices) != 3 || top.Evaluated != all.Evaluated {
		t.Fatalf("%d choices of %d, %v", len(top.Choices), top.Evaluated, err)
	}
	if d := cmp.Diff(plansOf(all)[:3], plansOf(top)); d != "" {
		t.Error(d)
	}
}

func TestFixedPlan(t *testing.T) {
	pl := planner.New(analyticModel(t), planner.Options{})
	p := spec.Plan{DP: 2, TP: 2, MicroBatch: 2, AccumSteps: 4}
	r := request(4, 16)
	r.Plan = &p
	c, err := pl.Best(ctx, r)
	if err != nil || c.Config.Plan != p.Normal() || c.Config.Shape.Devices != "4" {
		t.Errorf("%v on %q, %v", c.Config.Plan, c.Config.Shape.Devices, err)
	}
	r.GlobalBatch = 12
	if _, err = pl.Best(ctx, r); err == nil || !strings.Contains(err.Error(), "16") || !strings.Contains(err.Error(), "12") {
		t.Errorf("error %v names both batches 16 and 12", err)
	}
	r = request(8, 16)
	r.Plan = &p
	if _, err = pl.Best(ctx, r); !errors.Is(err, planner.ErrInfeasible) || !strings.Contains(err.Error(), "is for 4 devices, not 8") {
		t.Errorf("error %v", err)
	}
	// A fixed plan is judged even if it would not be proposed.
	for _, q := range []spec.Plan{{TP: 16, AccumSteps: 4}, {DP: 1, CP: 2, AccumSteps: 2}, {ZeRO: 1, AccumSteps: 1}} {
		r := planner.Request{Model: r.Model, Accelerator: r.Accelerator, Plan: &q}
		if _, err := pl.Best(ctx, r); err != nil {
			t.Errorf("%s: %v", q, err)
		}
	}
	p.TP, p.DP = 3, 1
	r = planner.Request{Model: r.Model, Accelerator: r.Accelerator, Plan: &p}
	if _, err = pl.Best(ctx, r); !errors.Is(err, planner.ErrInfeasible) || !strings.Contains(err.Error(), "tp=3") {
		t.Errorf("error %v names the rule", err)
	}
}

func TestRequestErrors(t *testing.T) {
	pl := planner.New(analyticModel(t), planner.Options{})
	for want, change := range map[string]func(*planner.Request){
		"global batch 0": func(r *planner.Request) { r.GlobalBatch = 0 },
		"0 devices":      func(r *planner.Request) { r.Devices = 0 },
		"-1 devices":     func(r *planner.Request) { r.Devices = -1 },
		"2097152":        func(r *planner.Request) { r.Devices = 1 << 21 },
		"global batch 4": func(r *planner.Request) { r.GlobalBatch = 4 << 40 },
		"negative size":  func(r *planner.Request) { r.Model.Heads = -4 },
		"top -1":         func(r *planner.Request) { r.Top = -1 },
		"per node":       func(r *planner.Request) { r.PerNode = -2 },
	} {
		r := request(8, 8)
		change(&r)
		for name, err := range map[string]error{"Best": second(pl.Best(ctx, r)), "Rank": second(pl.Rank(ctx, r)), "Curve": second(pl.Curve(ctx, r))} {
			if err == nil || !strings.HasPrefix(err.Error(), "planner: ") || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: error %v, want one with %q", name, err, want)
			}
		}
	}
	r := request(8, 8)
	r.Accelerator = spec.Accelerator{Name: "nothing known"}
	if _, err := pl.Best(ctx, r); !errors.Is(err, perfmodel.ErrNotCovered) {
		t.Errorf("error %v, want ErrNotCovered", err)
	}
	gone, cancel := context.WithCancel(ctx)
	cancel()
	if _, err := pl.Best(gone, request(8, 32)); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want Canceled", err)
	}
}

func second[T any](_ T, err error) error { return err }

func TestReserveAndHostMemory(t *testing.T) {
	r := request(1, 1)
	r.Model = testModel(24, 2560, 20)
	whole, err := planner.New(analyticModel(t), planner.Options{}).Best(ctx, r)
	if err != nil {
		t.Fatal(err)
	}
	spare := 1 - whole.Prediction.MemoryBytes/r.Accelerator.MemBytes
	kept, err := planner.New(analyticModel(t), planner.Options{Reserve: spare + 0.02}).Best(ctx, r)
	if err != nil || kept.Prediction.MemoryBytes >= whole.Prediction.MemoryBytes {
		t.Errorf("with a reserve %g bytes, without %g, %v", kept.Prediction.MemoryBytes, whole.Prediction.MemoryBytes, err)
	}
	space := planner.Enumerate{Offload: []spec.Offload{spec.OffloadOptimizer}}
	if _, err = planner.New(analyticModel(t), planner.Options{Space: space}).Best(ctx, r); err != nil {
		t.Errorf("host memory unknown: %v", err)
	}
	ofShape, ofNode := r, r
	ofShape.Shape.HostBytes = 1 * memory.GiB
	ofNode.NodeHostBytes, ofNode.PerNode = 8*memory.GiB, 8 // the share of one device of eight
	for _, r := range []planner.Request{ofShape, ofNode} {
		_, err = planner.New(analyticModel(t), planner.Options{Space: space}).Best(ctx, r)
		if !errors.Is(err, planner.ErrInfeasible) || !strings.Contains(err.Error(), "host memory of 1.0 GiB") {
			t.Errorf("error %v", err)
		}
	}
}

func TestOptionsMemoryIsUsedWhereThePredictionIsSilent(t *testing.T) {
	silent := predictor(func(c spec.Config) (spec.Prediction, error) { return spec.Prediction{Throughput: 1}, nil })
	loud := predictor(func(c spec.Config) (spec.Prediction, error) {
		return spec.Prediction{Throughput: 1, MemoryBytes: 1}, nil
	})
	full := memory.Prior()
	full.Pooled.ContextBytes = 81 * memory.GiB
	if _, err := planner.New(silent, planner.Options{Memory: full}).Best(ctx, request(1, 1)); !errors.Is(err, planner.ErrInfeasible) ||
		!strings.Contains(err.Error(), " GiB of 80.0 GiB: overhead 81.") {
		t.Errorf("error %v", err)
	}
	if _, err := planner.New(loud, planner.Options{Memory: full}).Best(ctx, request(1, 1)); err != nil {
		t.Errorf("the prediction's own memory fits: %v", err)
	}
}

// predictor adapts a function and is no Preparer.
type predictor func(spec.Config) (spec.Prediction, error)

func (f predictor) Predict(_ context.Context, c spec.Config) (spec.Prediction, error) { return f(c) }

func TestConcurrentUse(t *testing.T) {
	pl := planner.New(analyticModel(t), planner.Options{CacheSize: 4})
	want, err := pl.Curve(ctx, request(8, 16))
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 3 {
				got, err := pl.Curve(ctx, request(8, 16))
				if err != nil || len(got.Points) != len(want.Points) || got.Points[7].Choice.Config != want.Points[7].Choice.Config {
					t.Errorf("curve differs under concurrent use: %v", err)
				}
			}
		})
	}
	wg.Wait()
}

func TestNewPanicsOnBadOptions(t *testing.T) {
	for _, o := range []planner.Options{{Reserve: 1}, {Reserve: math.NaN()}, {CacheSize: -1}} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("options %+v accepted", o)
				}
			}()
			planner.New(analyticModel(t), o)
		}()
	}
}

func Example() {
	model := spec.Model{Name: "gpt", Kind: spec.Decoder, Layers: 32, Hidden: 4096, FFN: 16384, Heads: 32, Vocab: 51200, SeqLen: 2048}
	device := spec.Accelerator{Name: "X100", Arch: "Ampere", FP16: 312e12, BF16: 312e12, MemBytes: 80 << 30, MemBps: 2e12, ScaleUpBps: 300e9}
	analytic, _ := family.Lookup("analytic")

	p := planner.New(analytic.Unfitted, planner.Options{})
	best, err := p.Best(context.Background(), planner.Request{Model: model, Accelerator: device, Devices: 16, GlobalBatch: 256})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("uses", best.Config.Plan.Devices(), "devices, fits:", best.Fits)
	// Output: uses 16 devices, fits: true
}

// TestCurveSharesTheHost: one of eight devices has an eighth of the host memory and
// CPUs, and the end of the curve equals Best.
func TestCurveSharesTheHost(t *testing.T) {
	r := request(8, 8)
	r.Model = testModel(24, 2560, 20)
	r.Shape = spec.NewShape(8)
	r.Shape.CPUs, r.Shape.HostBytes = 96, 100*memory.GiB
	pl := planner.New(analyticModel(t), planner.Options{Space: planner.Enumerate{Offload: []spec.Offload{spec.OffloadOptimizer}}})
	curve, err := pl.Curve(ctx, r)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range curve.Points {
		s := p.Choice.Config.Shape
		if want := 100.0 / 8 * memory.GiB * float64(s.Total()); s.HostBytes != want || s.CPUs != 12*s.Total() {
			t.Errorf("%d devices: %d CPUs and %g GiB of host memory, want 12 and 12.5 each", s.Total(), s.CPUs, s.HostBytes/memory.GiB)
		}
	}
	if first := curve.Points[0].Devices; first < 2 { // at least 12 bytes/parameter are offloaded, 22 GiB
		t.Errorf("%d devices are enough though they have %g GiB of host memory", first, 12.5*float64(first))
	}
	best, err := pl.Best(ctx, r)
	if end := curve.Points[len(curve.Points)-1]; err != nil || end.Choice.Prediction.Throughput < best.Prediction.Throughput {
		t.Errorf("the curve ends with %g samples/s, best is %g, %v", end.Choice.Prediction.Throughput, best.Prediction.Throughput, err)
	}
}

// TestTiesGoToTheSmallerNeedOfMemory: of equally fast plans, the smaller is best.
func TestTiesGoToTheSmallerNeedOfMemory(t *testing.T) {
	flat := predictor(func(c spec.Config) (spec.Prediction, error) {
		return spec.Prediction{Throughput: 1, MemoryBytes: 1e9 * float64(9-c.Plan.TP)}, nil // the simpler, the more
	})
	best, err := planner.New(flat, planner.Options{}).Best(ctx, request(8, 8))
	if err != nil || best.Config.Plan.TP != 8 {
		t.Errorf("%s, %v; want tp=8", best.Config.Plan, err)
	}
}

// TestAnswersAreKeptPerRequest: requests that differ in one field have own answers.
func TestAnswersAreKeptPerRequest(t *testing.T) {
	pl := planner.New(analyticModel(t), planner.Options{})
	for name, change := range map[string]func(*planner.Request){
		"as asked first": func(*planner.Request) {},
		"precision":      func(r *planner.Request) { r.Precision = spec.FP32 },
		"sequence":       func(r *planner.Request) { r.SeqLen = 512 },
		"link":           func(r *planner.Request) { r.Link.IntraBps = 1e9 },
		"framework":      func(r *planner.Request) { r.Framework = "Megatron-LM" },
		"host":           func(r *planner.Request) { r.NodeHostBytes = memory.GiB },
		"per node":       func(r *planner.Request) { r.PerNode = 2 },
		"batch":          func(r *planner.Request) { r.GlobalBatch = 8 },
	} {
		r := request(4, 16)
		if _, err := pl.Best(ctx, r); err != nil {
			t.Fatal(err)
		}
		change(&r)
		got, err1 := pl.Best(ctx, r)
		want, err2 := planner.New(analyticModel(t), planner.Options{}).Best(ctx, r)
		if err1 != nil || err2 != nil || got.Config != want.Config || got.Prediction.Throughput != want.Prediction.Throughput {
			t.Errorf("%s: %s (%v), asked afresh %s (%v)", name, got.Config.Plan, err1, want.Config.Plan, err2)
		}
	}
}
