package memory

import (
	"testing"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/perfmodel/spec/stack"
)

// mixed has a dense layer, then three with eight experts.
func mixed() spec.Model {
	return spec.Model{Name: "mixed", Kind: spec.Decoder, Layers: 4, Hidden: 1024, FFN: 4096, Heads: 8, SeqLen: 512, GatedMLP: true,
		Experts: 8, ExpertsPerToken: 2, ExpertFFN: 512, SharedExperts: 1, DenseLayers: 1}
}

func prepared(t testing.TB, m spec.Model, framework string) Estimator {
	t.Helper()
	e, err := Prior().For(spec.Config{Model: m, Framework: framework, Accelerator: spec.Accelerator{Arch: "Blackwell"}})
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// TestLayersByStage: leading dense layers are on the first chunks of the model.
func TestLayersByStage(t *testing.T) {
	m := mixed()
	m.Layers, m.DenseLayers = 16, 3
	e := prepared(t, m, "Megatron Core@0.12")
	for _, c := range []struct {
		plan  spec.Plan
		dense []float64
	}{
		{spec.Plan{PP: 1}, []float64{3}},
		{spec.Plan{PP: 4}, []float64{3, 0, 0, 0}},
		{spec.Plan{PP: 8}, []float64{2, 1, 0, 0, 0, 0, 0, 0}},
		{spec.Plan{PP: 4, VirtualStages: 4}, []float64{1, 1, 1, 0}},
		{spec.Plan{PP: 4, Schedule: spec.ScheduleZBV}, []float64{2, 1, 0, 0}},
		{spec.Plan{PP: 4, AccumSteps: 8, Schedule: spec.ScheduleDualPipeV}, []float64{2, 1, 0, 0}},
	} {
		p := c.plan.Normal()
		for stage, want := range c.dense {
			got := e.layersOn(&p, stage)
			if got.dense != want || got.all() != float64(16/p.PP) {
				t.Errorf("%s, stage %d: %+v, want %g dense of %d", p, stage, got, want, 16/p.PP)
			}
		}
	}
}

// TestStagesOfExperts: the second of two stages has experts only; its expert weights are those of two layers, the
// first stage's those of one.
func TestStagesOfExperts(t *testing.T) {
	e := prepared(t, mixed(), "Megatron Core@0.12")
	p := spec.Plan{DP: 4, PP: 2, EP: 4, MicroBatch: 1, AccumSteps: 4}.Normal()
	const expert = 3 * 1024 * 512
	for stage, layers := range []float64{1, 2} {
		o := e.own(&p, e.layersOn(&p, stage), stage)
		near(t, "experts", o.expert, layers*8/4*expert, 1e-12)
	}
	first, second := e.own(&p, e.layersOn(&p, 0), 0).dense, e.own(&p, e.layersOn(&p, 1), 1).dense
	near(t, "the dense MLP in place of a shared expert and a router", first-second, 3*1024*4096-expert-8*1024, 1e-12)
}

// TestExpertActivations: by hand, with probabilities applied inside: two norms with inputs and outputs, queries, keys,
// values and output; two routed copies with input and three inner activations; those of the shared expert; the
// router. Before release 0.12, each copy keeps its output too.
func TestExpertActivations(t *testing.T) {
	p := spec.Plan{EP: 8, DP: 8}.Normal()
	for release, output := range map[string]float64{"Megatron Core@0.12": 0, "Megatron Core@0.11": 2 * 2 * 1024} {
		e := prepared(t, mixed(), release)
		got, _ := e.layerBytes(&p, 1, 2, 1, e.w.moe[0])
		near(t, release, got, 4*2*1024+4*2*1024+2*2*(1024+3*512)+2*3*512+19*8+output, 1e-12)
	}
}

// TestHeadOfMegatronCore: at the peak, the head's backward pass holds the gradient of the logits in their place, the
// gradient of its input and an empty gradient of its weight, next to the inputs of the last norm and of the head; with
// sequence parallelism the head's input is gathered again. The distinct weights of the layers have empty gradients
// too.
func TestHeadOfMegatronCore(t *testing.T) {
	m := gpt(4, 1024, 8)
	m.GatedMLP, m.Vocab, m.TiedEmbeddings = true, 128000, false
	e := prepared(t, m, "Megatron Core@0.12")
	n := 2048.0
	b := e.Plan(spec.Plan{MicroBatch: 1, Precision: spec.BF16})
	near(t, "head", b.Working, 2*n*128000+2*n*1024+2*128000*1024+2*2*n*1024, 1e-12)
	near(t, "empty gradients", b.Buffers, 2*(4*1024*1024+3*1024*4096), 1e-12)
	b = e.Plan(spec.Plan{TP: 4, SequenceParallel: true, MicroBatch: 1, Precision: spec.BF16})
	near(t, "head of four", b.Working, 2*n*128000/4+2*2*n*1024+2*128000*1024/4+2*2*n*1024/4, 1e-12)
}

// TestVocabularyIsPadded: rows of the embedding are a multiple of 128 per tensor parallel rank.
func TestVocabularyIsPadded(t *testing.T) {
	m := gpt(4, 1024, 8)
	m.Vocab = 50257
	for tp, want := range map[int]float64{1: 50304, 8: 51200} {
		e := prepared(t, m, "Megatron Core@0.12")
		near(t, "vocabulary", 50257*e.padded(&spec.Plan{TP: tp}), want, 1e-12)
	}
	e := prepared(t, m, "FSDP")
	near(t, "not with FSDP", e.padded(&spec.Plan{TP: 1}), 1, 0)
}

// TestHeadsForTokens: context parallelism that exchanges heads keeps one more output of attention per layer.
func TestHeadsForTokens(t *testing.T) {
	p := spec.Plan{CP: 4}.Normal()
	ring, a2a := prepared(t, gpt(4, 1024, 8), "Megatron Core@0.12"), prepared(t, gpt(4, 1024, 8), "Megatron Core@0.12 cp=a2a")
	less, _ := ring.layerBytes(&p, 100, 2, 1, ring.w.dense[0])
	more, _ := a2a.layerBytes(&p, 100, 2, 1, a2a.w.dense[0])
	near(t, "difference", more-less, 100*2*1024, 1e-12)
}

// TestKinds: allocated memory is the counted tensors, reserved adds the allocator's unused blocks, and device adds
// context and communicators.
func TestKinds(t *testing.T) {
	e := prepared(t, gpt(16, 2048, 16), "torchtitan")
	p := spec.Plan{DP: 8, ZeRO: 3, MicroBatch: 1, Precision: spec.BF16}
	b := e.Plan(p)
	if !(b.Allocated() < b.Reserved() && b.Reserved() < b.Total()) {
		t.Errorf("allocated %g, reserved %g, device %g", b.Allocated(), b.Reserved(), b.Total())
	}
	near(t, "device", b.Total()-b.Reserved(), e.k.ContextBytes+e.k.CommunicatorBytes, 1e-9)
	near(t, "allocated", b.Allocated(), b.Parameters+b.Gradients+b.Optimizer+b.Gathered+b.Activations+b.Working+b.Buffers, 1e-12)
	for kind, want := range map[stack.Memory]float64{stack.Allocated: b.Allocated(), stack.Reserved: b.Reserved(), stack.Device: b.Total(), "": b.Reserved()} {
		near(t, string(kind), e.Measured(p, kind), want, 1e-12)
	}
}

// TestCountWithoutEmbeddings: a published count closer to that without embeddings does not scale the parts.
func TestCountWithoutEmbeddings(t *testing.T) {
	m := gpt(8, 14400, 96)
	m.Vocab, m.ParamCount = 250000, 20e9
	w := weightsOf(m)
	near(t, "20 billion without embeddings", w.total(), 12*8*14400*14400+4*8*14400+250000*14400, 1e-12)
}

// TestVerdict: with nothing recorded a plan fits only if it does without recomputation, and exceeds the memory only if
// it does with full recomputation.
func TestVerdict(t *testing.T) {
	c := spec.Config{Model: gpt(32, 4096, 32), Framework: "Megatron Core@0.12", Plan: spec.Plan{TP: 8, MicroBatch: 8, AccumSteps: 1}}
	e := prepared(t, c.Model, c.Framework)
	none := e.Plan(c.Plan)
	full := c.Plan
	full.Recompute = spec.RecomputeFull
	most := e.Plan(full)
	for _, x := range []struct {
		bytes          float64
		recorded, open Verdict
	}{
		{2 * none.Total(), Fits, Fits}, {(none.Total() + most.Total()) / 2, Exceeds, Unsure}, {most.Total() / 2, Exceeds, Exceeds},
	} {
		c.Accelerator.MemBytes = x.bytes
		if got := none.Verdict(x.bytes); got != x.recorded {
			t.Errorf("%.1f GiB, no recomputation: %s, want %s", x.bytes/GiB, got, x.recorded)
		}
		if got, p := e.Open(&c, &none, "dp,recompute"); got != x.open || p < 0 || p > 1 {
			t.Errorf("%.1f GiB, not recorded: %s with probability %g, want %s", x.bytes/GiB, got, p, x.open)
		}
	}
	if n := len(Alternatives(&spec.Config{Plan: spec.Plan{DP: 2, MicroBatch: 4, ZeRO: 1}, Framework: "InternEvo"}, "recompute,zero_stage,micro_batch")); n != 3*3*3 {
		t.Errorf("%d alternatives, want 27", n)
	}
}

// TestAlternativesOfUse: an unstated stack has only the alternatives of stacks that are plausible under the plan. FSDP may
// recompute whole blocks, but has ZeRO 3 only.
func TestAlternativesOfUse(t *testing.T) {
	c := spec.Config{Model: gpt(32, 4096, 32), Accelerator: spec.Accelerator{Arch: "Hopper"}}
	for _, x := range []struct {
		plan       spec.Plan
		unrecorded string
		want       int
	}{
		{spec.Plan{DP: 8}, "", 1}, {spec.Plan{DP: 8, ZeRO: 3}, "", 2}, {spec.Plan{DP: 8}, "zero_stage", 4}, {spec.Plan{TP: 8, Precision: spec.FP8}, "", 1},
	} {
		c.Plan = x.plan
		c.Plan.MicroBatch, c.Plan.Recompute = 64, spec.RecomputeSelective
		if got := Alternatives(&c, x.unrecorded); len(got) != x.want {
			t.Errorf("%s, %q: alternatives %v, want %d", c.Plan, x.unrecorded, got, x.want)
		}
	}
	e, err := Prior().For(c)
	if err != nil {
		t.Fatal(err)
	}
	need := e.Plan(c.Plan)
	c.Accelerator.MemBytes = need.Total() / 3
	if got, p := e.Open(&c, &need, ""); got != Exceeds {
		t.Errorf("%s with probability %g on a third of the memory", got, p)
	}
}

// TestActivationsOfFP8: inputs of multiplications take one byte instead of two: of QKV and MLP, and of its second
// multiplication; that of the output projection is next to attention's own output.
func TestActivationsOfFP8(t *testing.T) {
	const n, h, f = 100, 1024, 4096
	for framework, saved := range map[string]float64{"Megatron Core@0.12": n * (2*h + f - h), "torchtitan": 0} {
		m := gpt(4, h, 8)
		m.GatedMLP = true
		e := prepared(t, m, framework)
		half, eight := spec.Plan{Precision: spec.BF16}.Normal(), spec.Plan{Precision: spec.FP8}.Normal()
		more, _ := e.layerBytes(&half, n, 2, 1, e.w.dense[0])
		less, _ := e.layerBytes(&eight, n, 2, 1, e.w.dense[0])
		if more-less != saved {
			t.Errorf("%s: fp8 saves %g bytes, want %g", framework, more-less, saved)
		}
	}
}

// TestImbalance: twice the mean on the busiest device is twice the copies of the routed experts, and no more router, shared
// expert, parameters or dense layers; 1, or a device with all experts, changes nothing.
func TestImbalance(t *testing.T) {
	for _, framework := range []string{"Megatron Core@0.12", "FSDP", "torchtitan@2025-06", "Megatron Core recompute=moe_act", "Megatron Core activations=experts-offloaded"} {
		for _, recompute := range []spec.Recompute{spec.RecomputeNone, spec.RecomputeSelective, spec.RecomputeFull} {
			of := func(imbalance float64, perToken, ep, layers int) Breakdown {
				m := mixed()
				m.Layers, m.ExpertFFN, m.ExpertsPerToken, m.Imbalance = layers, 4096, perToken, imbalance
				e := prepared(t, m, framework)
				return e.Plan(spec.Plan{DP: 8, EP: ep, MicroBatch: 1, Precision: spec.BF16, Recompute: recompute})
			}
			if even := of(0, 2, 8, 4); of(1, 2, 8, 4) != even {
				t.Errorf("%s, %s: 1 changes the peak", framework, recompute)
			}
			if even := of(0, 2, 1, 4); of(4, 2, 1, 4) != even {
				t.Errorf("%s, %s: changes the peak of devices with all experts", framework, recompute)
			}
			if even := of(0, 2, 8, 1); of(4, 2, 8, 1) != even {
				t.Errorf("%s, %s: changes the peak of a dense layer", framework, recompute)
			}
			last := 0.0
			for _, x := range []float64{1, 1.25, 2, 4} {
				b := of(x, 2, 8, 4)
				if total := b.Total(); total <= last {
					t.Errorf("%s, %s, imbalance %g: %g bytes, less with less %g", framework, recompute, x, total, last)
				} else {
					last = total
				}
			}
			if twice, four := of(2, 2, 8, 4), of(1, 4, 8, 4); twice != four {
				t.Errorf("%s, %s: twice the mean %+v, twice the experts of a token %+v", framework, recompute, twice, four)
			}
		}
	}
}
