package datasets

import (
	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// timedDevices are multiplications that a source timed alone on its devices.
type timedDevices struct {
	accelerator string
	products    []timedProduct
}

// timedProduct is the multiplication of a layer on a number of tokens, with its share of the datasheet's 16-bit peak: in the
// forward pass, and for the gradients of inputs and of weights.
type timedProduct struct {
	tokens, out, in int
	share           [3]float64
}

// simumaxDevices are those of SimuMax's system file (configs/system/b200_bf16_ceperm.json, commit e691807a) for the matrices of
// Llama 3 70B and DeepSeek-V2 on one device, with gradients of weights added up in 32 bits as in its runs.
var simumaxDevices = timedDevices{"B200", []timedProduct{
	{4096, 10240, 8192, [3]float64{0.645, 0.498, 0.598}},
	{4096, 8192, 8192, [3]float64{0.463, 0.496, 0.479}},
	{4096, 57344, 8192, [3]float64{0.487, 0.483, 0.454}},
	{4096, 8192, 28672, [3]float64{0.485, 0.474, 0.459}},
	{4096, 128256, 8192, [3]float64{0.487, 0.471, 0.455}},
	{4096, 1536, 5120, [3]float64{0.414, 0.637, 0.573}},
	{4096, 24576, 1536, [3]float64{0.633, 0.637, 0.461}},
	{4096, 576, 5120, [3]float64{0.322, 0.321, 0.224}},
	{4096, 32768, 512, [3]float64{0.319, 0.398, 0.487}},
	{4096, 5120, 16384, [3]float64{0.629, 0.467, 0.480}},
	{4096, 24576, 5120, [3]float64{0.565, 0.494, 0.437}},
	{4096, 5120, 12288, [3]float64{0.449, 0.485, 0.445}},
	{4096, 6144, 5120, [3]float64{0.389, 0.446, 0.486}},
	{4096, 5120, 3072, [3]float64{0.423, 0.393, 0.344}},
	{4096, 160, 5120, [3]float64{0.184, 0.167, 0.187}},
	{4096, 102400, 5120, [3]float64{0.487, 0.457, 0.445}},
}}

// measured returns a with the micro-benchmarks of t, if they are of its type.
func (t *timedDevices) measured(a spec.Accelerator) spec.Accelerator {
	if a.Name != t.accelerator {
		return a
	}
	b := spec.Microbenchmarks{Accelerator: a, Framework: "Megatron Core"}
	for _, p := range t.products {
		for i, op := range []string{"gemm forward", "gemm dgrad", "gemm wgrad"} {
			sec := 2 * float64(p.tokens) * float64(p.out) * float64(p.in) / (p.share[i] * a.Peak(spec.BF16))
			b.Rows = append(b.Rows, spec.Microbenchmark{Op: op, Precision: spec.BF16, Rows: p.tokens, Cols: p.out, Depth: p.in, Sec: []float64{sec}})
		}
	}
	if text, err := b.Digest(); err == nil {
		a.Measured = text
	}
	return a
}
