package analytic

import (
	"context"
	"errors"
	"fmt"
	"math"
	"reflect"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/pacer-ml/pacer/perfmodel"
	"github.com/pacer-ml/pacer/perfmodel/internal/perftest"
	"github.com/pacer-ml/pacer/perfmodel/spec"
)

func explain(t testing.TB, c spec.Config) Parts {
	t.Helper()
	p, err := (&Model{}).Explain(c)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// TestAnalyticUtilization: a 4096-wide GPT on one A100. FLOPs are those of Narayanan et al. SC 2021, equation
// 3, without the recomputed quarter. Megatron-LM reported 44 to 52 % of peak in 2021,
// foundation-model-stack/fms-fsdp up to 68 % with fused attention.
func TestAnalyticUtilization(t *testing.T) {
	c := perftest.GPT(spec.Plan{DP: 1, TP: 1, PP: 1, MicroBatch: 4, AccumSteps: 32, Precision: spec.BF16})
	c.Framework = "FSDP@2024"
	b, s, l, h, v := 128.0, 2048.0, 32.0, 4096.0, 51200.0
	flops := 72 * b * s * l * h * h * (1 + s/(6*h) + v/(12*l*h))
	if mfu := flops / explain(t, c).Total() / 312e12; mfu < 0.45 || mfu > 0.70 {
		t.Errorf("model FLOPs utilization %.2f, want 0.45..0.70", mfu)
	}
}

// TestAnalyticBubble: the bubble is (p-1)/v stages of one micro-batch (Narayanan et al. SC 2021, section 2.2),
// times bubbleShare.
func TestAnalyticBubble(t *testing.T) {
	at := func(pp, vp, ga int) Parts {
		c := perftest.GPT(spec.Plan{DP: 1, TP: 1, PP: pp, VirtualStages: vp, MicroBatch: 1, AccumSteps: ga, Precision: spec.BF16})
		c.Model.Vocab = 0 // all stages equal
		return explain(t, c)
	}
	p := at(8, 1, 64)
	stage := (p.Compute + p.Launch) / 64
	if want := Shipped().Physics.any.bubbleShare * 7 * stage; math.Abs(p.Pipeline-want) > 0.15*want {
		t.Errorf("pipeline %g s, want about %g", p.Pipeline, want)
	}
	if v := at(8, 4, 64); v.Pipeline > p.Pipeline/2 {
		t.Errorf("interleaved 4 ways the pipeline costs %g s, without %g", v.Pipeline, p.Pipeline)
	}
	if more := at(8, 1, 128); math.Abs(more.Compute/p.Compute-2) > 1e-9 {
		t.Errorf("twice the micro-batches take %g times the compute", more.Compute/p.Compute)
	}
}

func TestAnalyticRecompute(t *testing.T) {
	plan := spec.Plan{DP: 1, TP: 1, PP: 1, MicroBatch: 4, AccumSteps: 8, Precision: spec.BF16}
	none := explain(t, perftest.GPT(plan))
	plan.Recompute = spec.RecomputeFull
	full := explain(t, perftest.GPT(plan))
	if r := full.Recompute / none.Compute; r < 0.25 || r > 0.36 {
		t.Errorf("full recomputation adds %.2f of the compute, want about a third", r)
	}
	plan.Recompute = spec.RecomputeSelective
	if s := explain(t, perftest.GPT(plan)); !(s.Recompute > 0 && s.Recompute < full.Recompute) {
		t.Errorf("selective recomputes %g s, full %g", s.Recompute, full.Recompute)
	}
}

// TestAnalyticRing: ring all-reduce of a large buffer takes 2·(n-1)/n·S/B (Thakur et al. 2005).
func TestAnalyticRing(t *testing.T) {
	var m machine
	c := perftest.GPT(spec.Plan{DP: 16})
	if err := newMachine(variant{k: &base}, &c, &m); err != nil {
		t.Fatal(err)
	}
	const bytes = 1e10
	in := m.passSec(m.ringOf(8, 1), bytes)
	if want := 7.0 / 8 * bytes / (300e9 * base.shares[generationOf("Ampere")].ring); math.Abs(in/want-1) > 0.01 {
		t.Errorf("inside a node %g s, want %g", in, want)
	}
	across := m.passSec(m.ringOf(16, 1), bytes)
	if want := 15.0 / 16 * bytes / (200e9 * base.netShare); math.Abs(across/want-1) > 0.01 {
		t.Errorf("across two nodes %g s, want %g", across, want)
	}
	// eight groups of two share the network that one group of sixteen uses alone
	shared := m.passSec(m.ringOf(2, 8), bytes)
	if want := 1.0 / 2 * bytes * 8 / (200e9 * base.netShare); math.Abs(shared/want-1) > 0.01 {
		t.Errorf("eight groups across two nodes %g s, want %g", shared, want)
	}
}

func TestAnalyticMonotone(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		pow := func(name string, most int) int { return 1 << rapid.IntRange(0, most).Draw(t, name) }
		p := spec.Plan{DP: pow("dp", 4), TP: pow("tp", 3), PP: pow("pp", 3), MicroBatch: pow("mb", 3), AccumSteps: 8 * pow("ga", 3),
			ZeRO: rapid.IntRange(0, 1).Draw(t, "zero"), Precision: spec.BF16,
			Recompute: rapid.SampledFrom([]spec.Recompute{spec.RecomputeNone, spec.RecomputeSelective, spec.RecomputeFull}).Draw(t, "recompute")}
		c := perftest.GPT(p)
		base := stepSec(t, c)
		for name, faster := range map[string]func(*spec.Config){
			"twice the peak":               func(c *spec.Config) { c.Accelerator.BF16 *= 2; c.Accelerator.FP16 *= 2 },
			"twice the memory bandwidth":   func(c *spec.Config) { c.Accelerator.MemBps *= 2 },
			"twice the links in the node":  func(c *spec.Config) { c.Link.IntraBps *= 2 },
			"twice the network":            func(c *spec.Config) { c.Link.InterBps *= 2 },
			"half the layers":              func(c *spec.Config) { c.Model.Layers /= 2 },
			"half the sequence":            func(c *spec.Config) { c.SeqLen = 1024 },
			"half the accumulation":        func(c *spec.Config) { c.Plan.AccumSteps /= 2 },
			"another name for the network": func(c *spec.Config) { c.Model.Name = "other" },
		} {
			d := c
			faster(&d)
			if got := stepSec(t, d); got > base*(1+1e-9) {
				t.Fatalf("%s: %s takes %g s, before %g", name, p, got, base)
			}
		}
	})
}

