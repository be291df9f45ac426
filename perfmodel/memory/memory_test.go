package memory

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"reflect"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/pacer-ml/pacer/perfmodel"
	"github.com/pacer-ml/pacer/perfmodel/spec"
)

func gpt(layers, hidden, heads int) spec.Model {
	return spec.Model{Name: fmt.Sprintf("gpt-%d", hidden), Kind: spec.Decoder, Layers: layers, Hidden: hidden, FFN: 4 * hidden, Heads: heads, SeqLen: 2048, TiedEmbeddings: true}
}

func estimate(t testing.TB, c spec.Config) Breakdown {
	t.Helper()
	c.Framework = cmp.Or(c.Framework, "Megatron Core@0.3")
	e, err := Prior().For(c) // counted bytes, without fitted constants
	if err != nil {
		t.Fatal(err)
	}
	return e.Plan(c.Plan)
}

// TestCPU: on CPUs there is no device context and no communicator; the rest is the same, and a small model's
// buckets are no larger than its gradients.
func TestCPU(t *testing.T) {
	c := spec.Config{Model: gpt(4, 128, 4), Plan: spec.Plan{DP: 4, TP: 2, MicroBatch: 1}, Framework: "PyTorch@2.0", Accelerator: spec.Accelerator{Name: "GPU"}}
	gpu := estimate(t, c)
	c.Accelerator.Name = "CPU of some kind, 1 thread"
	cpu := estimate(t, c)
	k := Prior().Pooled
	near(t, "context and two communicators", gpu.Overhead-cpu.Overhead, k.ContextBytes+2*k.CommunicatorBytes, 1e-9)
	near(t, "outside of the allocator", gpu.Outside, k.ContextBytes+2*k.CommunicatorBytes, 1e-9)
	gpu.Overhead, gpu.Outside = cpu.Overhead, cpu.Outside
	if cpu != gpu {
		t.Errorf("on a CPU %v, on a GPU %v", cpu, gpu)
	}
	if cpu.Buffers <= 0 || cpu.Buffers > cpu.Gradients {
		t.Errorf("buffers of %g bytes for gradients of %g", cpu.Buffers, cpu.Gradients)
	}
}

func near(t *testing.T, what string, got, want, tolerance float64) {
	t.Helper()
	if math.Abs(got/want-1) > tolerance {
		t.Errorf("%s: %.4g, want %.4g within %g", what, got, want, tolerance)
	}
}

// TestKorthikantiFigure1 compares with figure 1 of Korthikanti et al. 2022, as calculon-ai/calculon quotes it:
// GiB per device of parameters with optimizer states, and of the first stage's activations, without
// recomputation and with selective recomputation and sequence parallelism. The paper omits the embedding's
// input, which is below 1 %.
func TestKorthikantiFigure1(t *testing.T) {
	for _, tc := range []struct {
		model                          spec.Model
		plan                           spec.Plan
		states, activations, selective float64
	}{
		{gpt(48, 6144, 64), spec.Plan{TP: 8, PP: 1, MicroBatch: 4, AccumSteps: 1}, 45.5625, 59.25, 9.5625},
		{gpt(96, 12288, 96), spec.Plan{TP: 8, PP: 8, MicroBatch: 1, AccumSteps: 64, VirtualStages: 3}, 45.5625, 66.84375, 12.3515625},
		{gpt(105, 20480, 128), spec.Plan{TP: 8, PP: 35, MicroBatch: 1, AccumSteps: 280, VirtualStages: 3}, 31.640625, 114.0234375, 23.076171875},
		{gpt(128, 25600, 160), spec.Plan{TP: 8, PP: 64, MicroBatch: 1, AccumSteps: 512}, 32.958984375, 131.25, 26.5625},
	} {
		t.Run(tc.model.Name, func(t *testing.T) {
			c := spec.Config{Model: tc.model, Plan: tc.plan, Accelerator: spec.Accelerator{Arch: "Volta"}} // unfused attention
			b := estimate(t, c)
			near(t, "states", (b.Parameters+b.Gradients+b.Optimizer)/GiB, tc.states, 0.002)
			near(t, "activations", b.Activations/GiB, tc.activations, 0.01)
			c.Plan.Recompute, c.Plan.SequenceParallel = spec.RecomputeSelective, true
			near(t, "selective activations", estimate(t, c).Activations/GiB, tc.selective, 0.01)
		})
	}
}

