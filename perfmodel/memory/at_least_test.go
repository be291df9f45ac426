package memory

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/perfmodel/spec/stack"
)

// TestAtLeast: of any model, stack and plan the bounds hold for every micro-batch and in all modes of recomputation, and the
// least spread too. Where states are most of the memory the bound is near it. A larger micro-batch needs no less memory.
func TestAtLeast(t *testing.T) {
	opaque := spec.Model{Name: "ResNet-50", Kind: spec.Opaque, ParamCount: 25.6e6, FLOPsPerSample: 8.2e9}
	encoderDecoder := gpt(24, 1024, 16)
	encoderDecoder.Kind, encoderDecoder.Vocab = spec.EncoderDecoder, 32128
	models := []spec.Model{gpt(24, 2048, 16), gated(32), mixed(), latentMixed(), nemotronH(), maverick(), qwenVL(), opaque, encoderDecoder}
	stacks := append(slices.Clone(stack.Names()), "")
	rapid.Check(t, func(t *rapid.T) {
		pow := func(name string, most int) int { return 1 << rapid.IntRange(0, most).Draw(t, name) }
		m := rapid.SampledFrom(models).Draw(t, "model")
		switch rapid.IntRange(0, 3).Draw(t, "training") {
		case 0:
			m.Adapter = spec.Adapter{Kind: spec.LoRA, Rank: 16}
		case 1:
			m.Adapter = spec.Adapter{Kind: spec.QLoRA, Rank: 16}
		}
		if !m.HasShape() {
			m.Adapter = spec.Adapter{}
		}
		a := spec.Accelerator{Arch: rapid.SampledFrom([]string{"Volta", "Ampere", "Hopper", "Blackwell"}).Draw(t, "architecture")}
		p := spec.Plan{DP: pow("dp", 6), TP: pow("tp", 3), PP: pow("pp", 4), CP: pow("cp", 2), MicroBatch: pow("mb", 2), AccumSteps: pow("ga", 5),
			ZeRO:          rapid.IntRange(0, 3).Draw(t, "zero"),
			Offload:       rapid.SampledFrom([]spec.Offload{spec.OffloadNone, spec.OffloadOptimizer, spec.OffloadParams}).Draw(t, "offload"),
			Precision:     rapid.SampledFrom([]spec.Precision{spec.BF16, spec.FP16, spec.FP32, spec.FP8, spec.MXFP8}).Draw(t, "precision"),
			VirtualStages: pow("vp", 2),
			Schedule:      rapid.SampledFrom([]spec.Schedule{spec.ScheduleDefault, spec.ScheduleGPipe, spec.ScheduleZBV}).Draw(t, "schedule")}
		if p.EP = 1; m.Experts > 0 {
			p.EP = min(pow("ep", 5), m.Experts)
		}
		c := spec.Config{Model: m, Accelerator: a, Framework: rapid.SampledFrom(stacks).Draw(t, "stack"), Plan: p, AloneStage: max(rapid.IntRange(-2, p.PP).Draw(t, "alone"), 0)}
		e, err := For(c)
		if err != nil {
			t.Fatal(err)
		}
		least, host := e.AtLeast(&p)
		perReplica := p.MicroBatch * p.AccumSteps
		for _, p.Recompute = range []spec.Recompute{spec.RecomputeNone, spec.RecomputeSelective, spec.RecomputeFull} {
			for _, p.SequenceParallel = range []bool{false, true} {
				from := 0.0
				for p.MicroBatch = 1; p.MicroBatch <= perReplica; p.MicroBatch *= 2 {
					p.AccumSteps = perReplica / p.MicroBatch
					b := e.Plan(p)
					device := b.Total() / Budget(1, b.LogSD)
					if !(least <= device*(1+1e-9)) || !(host <= b.HostBytes*(1+1e-9)) {
						t.Fatalf("%s on %q, %s: at least %g bytes of a device, %g on the host; estimated %g, %g", m.Name, c.Framework, p, least, host, device, b.HostBytes)
					}
					if GrowsWithBatch(&p) && !(from <= device*(1+1e-9)) {
						t.Fatalf("%s on %q, %s: at least %g bytes of a device by a smaller micro-batch, estimated %g", m.Name, c.Framework, p, from, device)
					}
					near := 1 - 1e-9
					if e.rest != nil {
						near = 0.5 // the spread of several stacks is not bounded as tightly
					}
					if states := (b.Parameters + b.Optimizer) / Budget(1, b.LogSD); p.PP == 1 && c.Framework != "" && !(least >= states*near) {
						t.Fatalf("%s on %q, %s: at least %g bytes of a device, of which states are %g", m.Name, c.Framework, p, least, states)
					}
					from = e.AtLeastFrom(&p)
					if e.rest == nil && !(from >= device*(1-1e-9)) {
						t.Fatalf("%s on %q, %s: at least %g bytes of a device, estimated %g", m.Name, c.Framework, p, from, device)
					}
				}
			}
		}
	})
}