func stepSec(t interface{ Fatal(...any) }, c spec.Config) float64 {
	p, err := (&Model{}).Predict(context.Background(), c)
	if err != nil {
		t.Fatal(err)
	}
	sec, lo, hi := p.StepSec(c.Plan.GlobalBatch())
	if !(lo < sec && sec < hi) || math.IsInf(hi, 0) || p.MemoryBytes <= 0 {
		t.Fatal(fmt.Sprintf("%g s in [%g, %g], %g bytes", sec, lo, hi, p.MemoryBytes))
	}
	return sec
}

func TestAnalyticNotCovered(t *testing.T) {
	plan := spec.Plan{DP: 1, MicroBatch: 1, AccumSteps: 1}
	for want, change := range map[string]func(*spec.Config){
		`accelerator "A" has a peak of 0`: func(c *spec.Config) { c.Accelerator = spec.Accelerator{Name: "A"} },
		`model "gpt" has neither`:         func(c *spec.Config) { c.Model = spec.Model{Name: "gpt"} },
		"tokens per sample":               func(c *spec.Config) { c.Model.SeqLen = 0 },
	} {
		c := perftest.GPT(plan)
		change(&c)
		_, err := (&Model{}).Predict(context.Background(), c)
		if !errors.Is(err, perfmodel.ErrNotCovered) || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want one with %q", err, want)
		}
	}
}