// TestZeROFigure1 compares with Rajbhandari et al. SC 2020, figure 1: 7.5 billion parameters on 64 devices need
// 120, 31.4, 16.6 and 1.9 GB of states with ZeRO 0 to 3.
func TestZeROFigure1(t *testing.T) {
	m := gpt(36, 4096, 32)
	m.ParamCount = 7.5e9
	for zero, want := range []float64{120, 31.4, 16.6, 1.9} {
		c := spec.Config{Model: m, Framework: "InternEvo", Plan: spec.Plan{DP: 64, MicroBatch: 1, AccumSteps: 1, ZeRO: zero, Precision: spec.BF16}}
		b := estimate(t, c)
		near(t, fmt.Sprintf("zero=%d", zero), (b.Parameters+b.Gradients+b.Optimizer)/1e9, want, 0.02)
	}
}

// TestFullPrecisionStates: 16 bytes per parameter in fp32: weights, gradients, two moments.
func TestFullPrecisionStates(t *testing.T) {
	m := gpt(12, 1024, 16)
	m.ParamCount = 1e9
	b := estimate(t, spec.Config{Model: m, Plan: spec.Plan{MicroBatch: 1, AccumSteps: 1, Precision: spec.FP32}})
	near(t, "states", b.Parameters+b.Gradients+b.Optimizer, 16e9, 1e-9)
}

// TestInFlight: stages of plain 1F1B hold min(m, p-i) micro-batches, interleaved ones 2(p-i-1) + (v-1)p + 1
// chunks (Narayanan et al. SC 2021, section 2.2).
func TestInFlight(t *testing.T) {
	for _, tc := range []struct {
		pp, vp, ga, stage int
		want              float64
	}{
		{1, 1, 8, 0, 1}, {4, 1, 8, 0, 4}, {4, 1, 8, 3, 1}, {4, 1, 2, 0, 2}, {4, 2, 8, 0, 11}, {4, 2, 8, 3, 5}, {4, 2, 4, 0, 8},
	} {
		p := spec.Plan{PP: tc.pp, VirtualStages: tc.vp, AccumSteps: tc.ga}.Normal()
		if got := inFlight(&p, tc.stage); got != tc.want {
			t.Errorf("pp=%d vp=%d ga=%d stage %d: %g chunks, want %g", tc.pp, tc.vp, tc.ga, tc.stage, got, tc.want)
		}
	}
}

// TestInFlightOfSchedules: micro-batches held are p with ZB-H1 and ZB-V, 2p-1 with ZB-H2 (Qi et al., "Zero
// Bubble Pipeline Parallelism", 2024, table 1) and all with GPipe (Huang et al., 2019).
func TestInFlightOfSchedules(t *testing.T) {
	for _, tc := range []struct {
		schedule  spec.Schedule
		ga, stage int
		want      float64 // number of chunks; a chunk is a stage, or half a stage with ZB-V and DualPipeV
	}{
		{spec.ScheduleGPipe, 32, 0, 32}, {spec.ScheduleGPipe, 32, 3, 32},
		{spec.ScheduleZBH1, 32, 0, 4}, {spec.ScheduleZBH1, 32, 3, 4}, {spec.ScheduleZBH1, 2, 0, 2},
		{spec.ScheduleZBH2, 32, 0, 7}, {spec.ScheduleZBH2, 5, 0, 5},
		{spec.ScheduleZBV, 32, 0, 8}, {spec.ScheduleZBV, 1, 3, 2},
		{spec.ScheduleDualPipeV, 32, 0, 9}, {spec.ScheduleDualPipeV, 8, 3, 9},
	} {
		p := spec.Plan{PP: 4, AccumSteps: tc.ga, Schedule: tc.schedule}.Normal()
		if got := inFlight(&p, tc.stage); got != tc.want {
			t.Errorf("%s ga=%d stage %d: %g chunks, want %g", tc.schedule, tc.ga, tc.stage, got, tc.want)
		}
	}
}

