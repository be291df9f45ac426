package memory

import (
	"math"
	"testing"

	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// gated is a dense model with a gated MLP of width 4096.
func gated(layers int) spec.Model {
	m := gpt(layers, 1024, 8)
	m.GatedMLP = true
	return m
}

// latentMixed is mixed with latent attention: 8 heads of 128, with rotated parts of 64.
func latentMixed() spec.Model {
	m := mixed()
	m.HeadDim, m.QRank, m.KVRank = 128, 256, 128
	return m
}

// TestModulesFree counts, per token, the tensors of each module that a layer keeps no longer. h is 1024.
func TestModulesFree(t *testing.T) {
	const (
		n, h = 100., 1024.
		core = 4 * 8        // the log-sums of 8 heads, in fp32
		mlp  = 2 * 3 * 4096 // both inputs and the output of the gated activation, in 16 bits
		moe  = 2*2*(h+3*512) + 2*3*512 + 19*8
		act  = 2 * 2 * 512 // the output of the activation, of two copies
		one  = 2 * 3 * 512 // the shared expert
		norm = 2 * h
		up   = 2 * 8 * (2*(128+64) + 128) // queries and keys with rotated parts, and values
	)
	bf16, fp8, split := spec.Plan{Precision: spec.BF16}, spec.Plan{Precision: spec.FP8}, spec.Plan{Precision: spec.BF16, TP: 2, SequenceParallel: true}
	lora := gated(4)
	lora.Adapter = spec.Adapter{Kind: spec.LoRA, Rank: 8, Modules: spec.AdaptQKV}
	for _, c := range []struct {
		model     spec.Model
		plan      spec.Plan
		framework string
		recompute string
		freed     float64 // bytes per token
	}{
		{gated(4), bf16, "Megatron Core@0.12", "core", core},
		{gated(4), bf16, "Megatron Core@0.12", "mlp", mlp + norm}, // with the output of the fused norm
		{gated(4), bf16, "Megatron Core@0.12", "core+mlp", core + mlp + norm},
		{gated(4), bf16, "Megatron Core@0.12", "layernorm", 0}, // both are fused
		{gated(4), bf16, "Megatron Core@0.12", "moe+moe_act+shared_experts+mla_up_proj", 0},
		{gated(4), split, "Megatron Core@0.12", "mlp", mlp/2 + norm/2},
		{gated(4), fp8, "Megatron Core@0.12", "mlp", (2*2+1)*4096 + h},
		{gated(4), bf16, "FSDP", "mlp", mlp},
		{gated(4), bf16, "FSDP", "layernorm", 2 * norm},
		{gated(4), bf16, "FSDP", "mlp+layernorm", mlp + 2*norm},
		// Frozen multiplications keep no input, but the module does.
		{lora, bf16, "FSDP", "mlp", 2*2*4096 - 2*h},

		{mixed(), bf16, "Megatron Core@0.12", "core", core},
		{mixed(), bf16, "Megatron Core@0.12", "mlp", 0}, // in a layer with experts
		{mixed(), bf16, "Megatron Core@0.12", "moe", moe},
		{mixed(), bf16, "Megatron Core@0.12", "moe_act", act},
		{mixed(), bf16, "Megatron Core@0.12", "shared_experts", one},
		{mixed(), bf16, "Megatron Core@0.12", "layernorm", norm}, // before the experts
		{mixed(), bf16, "Megatron Core@0.12", "mla_up_proj", 0},
		{mixed(), bf16, "Megatron Core@0.12", "moe_act+shared_experts+layernorm+core", act + one + norm + core},
		{mixed(), bf16, "Megatron Core@0.12", "moe+moe_act+shared_experts", moe},
		{mixed(), bf16, "Megatron Core@0.12", "moe+layernorm", moe + norm},
		{mixed(), split, "Megatron Core@0.12", "moe", moe / 2},
		{mixed(), split, "Megatron Core@0.12", "moe_act+layernorm", act/2 + norm/2},
		// The module keeps its input in 16 bits, the layer without it in 8.
		{mixed(), fp8, "Megatron Core@0.12", "moe", 2*(h+5*512) + 5*512 + 19*8 - h},
		{mixed(), fp8, "Megatron Core@0.12", "moe_act", 2 * 512},
		{mixed(), fp8, "Megatron Core@0.12", "layernorm", h},

		{latentMixed(), bf16, "Megatron Core@0.12", "mla_up_proj", up},
		{latentMixed(), bf16, "Megatron Core@0.12", "layernorm", 2 * norm},
		{latentMixed(), bf16, "Megatron Core@0.12", "mla_up_proj+moe", up + moe},
		{latentMixed(), split, "Megatron Core@0.12", "mla_up_proj", up / 2},
	} {
		e := prepared(t, c.model, c.framework+" recompute="+c.recompute)
		b := e.w.dense
		if c.model.Experts > 0 {
			b = e.w.moe
		}
		p, r := c.plan.Normal(), float64(max(c.plan.TP, 1))
		none := e.layerPeak(&p, n, 2, r, b[0]).kept
		p.Recompute = spec.RecomputeSelective
		some := e.layerPeak(&p, n, 2, r, b[0]).kept
		if got := (none - some) / n; math.Abs(got-c.freed) > 1e-6 {
			t.Errorf("%s, %s, recompute=%s frees %g bytes per token of %g, want %g", c.model.Name, c.framework, c.recompute, got, none/n, c.freed)
		}
	}
}

// TestModulesOneAtATime: the backward pass of a layer has the tensors of one module again, those of the largest.
func TestModulesOneAtATime(t *testing.T) {
	p := spec.Plan{Precision: spec.BF16, Recompute: spec.RecomputeSelective}.Normal()
	for modules, most := range map[string]float64{"moe_act": 2 * 2 * 512, "moe_act+shared_experts": 2 * 3 * 512, "core": 4 * 8, "core+moe_act": 2 * 2 * 512} {
		e := prepared(t, mixed(), "Megatron Core@0.12 recompute="+modules)
		got := e.layerPeak(&p, 100, 2, 1, e.w.moe[0]).backward - e.widest(&p, 100, 2, e.w.moe[0])
		near(t, modules, got, 100*most, 1e-12)
	}
}

// TestOffloadedActivations: those of two layers stay on the device, with the input of the stage; the rest is on the
// host. A stage of two layers and four micro-batches in flight has eight.
func TestOffloadedActivations(t *testing.T) {
	const n, h = 2048., 1024.
	layer := n * (4*2*h + 2*4*h + 4*8 + 2*3*4096) // norms and their outputs, attention, MLP
	for _, c := range []struct {
		layers       int
		plan         spec.Plan
		device, host float64 // layers
		layer        float64
	}{
		{8, spec.Plan{}, 2, 6, layer},
		{8, spec.Plan{PP: 4, AccumSteps: 8}, 2, 6, layer},
		{2, spec.Plan{}, 2, 0, layer},
		{1, spec.Plan{}, 1, 0, layer},
		{8, spec.Plan{Recompute: spec.RecomputeFull}, 2, 6, 2 * n * h},
	} {
		c.plan.MicroBatch, c.plan.Precision = 1, spec.BF16
		e := prepared(t, gated(c.layers), "Megatron Core@0.12 activations=offloaded")
		b := e.Stages(c.plan)[0]
		near(t, c.plan.String()+" device", b.Activations, c.device*c.layer+2*n*h, 1e-12)
		if want := c.host * c.layer; math.Abs(b.HostBytes-want) > 1 {
			t.Errorf("%s of %d layers: %g bytes on the host, want %g", c.plan, c.layers, b.HostBytes, want)
		}
		kept := prepared(t, gated(c.layers), "Megatron Core@0.12")
		near(t, c.plan.String()+" in total", b.Activations+b.HostBytes, kept.Stages(c.plan)[0].Activations, 1e-12)
		p := c.plan.Normal()
		near(t, c.plan.String()+" each way", e.Offloaded(&p, 0), c.layer, 1e-12)
	}
	e := prepared(t, gated(8), "Megatron Core@0.12")
	p := spec.Plan{MicroBatch: 1}.Normal()
	if got := e.Offloaded(&p, 0); got != 0 {
		t.Errorf("a stack that keeps activations on the device sends %g bytes to the host", got)
	}
}

// TestOffloadedBeforeExperts: the backward pass of a leading dense layer finds as much on the device as that of the
// layers behind it, which are on the host already.
func TestOffloadedBeforeExperts(t *testing.T) {
	e := prepared(t, mixed(), "Megatron Core@0.12 activations=offloaded")
	p := spec.Plan{MicroBatch: 1, Precision: spec.BF16}.Normal()
	b := e.Plan(p)
	if want := e.layerPeak(&p, 512, 2, 1, e.w.dense[0]).backward; b.Working != want || b.At != AtDense {
		t.Errorf("working set of %g bytes at %q, want %g at the dense layer", b.Working, b.At, want)
	}
}

// TestOffloadedExperts: only what routed experts keep goes to the host, of all layers with experts but two: of each of two
// copies of a token the input in 16 bits, and the inner activations of width 512. What is recomputed does not.
func TestOffloadedExperts(t *testing.T) {
	const n, h = 512., 1024.
	m := mixed()
	for _, c := range []struct {
		recompute string
		plan      spec.Plan
		layer     float64
	}{
		{"core", spec.Plan{}, n * 2 * 2 * (h + 3*512)},
		{"core", spec.Plan{TP: 2, SequenceParallel: true}, n * 2 * 2 * (h + 3*512) / 2},
		{"core", spec.Plan{Recompute: spec.RecomputeSelective}, n * 2 * 2 * (h + 3*512)},
		{"moe_act", spec.Plan{Recompute: spec.RecomputeSelective}, n * 2 * 2 * (h + 2*512)},
		{"moe", spec.Plan{Recompute: spec.RecomputeSelective}, 0},
		{"operators", spec.Plan{Recompute: spec.RecomputeSelective}, 0},
		{"core", spec.Plan{Recompute: spec.RecomputeFull}, 0},
	} {
		c.plan.MicroBatch, c.plan.Precision = 1, spec.BF16
		name := c.plan.String() + " " + c.recompute
		on := prepared(t, m, "Megatron Core@0.12 recompute="+c.recompute)
		kept := on.Stages(c.plan)[0]
		e := prepared(t, m, "Megatron Core@0.12 activations=experts recompute="+c.recompute)
		b, p := e.Stages(c.plan)[0], c.plan.Normal()
		if want := (4 - 1 - 2) * c.layer; math.Abs(b.HostBytes-want) > 1 {
			t.Errorf("%s: %g bytes on the host, want %g", name, b.HostBytes, want)
		}
		if got := b.Activations + b.HostBytes; math.Abs(got-kept.Activations) > 1 {
			t.Errorf("%s: %g bytes in total, want %g", name, got, kept.Activations)
		}
		if got, want := e.Offloaded(&p, 0), 3*c.layer/4; math.Abs(got-want) > 1 {
			t.Errorf("%s: %g bytes each way, want %g in the mean over four layers", name, got, want)
		}
	}
}