// FuzzAnalyticPredict: for any Config, the result is a finite and positive prediction, or an error.
func FuzzAnalyticPredict(f *testing.F) {
	f.Add(1, 1, 1, 1, 1, 1, 32, 4096, 32, 2048, 312e12)
	f.Add(-1, 8, 3, 2, 0, 1<<40, 0, -5, 7, 1, -1.0)
	f.Fuzz(func(t *testing.T, dp, tp, pp, cp, mb, ga, layers, hidden, heads, seq int, peak float64) {
		c := perftest.GPT(spec.Plan{DP: 1})
		c.Plan = spec.Plan{DP: dp, TP: tp, PP: pp, CP: cp, MicroBatch: mb, AccumSteps: ga}
		c.Model.Layers, c.Model.Hidden, c.Model.Heads, c.Model.SeqLen, c.Accelerator.BF16 = layers, hidden, heads, seq, peak
		p, err := (&Model{}).Predict(context.Background(), c)
		if err == nil && (!(p.Throughput > 0) || math.IsInf(p.Throughput, 0) || !(p.Lo > 0) || math.IsNaN(p.MemoryBytes)) {
			t.Fatalf("%+v", p)
		}
	})
}

func TestAnalyticWarnsOfAssumedFigures(t *testing.T) {
	c := perftest.GPT(spec.Plan{DP: 16, MicroBatch: 1, AccumSteps: 1})
	p, err := (&Model{}).Predict(context.Background(), c)
	if err != nil || len(p.Warnings) != 0 {
		t.Errorf("everything given: %v, %v", p.Warnings, err)
	}
	c.Plan.Precision = spec.FP8
	if p, _ = (&Model{}).Predict(context.Background(), c); len(p.Warnings) != 1 || !strings.Contains(p.Warnings[0].Error(), "lacks the plan's number format") {
		t.Errorf("fp8 on Ampere: warnings %v", p.Warnings)
	}
	c.Plan.Precision, c.Accelerator.Arch, c.Accelerator.FP8 = spec.FP8, "Hopper", 1979e12
	if p, _ = (&Model{}).Predict(context.Background(), c); len(p.Warnings) != 0 {
		t.Errorf("fp8 on Hopper: warnings %v", p.Warnings)
	}
	c = perftest.GPT(spec.Plan{DP: 16, MicroBatch: 1, AccumSteps: 1})
	c.Link = spec.Link{}
	if p, _ = (&Model{}).Predict(context.Background(), c); len(p.Warnings) != 2 {
		t.Errorf("no link given: warnings %v", p.Warnings)
	}
	c.Accelerator.FP16, c.Accelerator.BF16, c.Accelerator.FP32, c.Accelerator.Watts = 0, 0, 0, 400
	if p, _ = (&Model{}).Predict(context.Background(), c); len(p.Warnings) != 3 || !strings.Contains(p.Warnings[2].Error(), "peak") {
		t.Errorf("no peak given: warnings %v", p.Warnings)
	}
	c.Plan, c.Shape = spec.Plan{DP: 1, MicroBatch: 1, AccumSteps: 1}, spec.NewShape(1)
	c.Accelerator = perftest.GPTDevice()
	if p, _ = (&Model{}).Predict(context.Background(), c); len(p.Warnings) != 0 {
		t.Errorf("one device needs no link: warnings %v", p.Warnings)
	}
}

func TestAnalyticOpaque(t *testing.T) {
	c := perftest.GPT(spec.Plan{DP: 1, MicroBatch: 256, AccumSteps: 1, Precision: spec.FP16})
	c.Model = spec.Model{Name: "ResNet-50", Kind: spec.Opaque, ParamCount: 25.6e6, FLOPsPerSample: 8.2e9}
	p, err := (&Model{}).Predict(context.Background(), c)
	if err != nil {
		t.Fatal(err)
	}
	// NVIDIA DeepLearningExamples reports 2200 to 2800 images/s on one A100.
	if p.Throughput < 1800 || p.Throughput > 3400 {
		t.Errorf("%g images/s", p.Throughput)
	}
}

// TestAnalyticOpaqueNeedsTokens: if only the parameter count of a model is known, its work per sample is
// unknown without the tokens per sample.
func TestAnalyticOpaqueNeedsTokens(t *testing.T) {
	c := perftest.GPT(spec.Plan{DP: 1, MicroBatch: 4, Precision: spec.FP16})
	c.Model, c.SeqLen = spec.Model{Name: "T5-1.2B", Kind: spec.Opaque, ParamCount: 1.24e9}, 0
	if _, err := (&Model{}).Predict(context.Background(), c); !errors.Is(err, perfmodel.ErrNotCovered) || !strings.Contains(err.Error(), "tokens per sample") {
		t.Errorf("error %v", err)
	}
	c.SeqLen = 512
	if p, err := (&Model{}).Predict(context.Background(), c); err != nil || p.Throughput > 300 {
		t.Errorf("%g samples/s, %v; one A100 at its peak does 82", p.Throughput, err)
	}
}

