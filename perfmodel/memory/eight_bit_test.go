package memory

import (
	"testing"

	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// on is prepared on devices of another architecture.
func on(t *testing.T, arch string, m spec.Model, framework string) *Estimator {
	t.Helper()
	e, err := Prior().For(spec.Config{Model: m, Framework: framework, Accelerator: spec.Accelerator{Arch: arch}})
	if err != nil {
		t.Fatal(err)
	}
	return &e
}

// TestEightBitWeights counts the bytes of a layer's matrices. Where fp8 needs both layouts, the transposed copy takes as
// much again, so that nothing is saved of 16 bits. Norms, embeddings and head stay in 16 bits.
func TestEightBitWeights(t *testing.T) {
	m := gated(4) // width 1024, MLP of 4096
	m.Vocab, m.TiedEmbeddings = 32768, false
	const matrices, rest = 4 * (4*1024*1024 + 3*1024*4096), 4*4*1024 + 2*32768*1024
	for _, c := range []struct {
		arch, weights string
		precision     spec.Precision
		bytes         float64 // per parameter of matrices
	}{
		{"Hopper", "16bit", spec.FP8, 2},
		{"Hopper", "fp8", spec.FP8, 2},
		{"Hopper", "fp8-once", spec.FP8, 1},
		{"Hopper", "fp8-once", spec.BF16, 2},
		{"Hopper", "fp8-once", spec.FP8Rowwise, 2},
		{"Ada", "fp8", spec.FP8, 2},
		{"CDNA3", "fp8", spec.FP8, 2},
		{"Blackwell", "fp8", spec.FP8, 1},
		{"Blackwell Ultra", "fp8-once", spec.FP8, 1},
		{"Blackwell", "fp8", spec.MXFP8, 2 * 33. / 32},
		{"Blackwell", "fp8-once", spec.MXFP8, 2 * 33. / 32},
		{"Blackwell", "fp8", spec.FP4, 2},
	} {
		name := c.arch + " weights=" + c.weights + " " + string(c.precision)
		e := on(t, c.arch, m, "Megatron Core@0.12 weights="+c.weights)
		b := e.Plan(spec.Plan{MicroBatch: 1, Precision: c.precision})
		near(t, name, b.Parameters, c.bytes*matrices+2*rest, 1e-12)
		near(t, name+": optimizer", b.Optimizer, 12*(matrices+rest), 1e-12)
		near(t, name+": gradients", b.Gradients, 4*(matrices+rest), 1e-12)
		b = e.Plan(spec.Plan{MicroBatch: 1, TP: 4, Precision: c.precision})
		near(t, name+" tp=4", b.Parameters, c.bytes*matrices/4+2*(4*4*1024+2*32768*1024/4), 1e-12)
	}
}

// TestEightBitTransposeOnUse: without a transposed copy, the backward pass of a layer has that of one matrix: the first of
// a gated MLP, or of all experts on the device.
func TestEightBitTransposeOnUse(t *testing.T) {
	p := spec.Plan{MicroBatch: 1, Precision: spec.FP8}
	for _, c := range []struct {
		model spec.Model
		arch  string
		plan  spec.Plan
		bytes float64
	}{
		{gated(4), "Hopper", p, 2 * 1024 * 4096},
		{gpt(4, 1024, 8), "Hopper", p, 1024 * 4096},
		{gated(4), "Blackwell", p, 0},
		{mixed(), "Hopper", spec.Plan{DP: 4, EP: 4, MicroBatch: 1, Precision: spec.FP8}, 2 * 1024 * 4096}, // its dense layer
	} {
		was := on(t, c.arch, c.model, "Megatron Core@0.12").Plan(c.plan)
		got := on(t, c.arch, c.model, "Megatron Core@0.12 weights=fp8-once").Plan(c.plan)
		near(t, c.model.Name+" on "+c.arch, got.Working-was.Working, c.bytes, 1e-9)
	}
	m := mixed()
	w := weightsOf(m)
	if got, want := w.largest(w.moe[0], 1, 2), 8./2*2*1024*512; got != want {
		t.Errorf("experts of one device: %g, want %g", got, want)
	}
}

// TestEightBitFrozenWeights: with adapters the frozen matrices take a byte, the adapters two, and QLoRA four bits whatever
// the stack says.
func TestEightBitFrozenWeights(t *testing.T) {
	m := gated(4)
	m.Vocab = 32768
	const matrices, rest = 4 * (4*1024*1024 + 3*1024*4096), 4*4*1024 + 32768*1024
	lora := adapted(t, m, "lora:16")
	b := on(t, "Hopper", lora, "NeMo@24.09 weights=fp8-once").Plan(spec.Plan{MicroBatch: 1, Precision: spec.FP8})
	near(t, "LoRA", b.Parameters, matrices+2*rest+2*lora.TrainedParams(), 1e-12)
	near(t, "optimizer", b.Optimizer, 12*lora.TrainedParams(), 1e-12)
	qlora := adapted(t, m, "qlora:16")
	p := spec.Plan{MicroBatch: 1, Precision: spec.FP8}
	was, got := on(t, "Hopper", qlora, "NeMo@24.09").Plan(p), on(t, "Hopper", qlora, "NeMo@24.09 weights=fp8-once").Plan(p)
	if got != was {
		t.Errorf("QLoRA: %+v, want %+v", got, was)
	}
}

// TestEightBitGathered: under ZeRO 3 the units are gathered in the bytes in which they are held; frozen shards have them
// too, those of full training are the fp32 masters.
func TestEightBitGathered(t *testing.T) {
	m := gated(4)
	m.Vocab, m.TiedEmbeddings = 1000, true
	const layer, norms, embedding = 4*1024*1024 + 3*1024*4096, 4 * 1024, 1000 * 1024
	p := spec.Plan{DP: 4, ZeRO: 3, MicroBatch: 1, Precision: spec.FP8}
	b := on(t, "Blackwell", m, "FSDP@2.8 weights=fp8").Plan(p)
	near(t, "masters", b.Parameters, 4*(4*(layer+norms)+embedding)/4, 1e-12)
	near(t, "gathered", b.Gathered, 2*(layer+2*norms), 1e-12)
	lora := adapted(t, m, "lora:16")
	b = on(t, "Blackwell", lora, "FSDP@2.8 weights=fp8").Plan(p)
	near(t, "frozen shards", b.Parameters, (4*(layer+2*norms)+2*embedding+2*lora.TrainedParams())/4, 1e-12)
	near(t, "gathered frozen", b.Gathered, 2*(layer+2*norms), 1e-12)
}