// TestActivationsOfSchedules: relative to 1F1B, the first stage keeps the same activations with ZB-H1 and ZB-V,
// 7/4 with ZB-H2 and eight times as much with GPipe. With ZB-V, the loss is on the first stage.
func TestActivationsOfSchedules(t *testing.T) {
	m := gpt(32, 4096, 32)
	m.Vocab = 128000
	of := func(s spec.Schedule) []Breakdown {
		e, err := Prior().For(spec.Config{Model: m, Framework: "Megatron-LM@2023"})
		if err != nil {
			t.Fatal(err)
		}
		return e.Stages(spec.Plan{DP: 8, PP: 4, MicroBatch: 1, AccumSteps: 32, Schedule: s, Precision: spec.BF16})
	}
	base := of(spec.ScheduleDefault)
	input := 2.0 * 2048 * 4096 // of the first layer, kept once
	for s, want := range map[spec.Schedule]float64{spec.ScheduleZBH1: 1, spec.ScheduleZBV: 1, spec.ScheduleDualPipeV: 9.0 / 8, spec.ScheduleZBH2: 7.0 / 4, spec.ScheduleGPipe: 8} {
		near(t, string(s), of(s)[0].Activations-input, want*(base[0].Activations-input), 1e-9)
	}
	for _, s := range []spec.Schedule{spec.ScheduleZBV, spec.ScheduleDualPipeV} {
		if v := of(s); v[0].Working != base[3].Working || v[3].Working != base[0].Working {
			t.Errorf("%s works on %g, %g bytes on the first and last stage; 1f1b on %g, %g", s, v[0].Working, v[3].Working, base[0].Working, base[3].Working)
		}
	}
	v := of(spec.ScheduleZBV)
	near(t, "parameters of the first and last stage", v[0].Parameters+v[3].Parameters, base[0].Parameters+base[3].Parameters-2*128000*4096, 1e-9) // tied, on one stage
}

// TestUnevenStagesPeak: with 66 layers on 8 stages, the two stages before the last have one more layer. The
// peak is on the first stage, with the most micro-batches, or on one of these two. The same for a stack that moves layers
// from the last stage to others.
func TestUnevenStagesPeak(t *testing.T) {
	for _, layers := range []int{24, 48, 64, 65, 66, 67, 70, 71} {
		for _, r := range []spec.Recompute{spec.RecomputeNone, spec.RecomputeFull} {
			for _, s := range []spec.Schedule{spec.ScheduleDefault, spec.ScheduleZBH1, spec.ScheduleGPipe} {
				p := spec.Plan{DP: 2, PP: 8, MicroBatch: 1, AccumSteps: 16, Recompute: r, Schedule: s, Precision: spec.BF16}
				for _, framework := range []string{"Megatron-LM@2022", "LiBai"} {
					e, err := For(spec.Config{Model: gpt(layers, 4096, 32), Framework: framework})
					if err != nil {
						t.Fatal(err)
					}
					worst := 0.0
					for _, b := range e.Stages(p) {
						worst = max(worst, b.Total())
					}
					if got := e.Bytes(p); got != worst {
						t.Errorf("%s, %d layers, %s: %g bytes, the fullest stage has %g", framework, layers, p, got, worst)
					}
				}
			}
		}
	}
}