// TestAnalyticPipelineCrossesNodes: even stages narrower than a node cross the network at the boundary between
// two nodes.
func TestAnalyticPipelineCrossesNodes(t *testing.T) {
	send := func(interGbit float64, shape spec.Shape, p spec.Plan) float64 {
		c := perftest.GPT(p)
		c.Shape, c.Link.InterBps = shape, interGbit*1e9/8
		return explain(t, c).Pipeline
	}
	narrow := spec.Plan{DP: 4, PP: 4, MicroBatch: 1, AccumSteps: 4, Precision: spec.BF16}
	wide := spec.Plan{DP: 1, TP: 8, PP: 2, MicroBatch: 1, AccumSteps: 16, Precision: spec.BF16}
	for _, p := range []spec.Plan{narrow, wide} {
		slow, fast := send(1, spec.NewShape(8, 8), p), send(3200, spec.NewShape(8, 8), p)
		if slow < 5*fast {
			t.Errorf("%s on two nodes: %.3g s at 1 Gbit/s, %.3g s at 3200", p, slow, fast)
		}
	}
	inside := spec.Plan{DP: 2, PP: 4, MicroBatch: 1, AccumSteps: 4, Precision: spec.BF16}
	if slow, fast := send(1, spec.NewShape(8), inside), send(3200, spec.NewShape(8), inside); slow != fast {
		t.Errorf("on one node the network does not matter: %g s and %g s", slow, fast)
	}
}

// TestAnalyticPreparedIsPredict: predictions of a prepared site, and of a plan fixed on it, are those of the configuration,
// whatever the length that it was prepared with.
func TestAnalyticPreparedIsPredict(t *testing.T) {
	c := perftest.GPT(spec.Plan{DP: 8, TP: 4, PP: 2, MicroBatch: 2, AccumSteps: 16, ZeRO: 1, Recompute: spec.RecomputeFull})
	experts, opaque, alone := c, c, c
	experts.Model.Experts, experts.Model.ExpertsPerToken, experts.Model.ExpertFFN = 8, 2, 512
	opaque.Model = spec.Model{Name: "opaque", Kind: spec.Opaque, ParamCount: 1e9, SeqLen: 1024}
	alone.AloneStage = 2
	plans := []spec.Plan{c.Plan, {DP: 64, ZeRO: 3, AccumSteps: 2, Precision: spec.FP8}, {TP: 8, DP: 8, ZeRO: 1, Recompute: spec.RecomputeSelective}, {DP: 1 << 40}}
	for _, c := range []spec.Config{c, experts, opaque, alone} {
		for _, c.Framework = range []string{"", "FSDP", "DeepSpeed@0.16", "Megatron Core@0.12", "Megatron Core activations=offloaded"} {
			own := c.SeqLen
			f, err := (&Model{}).Prepare(c)
			if err != nil {
				t.Fatal(err)
			}
			for _, c.Plan = range plans {
				fixed := f.Fix(c.Plan)
				for _, seq := range []int{own, 512, 0, 6000} {
					c.SeqLen = seq
					want, wrong := (&Model{}).Predict(context.Background(), c)
					want.MemoryBytes, want.AllocatedBytes, want.ReservedBytes = 0, 0, 0
					for name, predict := range map[string]func() (spec.Prediction, error){
						"prepared": func() (spec.Prediction, error) { return f.Predict(c.Plan, seq) },
						"fixed":    func() (spec.Prediction, error) { return fixed(seq) },
					} {
						if got, err := predict(); !reflect.DeepEqual(got, want) || fmt.Sprint(err) != fmt.Sprint(wrong) {
							t.Errorf("%s, %q, %s, %d tokens: %s %+v, %v, directly %+v, %v", c.Model.Name, c.Framework, c.Plan, seq, name, got, err, want, wrong)
						}
					}
				}
			}
		}
	}
}

