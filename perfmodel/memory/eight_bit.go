package memory

import "github.com/pacer-ml/pacer/perfmodel/spec"

// QuantizedBytes is the size of a parameter of a matrix that QLoRA has frozen: 4 bits, and a scale for every 64 of them that
// is quantized again (Dettmers et al. 2023, section 3).
const QuantizedBytes = 4.127 / 8

// eightBit is how the matrices of layers are held where they have 8 bits or fewer. It is zero elsewhere.
type eightBit struct {
	saved float64 // bytes per parameter, of the two in 16 bits
	onUse float64 // bytes per parameter of the matrix being multiplied, for its transpose
}

// eightBit returns how a stack holds weights under p: QuantizedBytes with QLoRA, which quantizes the matrices of layers alone
// (replace_with_bnb_linear of transformers, which leaves out the head), else one byte each, and another for the transpose.
// Embeddings, head, norms and routers stay in 16 bits, as do adapters.
//
//	fp8                    a scale per tensor, of no size. Only Blackwell multiplies in any layout; other devices keep
//	                       a transposed copy of each matrix, or make it on use
//	fp8-rowwise            scales depend on the direction: two copies
//	mxfp8                  the same, with a scale of one byte for 32 elements
//
// Sources: Transformer Engine's create_tensor in pytorch/csrc/quantizer.cpp (nvte_is_non_tn_fp8_gemm_supported),
// pytorch/tensor/mxfp8_tensor.py, and fp8_model_init; Megatron Core's disable_parameter_transpose_cache.
func (e *Estimator) eightBit(p *spec.Plan) (out eightBit) {
	if e.adapter.Kind == spec.QLoRA {
		return eightBit{saved: 2 - QuantizedBytes}
	}
	if !e.stack.fp8 || p.Precision.Format() != spec.FP8 {
		return out
	}
	switch {
	case p.Precision == spec.MXFP8:
		out.saved = 2 - 2*(1+1./32)
	case p.Precision == spec.FP8Rowwise:
		out.saved = 0
	case e.turns:
		out.saved = 1
	case e.stack.fp8Once:
		out.saved, out.onUse = 1, 1
	}
	return out
}

// anyLayout reports whether devices of an architecture multiply 8-bit matrices that are not transposed.
func anyLayout(arch string) bool { return arch == "Blackwell" || arch == "Blackwell Ultra" }

// largest returns the parameters of the largest matrix of a layer: an MLP's first. Experts count together, since one
// grouped multiplication takes them all.
func (w *weights) largest(b block, t, shards float64) float64 {
	most := 0.0
	if b.attention {
		most = max(w.query/2, w.kv) / t
	}
	if b.ssm {
		most = max(most, w.ssm/t)
	}
	if b.mlp {
		most = max(most, w.first*w.mlp/t)
	}
	if b.routed {
		most = max(most, w.first*w.expert/shards, w.first*w.shared/t)
	}
	return most
}