// TestShardGroups: in groups of 8 out of 64 devices, each device keeps eight times as much as when sharding
// over all. A group of all devices is the same as no groups.
func TestShardGroups(t *testing.T) {
	m := gpt(36, 4096, 32)
	of := func(zero, shard int) Breakdown {
		return estimate(t, spec.Config{Model: m, Framework: "InternEvo",
			Plan: spec.Plan{DP: 64, MicroBatch: 1, AccumSteps: 1, ZeRO: zero, Shard: shard, Precision: spec.BF16}})
	}
	near(t, "optimizer", of(1, 8).Optimizer, 8*of(1, 0).Optimizer, 1e-9)
	near(t, "gradients", of(2, 8).Gradients, 8*of(2, 0).Gradients, 1e-9)
	near(t, "parameters", of(3, 8).Parameters, 8*of(3, 0).Parameters, 1e-9)
	if a, b := of(3, 64), of(3, 0); a != b {
		t.Errorf("a group of all keeps %v, want %v", a, b)
	}
	if a, b := of(1, 8).Parameters, of(1, 0).Parameters; a != b {
		t.Errorf("zero=1 keeps %g bytes of parameters in groups, %g without", a, b)
	}
}

// TestParametersAddUp: the parameters of all stages, over all tensor and expert ranks, add up to the model's.
func TestParametersAddUp(t *testing.T) {
	dense := gpt(24, 2048, 16)
	dense.Vocab, dense.TiedEmbeddings, dense.GatedMLP, dense.KVHeads = 32000, false, true, 4
	moe := dense
	moe.Experts, moe.ExpertsPerToken, moe.ExpertFFN, moe.SharedExperts, moe.DenseLayers = 16, 2, 1024, 1, 3
	for _, tc := range []struct {
		model spec.Model
		plan  spec.Plan
	}{
		{dense, spec.Plan{TP: 4, PP: 3}}, {dense, spec.Plan{TP: 1, PP: 1}}, {moe, spec.Plan{DP: 8, EP: 8, PP: 2}}, {moe, spec.Plan{TP: 4}},
	} {
		e, err := For(spec.Config{Model: tc.model})
		if err != nil {
			t.Fatal(err)
		}
		p := tc.plan.Normal()
		total := 0.0
		for stage := range p.PP {
			o := e.w.onDevice(&p, e.layersOn(&p, stage), stage, 1)
			total += o.dense*float64(p.TP) + o.expert*expertShards(&p)
		}
		near(t, tc.plan.String(), total, tc.model.Params(), 0.002) // every rank has all norms and routers
	}
}

func TestOffload(t *testing.T) {
	m := gpt(24, 2048, 16)
	plan := spec.Plan{DP: 4, MicroBatch: 1, AccumSteps: 1, ZeRO: 2}
	kept := estimate(t, spec.Config{Model: m, Plan: plan})
	plan.Offload = spec.OffloadOptimizer
	off := estimate(t, spec.Config{Model: m, Plan: plan})
	if off.Optimizer != 0 || off.HostBytes < kept.Optimizer || off.Total() > kept.Total()-0.9*kept.Optimizer {
		t.Errorf("offloaded %v with %g on the host, kept %v", off, off.HostBytes, kept)
	}
	plan.ZeRO, plan.Offload = 3, spec.OffloadParams
	all := estimate(t, spec.Config{Model: m, Plan: plan})
	if all.Parameters != 0 || all.Total() > off.Total() {
		t.Errorf("with parameters offloaded %v, without %v", all, off)
	}
}