func BenchmarkAnalyticPredict(b *testing.B) {
	var cs []spec.Config
	for _, dp := range []int{1, 2, 4, 8, 16} {
		for _, tp := range []int{1, 2, 4, 8} {
			for _, pp := range []int{1, 2, 4, 8} {
				cs = append(cs, perftest.GPT(spec.Plan{DP: dp, TP: tp, PP: pp, MicroBatch: 2, AccumSteps: 16, ZeRO: 1, Precision: spec.BF16}))
			}
		}
	}
	b.Run("path=config", func(b *testing.B) {
		b.ReportAllocs()
		a, i := &Model{}, 0
		for b.Loop() {
			if _, err := a.Predict(context.Background(), cs[i%len(cs)]); err != nil {
				b.Fatal(err)
			}
			i++
		}
		b.ReportMetric(float64(i)/b.Elapsed().Seconds(), "predictions/s")
	})
	b.Run("path=prepared", func(b *testing.B) {
		b.ReportAllocs()
		f, err := (&Model{}).Prepare(cs[79])
		if err != nil {
			b.Fatal(err)
		}
		i := 0
		for b.Loop() {
			if _, err := f.Predict(cs[i%len(cs)].Plan, cs[i%len(cs)].SeqLen); err != nil {
				b.Fatal(err)
			}
			i++
		}
		b.ReportMetric(float64(i)/b.Elapsed().Seconds(), "predictions/s")
	})
}

// TestAnalyticTPOperations: four all-reduces per layer and micro-batch, six with full recomputation, half of
// one more with sequence parallelism.
func TestAnalyticTPOperations(t *testing.T) {
	at := func(re spec.Recompute, sp bool) float64 {
		return explain(t, perftest.GPT(spec.Plan{DP: 1, TP: 4, MicroBatch: 1, AccumSteps: 1, Recompute: re, SequenceParallel: sp, Precision: spec.BF16})).TP
	}
	base := at(spec.RecomputeNone, false)
	for _, tc := range []struct {
		re   spec.Recompute
		sp   bool
		want float64
	}{{spec.RecomputeSelective, false, 1}, {spec.RecomputeFull, false, 1.5}, {spec.RecomputeNone, true, 4.5 / 4}, {spec.RecomputeFull, true, 6.5 / 4}} {
		if got := at(tc.re, tc.sp) / base; math.Abs(got-tc.want) > 1e-9 {
			t.Errorf("recompute=%s, sp=%v: %g of the plain traffic, want %g", tc.re, tc.sp, got, tc.want)
		}
	}
}

// TestAnalyticZeROTrafficPerMicroBatch: ZeRO-3 gathers in every micro-batch, but a pipeline stage stays
// gathered and gathers once; ZeRO-0 to 2 synchronize once per step.
func TestAnalyticZeROTrafficPerMicroBatch(t *testing.T) {
	dp := func(zero, pp, ga int) float64 {
		c := perftest.GPT(spec.Plan{DP: 8, PP: pp, MicroBatch: 1, AccumSteps: ga, ZeRO: zero, Precision: spec.BF16})
		c.Framework = "Megatron-LM@2021" // overlaps nothing
		return explain(t, c).DP
	}
	for _, tc := range []struct {
		zero, pp int
		want     float64 // ratio of eight micro-batches to one
	}{{0, 1, 1}, {1, 1, 1}, {2, 1, 1}, {3, 1, 8}, {3, 2, 1}} {
		if got := dp(tc.zero, tc.pp, 8) / dp(tc.zero, tc.pp, 1); math.Abs(got/tc.want-1) > 1e-9 {
			t.Errorf("zero=%d, pp=%d: %g times the traffic, want %g", tc.zero, tc.pp, got, tc.want)
		}
	}
}

// TestAnalyticOffloadTraffic: optimizer offload moves 2 bytes of gradient down and 2 of weight up per
// parameter, so halving the host link adds the same time again.
func TestAnalyticOffloadTraffic(t *testing.T) {
	c := perftest.GPT(spec.Plan{DP: 1, MicroBatch: 1, AccumSteps: 4, Offload: spec.OffloadOptimizer, Precision: spec.BF16})
	c.Link.HostBps = 10e9
	slow := c
	slow.Link.HostBps = 5e9
	added := explain(t, slow).Offload - explain(t, c).Offload
	if want := 4 * c.Model.Params() / (10e9 * Shipped().Physics.any.hostShare); math.Abs(added/want-1) > 0.01 {
		t.Errorf("half the host link adds %g s, want %g", added, want)
	}
}

