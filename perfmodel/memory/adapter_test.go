package memory

import (
	"testing"

	"github.com/pacer-ml/pacer/perfmodel/spec"
)

func adapted(t *testing.T, m spec.Model, adapter string) spec.Model {
	t.Helper()
	var err error
	if m.Adapter, err = spec.ParseAdapter(adapter); err != nil {
		t.Fatal(err)
	}
	return m
}

// TestAdapterStates: gradients and optimizer states of adapters are sharded from ZeRO 2 and 1 on, weights from ZeRO 3
// on, and an offloaded optimizer, or weights, are on the host.
func TestAdapterStates(t *testing.T) {
	m := adapted(t, gpt(24, 2048, 16), "lora:16")
	frozen, trained := float64(m.Params()+4*24*2048), m.TrainedParams()
	e := prepared(t, m, "InternEvo")
	for zero, by := range [][3]float64{{1, 1, 1}, {1, 1, 8}, {1, 8, 8}, {8, 8, 8}} {
		p := spec.Plan{DP: 8, MicroBatch: 1, ZeRO: zero, Precision: spec.BF16}
		b := e.Plan(p)
		near(t, p.String()+": weights", b.Parameters, 2*(frozen+trained)/by[0], 1e-12)
		near(t, p.String()+": gradients", b.Gradients, 4*trained/by[1], 1e-12)
		near(t, p.String()+": optimizer", b.Optimizer, 12*trained/by[2], 1e-12)
	}
	p := spec.Plan{DP: 8, MicroBatch: 1, ZeRO: 2, Offload: spec.OffloadOptimizer, Precision: spec.BF16}
	b := e.Plan(p)
	near(t, "offloaded optimizer", b.HostBytes, hostPerParameter*trained/8, 1e-12)
	if b.Optimizer != 0 {
		t.Errorf("%g bytes of optimizer states on the device", b.Optimizer)
	}
	p.ZeRO, p.Offload = 3, spec.OffloadParams
	b = e.Plan(p)
	near(t, "offloaded weights", b.HostBytes, hostPerParameter*trained/8+2*(frozen+trained)/8, 1e-12)
	if b.Parameters != 0 {
		t.Errorf("%g bytes of weights on the device", b.Parameters)
	}
}

// TestAdaptersOfExperts: adapters of experts are where their experts are, and those of the mixers' layers of a hybrid
// do not exist.
func TestAdaptersOfExperts(t *testing.T) {
	for _, m := range []spec.Model{mixed(), nemotron3()} {
		m = adapted(t, m, "lora:16:qkv+mlp")
		dense, experts := m.AdapterParams()
		e := prepared(t, m, "Megatron Core@0.12")
		p := spec.Plan{DP: 8, EP: 4, TP: 2, MicroBatch: 1, ZeRO: 1}.Normal()
		_, trained := e.Owned(&p)
		near(t, "dense", trained.Dense, dense/2, 1e-12)
		near(t, "experts", trained.Expert, experts/4, 1e-12)
		near(t, "optimizer", e.Plan(p).Optimizer, 12*(dense/2/8+experts/4/4), 1e-12)
		p.PP = 4
		sum := 0.0
		for stage := range p.PP {
			o := e.own(&p, e.layersOn(&p, stage), stage)
			sum += 2*o.trained + 4*o.trainedExpert
		}
		near(t, "all stages", sum, dense+experts, 1e-12)
	}
}

// TestFrozenWeightsHaveNoGradients: neither Megatron Core's empty gradients nor DDP's buckets are for frozen weights.
func TestFrozenWeightsHaveNoGradients(t *testing.T) {
	m := gpt(4, 1024, 8)
	m.Vocab = 128000
	frozen := adapted(t, m, "lora:8")
	p := spec.Plan{DP: 2, MicroBatch: 1, Precision: spec.BF16}
	full, lora := prepared(t, m, "Megatron Core@0.12").plan(p), prepared(t, frozen, "Megatron Core@0.12").plan(p)
	near(t, "empty gradient of the head", full.Working-lora.Working, 2*128000*1024, 1e-9)
	if lora.Buffers != 0 {
		t.Errorf("%g bytes of buffers, want none", lora.Buffers)
	}
	near(t, "buckets", prepared(t, frozen, "PyTorch@2.8").plan(p).Buffers, 4*frozen.TrainedParams(), 1e-9)
}

func (e Estimator) plan(p spec.Plan) Breakdown { return e.Plan(p) }

// TestQuantizedWeights: QLoRA quantizes the matrices of layers alone. Llama 3 8B has 6.98 billion parameters in them, of 4.127
// bits, and 1.05 billion in embedding and head, of 16: 5.70 GB.
func TestQuantizedWeights(t *testing.T) {
	llama3 := spec.Model{Name: "llama", Kind: spec.Decoder, Layers: 32, Hidden: 4096, FFN: 14336, Heads: 32, KVHeads: 8, Vocab: 128256, SeqLen: 512, GatedMLP: true}
	m := adapted(t, llama3, "qlora:1:o")
	e := prepared(t, m, "Accelerate")
	p := spec.Plan{DP: 1, MicroBatch: 1, Precision: spec.BF16}
	near(t, "weights", e.Plan(p).Parameters-2*m.TrainedParams(), 5.70e9, 0.003)

	p = spec.Plan{DP: 8, MicroBatch: 1, ZeRO: 3, Precision: spec.BF16}
	o := e.own(&p, e.layersOn(&p, 0), 0)
	all, linear := e.units(&p, o)
	near(t, "gathered", e.Plan(p).Gathered, e.k.Gathered*(2*(all-linear)+QuantizedBytes*linear), 1e-12)
}