func TestMonotone(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		pow := func(name string, most int) int { return 1 << rapid.IntRange(0, most).Draw(t, name) }
		m := gpt(24, 2048, 16)
		m.Vocab = 51200
		p := spec.Plan{DP: 2 * pow("dp", 3), TP: pow("tp", 3), PP: pow("pp", 2), MicroBatch: pow("mb", 3), AccumSteps: 8, Precision: spec.BF16}
		bytes := func(change func(*spec.Plan)) float64 {
			q := p
			change(&q)
			b, err := Estimate(spec.Config{Model: m, Plan: q})
			if err != nil {
				t.Fatal(err)
			}
			if v := b.Total(); !(v > 0) || math.IsInf(v, 0) {
				t.Fatalf("%s: %g bytes", q, v)
			}
			return b.Total()
		}
		base := bytes(func(*spec.Plan) {})
		for name, change := range map[string]func(*spec.Plan){
			"zero=1":              func(q *spec.Plan) { q.ZeRO = 1 },
			"selective recompute": func(q *spec.Plan) { q.Recompute = spec.RecomputeSelective },
			"sequence parallel":   func(q *spec.Plan) { q.SequenceParallel = q.TP > 1 },
			"offload":             func(q *spec.Plan) { q.Offload, q.ZeRO = spec.OffloadOptimizer, 1 },
		} {
			if got := bytes(change); got > base*(1+1e-9) {
				t.Fatalf("%s: %s needs %g bytes, before %g", name, p, got, base)
			}
		}
		if more := bytes(func(q *spec.Plan) { q.MicroBatch *= 2 }); more < base {
			t.Fatalf("twice the micro-batch of %s needs %g bytes, before %g", p, more, base)
		}
	})
}

func TestOpaque(t *testing.T) {
	m := spec.Model{Name: "ResNet-50", Kind: spec.Opaque, ParamCount: 25.6e6, FLOPsPerSample: 8.2e9}
	b := estimate(t, spec.Config{Model: m, Plan: spec.Plan{MicroBatch: 256, AccumSteps: 1, Precision: spec.FP16}})
	if g := b.Total() / GiB; g < 15 || g > 35 {
		t.Errorf("%.1f GiB at batch 256, known to take a good part of a 32 GiB device", g)
	}
	_, err := Estimate(spec.Config{Model: spec.Model{Name: "nothing"}})
	if !errors.Is(err, perfmodel.ErrNotCovered) || !strings.Contains(err.Error(), "nothing") {
		t.Errorf("error %v", err)
	}
}

func TestGuessShape(t *testing.T) {
	g, ok := GuessShape(spec.Model{Name: "x", Kind: spec.Decoder, ParamCount: 174.6e9, Vocab: 51200})
	if !ok || g.Layers < 85 || g.Layers > 105 || g.Hidden < 11500 || g.Hidden > 13000 {
		t.Errorf("175 billion parameters are guessed as %d x %d", g.Layers, g.Hidden)
	}
	whole := gpt(24, 2048, 16)
	for _, m := range []spec.Model{whole, {Name: "cnn", Kind: spec.Opaque, ParamCount: 1e8, FLOPsPerSample: 1e9, SeqLen: 224}, {Name: "empty"}} {
		if got, ok := GuessShape(m); ok || got != m {
			t.Errorf("%s was changed to %+v", m.Name, got)
		}
	}
}

// TestBreakdownFields: add has every count of bytes, and Total all that are not counted in others or on the host.
func TestBreakdownFields(t *testing.T) {
	var b Breakdown
	v := reflect.ValueOf(&b).Elem()
	n := 0
	for i := range v.NumField() {
		if f := v.Field(i); f.Kind() == reflect.Float64 && v.Type().Field(i).Name != "LogSD" {
			f.SetFloat(1)
			n++
		}
	}
	if got := b.Total(); got != float64(n-2) {
		t.Errorf("a total of %g, want all but Outside and HostBytes: %d", got, n-2)
	}
	same := b
	if b.add(&same, -1); b != (Breakdown{}) {
		t.Errorf("add leaves fields out: %+v", b)
	}
}