// TestAnalyticAllToAll: a rank sends equal parts to n-1 others, and inner-1 of them are in its domain.
func TestAnalyticAllToAll(t *testing.T) {
	m := machine{k: &base, share: &base.shares[0], intra: 1e9, inter: 1e30, domain: 8}
	r := ring{n: 16, inner: 8, groups: 1}
	if got, want := m.allToAllSec(r, 16e9, 8e9)-base.shares[0].hop*4, 7.0; math.Abs(got-want) > 1e-9 {
		t.Errorf("inside %g s, want %g", got, want)
	}
	m.intra, m.inter = 1e30, 1e9
	if got, want := m.allToAllSec(r, 16e9, 8e9)-base.shares[0].hop*4, 8.0*8; math.Abs(got-want) > 1e-9 {
		t.Errorf("between domains %g s, want %g: eight ranks share the network", got, want)
	}
}

// TestAnalyticUnevenStages: the stage with an extra layer is the slowest. 33 layers on 4 stages take the time
// of 36, except for the bubble, the optimizer and the accumulation of gradients.
func TestAnalyticUnevenStages(t *testing.T) {
	at := func(layers, pp int) Parts {
		c := perftest.GPT(spec.Plan{DP: 2, PP: pp, MicroBatch: 1, AccumSteps: 16, Precision: spec.BF16})
		c.Model.Layers, c.Model.Vocab = layers, 0
		return explain(t, c)
	}
	if got, want := at(33, 4).Compute, at(36, 4).Compute; math.Abs(got/want-1) > 0.01 {
		t.Errorf("33 layers on 4 stages compute for %g s, 36 for %g", got, want)
	}
	if a, b, c := at(32, 4).Total(), at(33, 4).Total(), at(36, 4).Total(); !(a < b && b < c) {
		t.Errorf("32, 33 and 36 layers take %g, %g, %g s", a, b, c)
	}
	// The head counts if the last stage is the slowest.
	c := perftest.GPT(spec.Plan{PP: 4, MicroBatch: 1, AccumSteps: 16, Precision: spec.BF16})
	c.Model.Layers, c.Model.Vocab = 33, 1<<20
	if got, without := explain(t, c).Compute, at(33, 4).Compute; got <= without {
		t.Errorf("with a large head %g s of compute, without %g", got, without)
	}
}

// TestBubbleOfSchedules: if the forward pass and both gradients take the same time, the bubble of ZB-H1 is a
// third of that of 1F1B, and that of ZB-H2 and ZB-V is 0 (Qi et al., "Zero Bubble Pipeline Parallelism", 2024,
// table 1). In general it is (p-1)(F+B-W) and (p-1)(F+B-2W). With fewer micro-batches, the expected values come
// from the schedules worked out by hand: the forward pass and input gradients of one micro-batch cross the
// pipeline, and the weight gradients of the other micro-batches fill the way back.
func TestBubbleOfSchedules(t *testing.T) {
	const f, b, w = 1.0, 1.25, 0.75
	for _, tc := range []struct {
		schedule spec.Schedule
		ga       int
		f, b, w  float64
		want     float64
	}{
		{spec.ScheduleDefault, 64, 1, 1, 1, 7 * 3},
		{spec.ScheduleGPipe, 64, 1, 1, 1, 7 * 3},
		{spec.ScheduleZBH1, 64, 1, 1, 1, 7},
		{spec.ScheduleZBH2, 64, 1, 1, 1, 0},
		{spec.ScheduleZBV, 64, 1, 1, 1, 0},
		{spec.ScheduleZBH1, 64, f, b, w, 7 * (f + b - w)},
		{spec.ScheduleZBH2, 64, f, b, w, 7 * (f + b - 2*w)},
		{spec.ScheduleZBH2, 64, 1, 1, 1.5, 0},
		{spec.ScheduleZBH1, 8, 1, 1, 1, 7},
		{spec.ScheduleZBH2, 15, 1, 1, 1, 0},
		{spec.ScheduleZBH1, 1, 1, 1, 1, 14},
		{spec.ScheduleZBH2, 2, 1, 1, 1, 13},
		{spec.ScheduleZBH1, 3, 1, 1.2, 0.8, 13.8},
		{spec.ScheduleZBV, 8, 1, 1, 1, 0},
		{spec.ScheduleDualPipeV, 64, 1, 1, 1, 7 * (3 + 2 - 3.0) / 2}, // chunks take half as long as stages
		{spec.ScheduleDualPipeV, 16, 1, 1, 0.5, 7 * (2.5 + 1.5 - 1.5) / 2},
		{spec.ScheduleDualPipeV, 16, 1, 1, 4, 0},
	} {
		p := spec.Plan{PP: 8, AccumSteps: tc.ga, Schedule: tc.schedule}.Normal()
		if got := bubbleSec(&p, tc.f+tc.b+tc.w, tc.w); math.Abs(got-tc.want) > 1e-9 {
			t.Errorf("%q, %d micro-batches, F, B, W = %g, %g, %g: bubble %g, want %g", tc.schedule, tc.ga, tc.f, tc.b, tc.w, got, tc.want)
		}
	}
}

