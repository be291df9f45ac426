package planner_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
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

func analytic(t testing.TB) perfmodel.Predictor {
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

// bruteForce tries every combination of numbers that divide what they must, and
// keeps those the rules, written out here once more, allow.
func bruteForce(r planner.Request) (plans []spec.Plan) {
	perNode := 8
	dividing := func(n int) []int {
		var out []int
		for i := 1; i <= n; i++ {
			if n%i == 0 {
				out = append(out, i)
			}
		}
		return out
	}
	for _, dp := range dividing(r.Devices) {
		for _, tp := range dividing(r.Devices / dp) {
			pp := r.Devices / dp / tp
			if r.GlobalBatch%dp != 0 || min(r.Devices, perNode)%tp != 0 || r.Devices > perNode && (r.Devices%perNode)%tp != 0 {
				continue
			}
			for _, mb := range dividing(r.GlobalBatch / dp) {
				for _, ep := range dividing(max(r.Model.Experts, 1)) {
					for vp := 1; vp <= r.Model.Layers; vp++ {
						p := spec.Plan{DP: dp, TP: tp, PP: pp, CP: 1, EP: ep, VirtualStages: vp, MicroBatch: mb, AccumSteps: r.GlobalBatch / dp / mb, Precision: spec.BF16}
						for _, p.Schedule = range []spec.Schedule{spec.ScheduleDefault, spec.ScheduleZBH1} {
							plans = append(plans, withModes(r, p)...)
							if p.Shard = groupInNode(r.Devices, dp, tp); p.Shard > 0 {
								plans = append(plans, withModes(r, p)...)
							}
							p.Shard = 0
						}
					}
				}
			}
		}
	}
	return plans
}

// groupInNode returns the most of dp ranks, tp apart, that fill every node of 8
// evenly, 0 where all of them do.
func groupInNode(devices, dp, tp int) (most int) {
	fills := func(n int) bool { return min(devices, 8)%(n*tp) == 0 && (devices <= 8 || devices%8%(n*tp) == 0) }
	if devices <= 8 {
		return 0
	}
	for n := 2; n < dp; n++ {
		if dp%n == 0 && fills(n) && !fills(dp) {
			most = n
		}
	}
	return most
}

func withModes(r planner.Request, p spec.Plan) (plans []spec.Plan) {
	for zero := range 4 {
		for _, off := range []spec.Offload{spec.OffloadNone, spec.OffloadOptimizer, spec.OffloadParams} {
			for _, re := range []spec.Recompute{spec.RecomputeNone, spec.RecomputeSelective, spec.RecomputeFull} {
				for _, sp := range []bool{false, true} {
					p.ZeRO, p.Offload, p.Recompute, p.SequenceParallel = zero, off, re, sp
					switch {
					case p.Check(r.Model) != nil:
					case sp && r.Model.SeqLen%p.TP != 0:
					case zero > 0 && p.DP == 1 && off != spec.OffloadParams:
					case !evenChunks(r.Model.Layers, p.PP, p.VirtualStages):
					case off != spec.OffloadNone && p.PP > 1:
					case off == spec.OffloadOptimizer && zero == 0 && p.DP > 1:
					default:
						plans = append(plans, p)
					}
				}
			}
		}
	}
	return plans
}

// evenChunks: PP·VP pieces of as many layers each, or where PP has none, of the
// layers, the embedding and the head.
func evenChunks(layers, pp, vp int) bool {
	if layers%pp != 0 {
		layers += 2
	}
	return vp == 1 || layers%(pp*vp) == 0
}

// randomRequest draws a small problem, some of which do not fit.
func randomRequest(r *rand.Rand) planner.Request {
	heads := []int{4, 6, 8, 12}[r.IntN(4)]
	m := testModel([]int{2, 4, 6, 8}[r.IntN(4)], 128*heads, heads)
	if r.IntN(4) == 0 {
		m.Experts, m.ExpertsPerToken, m.ExpertFFN = 4, 2, m.Hidden
		m.Name += "-moe"
	}
	return planner.Request{Model: m, Accelerator: testAccelerator([]float64{2, 4, 8, 80}[r.IntN(4)]),
		Devices: 1 + r.IntN(16), GlobalBatch: []int{4, 6, 8, 12, 16, 24}[r.IntN(6)]}
}

// bothSchedules is the space bruteForce goes through.
var bothSchedules = planner.Options{Space: planner.Enumerate{Schedules: []spec.Schedule{spec.Schedule1F1B, spec.ScheduleZBH1}}}

// bestByBruteForce returns the throughput of the fastest plan that fits, -Inf if
// there is none, and how many plans were tried.
func bestByBruteForce(t *testing.T, model perfmodel.Predictor, r planner.Request) (best float64, tried int) {
	best = math.Inf(-1)
	for _, p := range bruteForce(r) {
		tried++
		c := spec.Config{Model: r.Model, Plan: p, Accelerator: r.Accelerator, Link: r.Link, Shape: spec.Packed(r.Devices, 8)}
		pred, err := model.Predict(ctx, c)
		if err != nil {
			t.Fatal(err)
		}
		b, err := memory.Estimate(c)
		if err != nil {
			t.Fatal(err)
		}
		if b.Total() != pred.MemoryBytes {
			t.Fatalf("%s: predicted %g bytes, estimated %g", p, pred.MemoryBytes, b.Total())
		}
		if b.Fits(r.Accelerator.MemBytes) {
			best = max(best, pred.Throughput)
		}
	}
	return best, tried
}

// gpt3 is GPT-3 175B (Brown et al. 2020, table 2.1) on A100-80GB-SXM nodes with
// eight 200 Gbit/s adapters.
func gpt3(devices, batch int) planner.Request {
	m := testModel(96, 12288, 96)
	m.FFN, m.Vocab, m.SeqLen = 4*12288, 51200, 2048
	a := testAccelerator(80)
	a.BF16, a.MemBps = 312e12, 2.039e12
	return planner.Request{Model: m, Accelerator: a, Link: spec.Link{IntraBps: 300e9, InterBps: 8 * 25e9}, Devices: devices, GlobalBatch: batch}
}

func TestBestOfGPT3EqualsBruteForce(t *testing.T) {
	if problems(10) < 10 {
		t.Skip("slow under the race detector, and in one goroutine")
	}
	r := gpt3(1024, 1536)
	model := analytic(t)
	want, tried := bestByBruteForce(t, model, r)
	rk, err := planner.New(model, bothSchedules).Rank(ctx, r)
	if err != nil || rk.Choices[0].Prediction.Throughput != want || rk.Evaluated != tried {
		t.Errorf("%s makes %g samples/s of %d plans, by brute force %g of %d (%v)",
			rk.Choices[0].Config.Plan, rk.Choices[0].Prediction.Throughput, rk.Evaluated, want, tried, err)
	}
	t.Logf("%d plans, %d fit, best %s: %g samples/s", rk.Evaluated, rk.Fitting, rk.Choices[0].Config.Plan, want)
}

func TestBestEqualsBruteForce(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	model := analytic(t)
	answered := 0
	for i := range problems(200) {
		r := randomRequest(rnd)
		want, evaluated := bestByBruteForce(t, model, r)
		got, err := planner.New(model, bothSchedules).Best(ctx, r)
		if math.IsInf(want, -1) {
			if !errors.Is(err, planner.ErrInfeasible) {
				t.Errorf("problem %d: error %v, want ErrInfeasible", i, err)
			}
			continue
		}
		answered++
		if err != nil {
			t.Errorf("problem %d (%d devices, batch %d): %v, brute force finds %g samples/s", i, r.Devices, r.GlobalBatch, err, want)
			continue
		}
		if got.Prediction.Throughput != want {
			t.Errorf("problem %d: %g samples/s with %s, brute force finds %g", i, got.Prediction.Throughput, got.Config.Plan, want)
		}
		rank, err := planner.New(model, bothSchedules).Rank(ctx, r)
		if err != nil || rank.Evaluated != evaluated || len(rank.Choices) != evaluated {
			t.Errorf("problem %d: %d evaluated, %d listed, %v; brute force has %d", i, rank.Evaluated, len(rank.Choices), err, evaluated)
		}
	}
	if answered < problems(200)/4 {
		t.Errorf("only %d of 200 problems had an answer: the comparison is empty", answered)
	}
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
	pl := planner.New(analytic(t), planner.Options{})
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
	pl := planner.New(analytic(t), planner.Options{})
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
	// Asked about, what is not worth proposing is judged all the same.
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

func TestInfeasible(t *testing.T) {
	big := planner.Request{Model: testModel(96, 12288, 96), Accelerator: testAccelerator(80), Devices: 8, GlobalBatch: 8}
	space := planner.Enumerate{Offload: []spec.Offload{spec.OffloadNone}}
	plan := spec.Plan{DP: 1, TP: 8, MicroBatch: 8, AccumSteps: 1}
	fixed := planner.Request{Model: testModel(24, 4096, 32), Accelerator: testAccelerator(24), Plan: &plan}
	for _, tc := range []struct {
		name string
		r    planner.Request
		want []string
	}{
		{"nothing fits", big, []string{"nearest", "GiB of 80.0 GiB", "optimizer", "would fit with", "devices"}},
		{"fixed plan", fixed, []string{"of 24.0 GiB", "activations", "would fit with mb="}},
		{"no legal plan", planner.Request{Model: testModel(3, 128*7, 7), Accelerator: testAccelerator(80), Devices: 16, GlobalBatch: 3},
			[]string{"dp=16", "does not divide a global batch of 3", "devices have a candidate"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, err := planner.New(analytic(t), planner.Options{Space: space}).Best(ctx, tc.r)
			if !errors.Is(err, planner.ErrInfeasible) {
				t.Fatalf("error %v, want ErrInfeasible", err)
			}
			for _, w := range tc.want {
				if !strings.Contains(err.Error(), w) {
					t.Errorf("%q does not say %q", err, w)
				}
			}
		})
	}
}

func TestRequestErrors(t *testing.T) {
	pl := planner.New(analytic(t), planner.Options{})
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
	whole, err := planner.New(analytic(t), planner.Options{}).Best(ctx, r)
	if err != nil {
		t.Fatal(err)
	}
	spare := 1 - whole.Prediction.MemoryBytes/r.Accelerator.MemBytes
	kept, err := planner.New(analytic(t), planner.Options{Reserve: spare + 0.02}).Best(ctx, r)
	if err != nil || kept.Prediction.MemoryBytes >= whole.Prediction.MemoryBytes {
		t.Errorf("with a reserve %g bytes, without %g, %v", kept.Prediction.MemoryBytes, whole.Prediction.MemoryBytes, err)
	}
	space := planner.Enumerate{Offload: []spec.Offload{spec.OffloadOptimizer}}
	if _, err = planner.New(analytic(t), planner.Options{Space: space}).Best(ctx, r); err != nil {
		t.Errorf("host memory unknown: %v", err)
	}
	ofShape, ofNode := r, r
	ofShape.Shape.HostBytes = 1 * memory.GiB
	ofNode.NodeHostBytes, ofNode.PerNode = 8*memory.GiB, 8 // the share of one device of eight
	for _, r := range []planner.Request{ofShape, ofNode} {
		_, err = planner.New(analytic(t), planner.Options{Space: space}).Best(ctx, r)
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

// predictor adapts a function; it is no Preparer.
type predictor func(spec.Config) (spec.Prediction, error)

func (f predictor) Predict(_ context.Context, c spec.Config) (spec.Prediction, error) { return f(c) }

func TestConcurrentUse(t *testing.T) {
	pl := planner.New(analytic(t), planner.Options{CacheSize: 4})
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
			planner.New(analytic(t), o)
		}()
	}
}

func TestSpaceOptions(t *testing.T) {
	plans := func(e planner.Enumerate, r planner.Request) (tp, cp, mb int, zero map[int]bool) {
		zero = map[int]bool{}
		if r.PerNode == 0 {
			r.PerNode = 8
		}
		for c := range e.Configs(ctx, r) {
			tp, cp, mb = max(tp, c.Plan.TP), max(cp, c.Plan.CP), max(mb, c.Plan.MicroBatch)
			zero[c.Plan.ZeRO] = true
		}
		return tp, cp, mb, zero
	}
	r := request(16, 16)
	if tp, cp, mb, zero := plans(planner.Enumerate{}, r); tp != 8 || cp != 1 || mb != 16 || len(zero) != 4 {
		t.Errorf("by default tp to %d, cp to %d, micro-batch to %d, zero %v", tp, cp, mb, zero)
	}
	if tp, _, _, _ := plans(planner.Enumerate{TPAcrossNodes: true}, r); tp != 16 {
		t.Errorf("across nodes tp to %d, want 16", tp)
	}
	if _, _, mb, zero := plans(planner.Enumerate{MaxMicroBatch: 2, ZeRO: []int{1}}, r); mb != 2 || !zero[1] || len(zero) != 1 {
		t.Errorf("micro-batch to %d, zero %v", mb, zero)
	}
	r.SeqLen = 65536
	if _, cp, _, _ := plans(planner.Enumerate{}, r); cp != 16 {
		t.Errorf("with 65536 tokens cp to %d, want 16", cp)
	}
	r.Shape = spec.NewShape(8, 6, 2)
	if tp, _, _, _ := plans(planner.Enumerate{}, r); tp != 2 {
		t.Errorf("on 8+6+2 devices tp to %d, want 2", tp)
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

// TestRemediesWork: whatever change of a fixed plan an error proposes is
// accepted when it is asked for.
func TestRemediesWork(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	pl := planner.New(analytic(t), planner.Options{})
	pow := func(k int) int { return 1 << rnd.IntN(k) }
	proposed := 0
	for range 2000 {
		p := spec.Plan{DP: pow(4), TP: pow(3), PP: pow(2), MicroBatch: pow(6), AccumSteps: pow(3), ZeRO: rnd.IntN(2)}.Normal()
		r := planner.Request{Model: testModel(24, 2048+1024*rnd.IntN(4), 16), Accelerator: testAccelerator(float64(8 + rnd.IntN(40))), Plan: &p}
		_, err := pl.Best(ctx, r)
		if err == nil {
			continue
		}
		_, fix, ok := strings.Cut(err.Error(), "would fit with ")
		if !ok {
			continue
		}
		proposed++
		changed := change(t, p, fix)
		r.Plan = &changed
		if _, err := pl.Best(ctx, r); err != nil {
			t.Fatalf("%s: told to use %s: %v", p, fix, err)
		}
	}
	if proposed < 100 {
		t.Errorf("%d proposals: the test is empty", proposed)
	}
}

// change returns p with the keys of fix, such as "mb=2,ga=8", in place of its own.
func change(t *testing.T, p spec.Plan, fix string) spec.Plan {
	var out []string
	for _, kv := range strings.Split(p.String(), ",") {
		key, _, _ := strings.Cut(kv, "=")
		if !strings.Contains(","+fix, ","+key+"=") {
			out = append(out, kv)
		}
	}
	changed, err := spec.ParsePlan(strings.Join(append(out, fix), ","))
	if err != nil {
		t.Fatal(err)
	}
	return changed
}

// TestCurveSharesTheHost: one of eight devices has an eighth of the host
// memory and CPUs, the curve's end what Best has.
func TestCurveSharesTheHost(t *testing.T) {
	r := request(8, 8)
	r.Model = testModel(24, 2560, 20)
	r.Shape = spec.NewShape(8)
	r.Shape.CPUs, r.Shape.HostBytes = 96, 100*memory.GiB
	pl := planner.New(analytic(t), planner.Options{Space: planner.Enumerate{Offload: []spec.Offload{spec.OffloadOptimizer}}})
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

// TestTiesGoToTheSmallerNeedOfMemory: of equally fast plans.
func TestTiesGoToTheSmallerNeedOfMemory(t *testing.T) {
	flat := predictor(func(c spec.Config) (spec.Prediction, error) {
		return spec.Prediction{Throughput: 1, MemoryBytes: 1e9 * float64(9-c.Plan.TP)}, nil // the simpler, the more
	})
	best, err := planner.New(flat, planner.Options{}).Best(ctx, request(8, 8))
	if err != nil || best.Config.Plan.TP != 8 {
		t.Errorf("%s, %v; want tp=8", best.Config.Plan, err)
	}
}

// TestAnswersAreKeptPerQuestion: requests that differ in one field only.
func TestAnswersAreKeptPerQuestion(t *testing.T) {
	pl := planner.New(analytic(t), planner.Options{})
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
		want, err2 := planner.New(analytic(t), planner.Options{}).Best(ctx, r)
		if err1 != nil || err2 != nil || got.Config != want.Config || got.Prediction.Throughput != want.Prediction.Throughput {
			t.Errorf("%s: %s (%v), asked afresh %s (%v)", name, got.Config.Plan, err1, want.Config.Plan, err2)
		}
	}
}

// TestNoOffloadOnCPUs: what is offloaded would stay where it is. Who names such
// a plan is answered all the same.
func TestNoOffloadOnCPUs(t *testing.T) {
	r := request(4, 8)
	offloaded := func() (n int) {
		for c := range (planner.Enumerate{}).Configs(ctx, r) {
			if c.Plan.Offload != spec.OffloadNone {
				n++
			}
		}
		return n
	}
	if offloaded() == 0 {
		t.Error("none on GPUs: the test is empty")
	}
	r.Accelerator.Name = "CPU of some kind, 1 thread"
	if n := offloaded(); n > 0 {
		t.Errorf("%d plans offload on CPUs", n)
	}
	r.Accelerator.MemBytes /= 1e4
	if _, err := planner.New(analytic(t), planner.Options{}).Best(ctx, r); !errors.Is(err, planner.ErrInfeasible) || strings.Contains(err.Error(), "offload") {
		t.Errorf("error %v, want one without offload", err)
	}
	r.Plan = &spec.Plan{DP: 4, MicroBatch: 2, ZeRO: 1, Offload: spec.OffloadOptimizer}
	if offloaded() != 1 {
		t.Error("a plan that was named is not answered")
	}
}

// TestContextParallelChunks: load-balanced ring attention cuts a sample in 2·CP.
func TestContextParallelChunks(t *testing.T) {
	r := request(16, 16)
	r.PerNode, r.SeqLen = 8, 16384+8
	most := 0
	for c := range (planner.Enumerate{}).Configs(ctx, r) {
		most = max(most, c.Plan.CP)
	}
	if most != 4 {
		t.Errorf("cp to %d for %d tokens, want 4", most, r.SeqLen)
	}
}

// plansIn lists the space of r.
func plansIn(e planner.Enumerate, r planner.Request) (out []spec.Plan) {
	for c := range e.Configs(ctx, r) {
		out = append(out, c.Plan)
	}
	return out
}

func TestSchedulesConsidered(t *testing.T) {
	r := request(4, 16)
	r.PerNode = 8
	count := func(e planner.Enumerate) map[spec.Schedule]int {
		n := map[spec.Schedule]int{}
		for _, p := range plansIn(e, r) {
			if err := p.Check(r.Model); err != nil {
				t.Errorf("%s: %v", p, err)
			}
			n[p.Schedule]++
		}
		return n
	}
	if n := count(planner.Enumerate{}); len(n) != 1 || n[spec.ScheduleDefault] == 0 {
		t.Errorf("by default %v, want 1f1b", n)
	}
	if n := count(planner.Enumerate{Schedules: []spec.Schedule{spec.Schedule1F1B, spec.ScheduleDefault}}); len(n) != 1 {
		t.Errorf("1f1b alone: %v", n)
	}
	n := count(planner.Enumerate{Schedules: append(spec.Schedules(), "dualpipe")})
	if len(n) != 5 || n["dualpipe"] > 0 {
		t.Errorf("all: %v, want the five there are", n)
	}
}

// Uneven stages are proposed where PP does not divide the layers, and one plan is
// one name where it does.
func TestUnevenStagesConsidered(t *testing.T) {
	r := request(12, 12)
	r.PerNode, r.Model = 8, testModel(7, 128*12, 12)
	most := 0
	interleaved := map[[2]int]bool{}
	for _, p := range plansIn(planner.Enumerate{}, r) {
		most = max(most, p.PP)
		if p.PP > 1 && p.VirtualStages > 1 {
			interleaved[[2]int{p.PP, p.VirtualStages}] = true
		}
	}
	if most != 6 {
		t.Errorf("pp to %d of 12 devices for 7 layers, want 6", most)
	}
	// 7 layers, embedding and head are 3 x 3.
	if want := map[[2]int]bool{{3, 3}: true}; !maps.Equal(interleaved, want) {
		t.Errorf("7 layers are interleaved with pp, vp of %v, want %v", interleaved, want)
	}
}

func TestShardGroupsConsidered(t *testing.T) {
	r := request(16, 16)
	r.PerNode = 8
	groups := map[[2]int]bool{}
	for _, p := range plansIn(planner.Enumerate{}, r) {
		if p.Shard == 0 {
			continue
		}
		groups[[2]int{p.TP, p.Shard}] = true
		if p.ZeRO == 0 || p.PP > 1 || p.Shard*p.TP != 8 {
			t.Errorf("%s shards over %d", p, p.Shard)
		}
	}
	if len(groups) != 3 {
		t.Errorf("groups of %v, want 8, 4 and 2 with tp 1, 2 and 4", groups)
	}
}