func TestBreakdownString(t *testing.T) {
	b := Breakdown{Parameters: 16.2 * GiB, Optimizer: 48.6 * GiB, Buffers: 0.01 * GiB}
	if got, want := b.String(), "optimizer 48.6, parameters 16.2"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

func BenchmarkEstimate(b *testing.B) {
	m := gpt(96, 12288, 96)
	m.Vocab = 51200
	c := spec.Config{Model: m, Plan: spec.Plan{DP: 16, TP: 8, PP: 8, MicroBatch: 1, AccumSteps: 64, ZeRO: 1}}
	b.Run("path=config", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := Estimate(c); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("path=prepared", func(b *testing.B) {
		b.ReportAllocs()
		e, _ := For(c)
		for b.Loop() {
			e.Bytes(c.Plan)
		}
	})
}

// TestCountsAgreeWithTheModel: the parts of the estimate add up to the parameters of spec.Model, plus norms of
// four hidden widths per layer.
func TestCountsAgreeWithTheModel(t *testing.T) {
	t5, moe := gpt(24, 1024, 16), gpt(32, 4096, 32)
	t5.Kind, t5.HeadDim, t5.Vocab = spec.EncoderDecoder, 128, 32128
	moe.Experts, moe.ExpertsPerToken, moe.ExpertFFN, moe.SharedExperts, moe.DenseLayers = 8, 2, 2048, 1, 3
	moe.KVHeads, moe.Vocab, moe.TiedEmbeddings = 8, 32000, false
	latent := moe
	latent.KVHeads, latent.HeadDim, latent.QRank, latent.KVRank = 0, 128, 1536, 512
	uncompressed := latent
	uncompressed.QRank = 0
	for _, m := range []spec.Model{gpt(24, 1024, 16), t5, moe, latent, uncompressed, nemotronH(), nemotron3(), mamba2(), maverick(), qwenVL()} {
		w := weightsOf(m)
		near(t, m.Name, w.total(), m.Params()+float64(4*m.Layers*m.Hidden), 1e-12)
	}
}

// TestTiedEmbeddingsTakeTwoCopiesOnAPipeline: one copy on the first stage and one on the last.
func TestTiedEmbeddingsTakeTwoCopiesOnAPipeline(t *testing.T) {
	m := gpt(8, 1024, 16)
	m.Vocab = 50000
	w := weightsOf(m)
	embed := float64(50000 * 1024)
	one := spec.Plan{}.Normal()
	near(t, "one device", w.onDevice(&one, span{dense: 8}, 0, 1).dense, 8*12*1024*1024+4*8*1024+embed, 1e-12)
	two := spec.Plan{PP: 2}.Normal()
	for stage := range 2 {
		near(t, fmt.Sprintf("stage %d of 2", stage), w.onDevice(&two, span{dense: 4}, stage, 1).dense, 4*12*1024*1024+4*4*1024+embed, 1e-12)
	}
}

// TestKeyValueHeadsAreReplicated: with twice as many TP ranks as key/value heads, each rank holds one whole
// head, in weights and in activations.
func TestKeyValueHeadsAreReplicated(t *testing.T) {
	m := gpt(8, 1024, 16)
	kept := func(kv, tp int) (dense, whole float64) {
		m.KVHeads = kv
		e, err := For(spec.Config{Model: m})
		if err != nil {
			t.Fatal(err)
		}
		p := spec.Plan{TP: tp}.Normal()
		whole, _ = e.layerBytes(&p, 100, 2, 1, e.w.dense[0])
		return e.w.onDevice(&p, span{dense: 8}, 0, 1).dense, whole
	}
	dense, whole := kept(4, 8)
	wantDense, wantWhole := kept(8, 8) // one head per rank either way
	near(t, "weights", dense, wantDense, 1e-12)
	near(t, "activations", whole, wantWhole, 1e-12)
}

// TestLatentActivations: every rank keeps the compressed tensors, those of queries and of keys and values before and
// after their norms, and its part of the heads' ones.
func TestLatentActivations(t *testing.T) {
	m := gpt(8, 1024, 16) // heads of 64
	kept := func(tp int) float64 {
		e, err := For(spec.Config{Model: m})
		if err != nil {
			t.Fatal(err)
		}
		p := spec.Plan{TP: tp}.Normal()
		whole, _ := e.layerBytes(&p, 100, 2, 1, e.w.dense[0])
		return whole
	}
	one, four := kept(1), kept(4)
	m.QRank, m.KVRank = 384, 128
	near(t, "on one rank", kept(1)-one, 100*2*(2*384+2*128+64+2*16*(64+64)+2*1024-4*1024), 1e-12)
	near(t, "on four ranks", kept(4)-four, 100*2*(2*384+2*128+64+(2*16*(64+64)+2*1024-4*1024)/4.), 1e-12)
}

// TestEmbeddingAndHeadCountAsLayers: 126 layers on 16 stages, as for Llama 3.1 405B, give 7 layers on the first
// and the last stage and 8 on the others.
func TestEmbeddingAndHeadCountAsLayers(t *testing.T) {
	e, err := For(spec.Config{Model: gpt(126, 16384, 128)})
	if err != nil {
		t.Fatal(err)
	}
	p := spec.Plan{PP: 16}.Normal()
	total := 0.0
	for stage := range 16 {
		total += e.layersOn(&p, stage).all()
	}
	if total != 126 || e.layersOn(&p, 0).all() != 7 || e.layersOn(&p, 1).all() != 8 || e.layersOn(&p, 15).all() != 7 {
		t.Errorf("%g layers in all, %g on the first stage, %g on the second, %g on the last; want 126, 7, 8, 7",
			total, e.layersOn(&p, 0), e.layersOn(&p, 1), e.layersOn(&p, 15))
	}
}

// TestEstimateOfWorker: Pacer's own worker keeps fp32 weights, gradients and two moments. With the optimizer on
// the host, it keeps a copy of weights and gradients there. Under autocast the graph holds 16-bit copies of the
// weights. With one micro-batch no gradient is there yet at the loss, and with a batch so small that all gradients are
// larger than the activations, no activation at the end of the backward pass.
func TestEstimateOfWorker(t *testing.T) {
	m := gpt(16, 2048, 16)
	m.Vocab = 128256
	n := m.Params()
	state := func(plan string) Breakdown {
		p, err := spec.ParsePlan(plan)
		if err != nil {
			t.Fatal(err)
		}
		return estimate(t, spec.Config{Model: m, Plan: p, Framework: spec.FrameworkWorker})
	}
	b := state("mb=1,ga=2,precision=bf16")
	near(t, "bf16 states", b.Parameters+b.Gradients+b.Optimizer, 18*n, 0.01)
	whole := b.Total()
	for plan, want := range map[string]Breakdown{
		"mb=1,precision=bf16":             {At: AtLoss},
		"dp=2,mb=1,precision=bf16":        {At: AtLoss, Gradients: 4 * n}, // in buckets
		"dp=2,zero=3,mb=1,precision=bf16": {At: AtLoss},
	} {
		if b := state(plan); b.At != want.At || math.Abs(b.Gradients-want.Gradients) > 0.01*n {
			t.Errorf("%s: %g bytes of gradients at the %s, want %g at the %s", plan, b.Gradients, b.At, want.Gradients, want.At)
		}
	}
	near(t, "one micro-batch", state("mb=1,precision=bf16").Total(), whole-4*n, 0.001)
	m.SeqLen = 64
	if b := state("mb=1,precision=bf16"); b.At != AtFirst || b.Activations != 0 || math.Abs(b.Gradients-4*n) > 0.01*n {
		t.Errorf("short sequences: %g bytes of gradients, %g of activations at the %s", b.Gradients, b.Activations, b.At)
	}
	m.SeqLen = 2048
	b = state("mb=1,ga=2,precision=fp32")
	near(t, "fp32 states", b.Parameters+b.Gradients+b.Optimizer, 16*n, 0.01)
	b = state("mb=1,precision=bf16,offload=optimizer")
	near(t, "host", b.HostBytes, 16*n, 0.01)
	b = state("mb=16,precision=bf16")
	near(t, "loss", b.Working, 16*2048*(12*128256+2*2*2048), 1e-9)
}