func TestAnalyticSchedules(t *testing.T) {
	at := func(s spec.Schedule) float64 {
		c := perftest.GPT(spec.Plan{DP: 2, PP: 8, MicroBatch: 1, AccumSteps: 16, Schedule: s, Precision: spec.BF16})
		return explain(t, c).Total()
	}
	if a, b, c := at(spec.ScheduleZBH2), at(spec.ScheduleZBH1), at(spec.ScheduleDefault); !(a < b && b < c) {
		t.Errorf("zb-h2 takes %g s, zb-h1 %g, 1f1b %g", a, b, c)
	}
	if a, b := at(spec.ScheduleGPipe), at(spec.Schedule1F1B); a != b {
		t.Errorf("gpipe takes %g s, 1f1b %g", a, b)
	}
}

// TestAnalyticShardGroups: a shard group of all devices equals no groups. Groups inside the node shorten
// ZeRO-3's gathers; the gradients of ZeRO-1 and 2 cross the network in any case; the optimizer has more to do.
// A plan with explicit groups takes as long as in a stack that always uses them.
func TestAnalyticShardGroups(t *testing.T) {
	at := func(framework string, zero, shard int) Parts {
		c := perftest.GPT(spec.Plan{DP: 32, MicroBatch: 1, AccumSteps: 4, ZeRO: zero, Shard: shard, Precision: spec.BF16})
		c.Framework, c.Link.InterBps = framework, 25e9
		return explain(t, c)
	}
	for zero := 1; zero <= 3; zero++ {
		if a, b := at("FSDP@2024", zero, 32), at("FSDP@2024", zero, 0); a != b {
			t.Errorf("zero=%d over all by name: %+v, want %+v", zero, a, b)
		}
		if a, b := at("FSDP@2024", zero, 8), at("FSDP@2024", zero, 0); zero == 3 && a.DP >= b.DP || math.Abs(a.Optimizer/b.Optimizer-4) > 1e-9 {
			t.Errorf("zero=%d over 8: %g s of traffic, %g s of optimizer; over 32 %g, %g", zero, a.DP, a.Optimizer, b.DP, b.Optimizer)
		}
	}
	if a, b := at("FSDP@2024 zero=hsdp", 3, 8), at("FSDP@2024 zero=hsdp", 3, 0); a.DP != b.DP {
		t.Errorf("fms-fsdp over 8: %g s of traffic, without a word %g", a.DP, b.DP)
	}
}

func TestAnalyticRefusesImpossiblePlans(t *testing.T) {
	perftest.CheckImpossible(t, "analytic", &Model{})
}

// TestPartsFields: fields has every part, and all count in the total.
func TestPartsFields(t *testing.T) {
	var p Parts
	v := reflect.ValueOf(&p).Elem()
	for i := range v.NumField() {
		v.Field(i).SetFloat(float64(int(1) << i))
	}
	if got, want := p.Total(), float64(int(1)<<v.NumField()-1); got != want {
		t.Errorf("a total of %g, want %g", got, want)
	}
	if got := p.Scaled(2).Total(); got != 2*p.Total() {
		t.Errorf("twice the parts are %g, want %g", got, 2*p.Total())
	}
}
