package launch

import (
	"fmt"
	"math"
	"strconv"

	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// megatronLayers writes the parts of the layers of m by d. Where d is unknown, gated
// MLPs get RMSNorm, SwiGLU, rotary positions and no biases; plain MLPs get the
// defaults of Megatron-LM: LayerNorm, GELU, learned positions and biases.
func megatronLayers(m *spec.Model, d *spec.Details) [][]string {
	if !d.Known() {
		if !m.GatedMLP {
			return nil
		}
		return [][]string{{"--swiglu"}, {"--disable-bias-linear"}, {"--normalization", "RMSNorm"}, {"--position-embedding-type", "rope"}}
	}
	var a [][]string
	switch {
	case m.GatedMLP:
		a = append(a, []string{"--swiglu"})
	case d.Activation == "relu2":
		a = append(a, []string{"--squared-relu"})
	}
	if !d.LinearBias {
		a = append(a, []string{"--disable-bias-linear"})
	}
	if d.QKVBias && !d.LinearBias {
		a = append(a, []string{"--add-qkv-bias"})
	}
	if d.QKNorm {
		a = append(a, []string{"--qk-layernorm"})
	}
	if d.Norm == spec.RMSNorm {
		a = append(a, []string{"--normalization", "RMSNorm"})
	}
	if d.NormEps > 0 {
		a = append(a, []string{"--norm-epsilon", decimal(d.NormEps)})
	}
	return append(a, megatronPositions(d)...)
}

func megatronPositions(d *spec.Details) [][]string {
	switch d.Positions {
	case spec.Rotary:
	case spec.ALiBi:
		return [][]string{{"--position-embedding-type", "none"}}
	default:
		return nil
	}
	a := [][]string{{"--position-embedding-type", "rope"}}
	if whole(d.RopeTheta) {
		a = append(a, []string{"--rotary-base", decimal(d.RopeTheta)})
	}
	if d.RopePercent > 0 {
		a = append(a, []string{"--rotary-percent", decimal(d.RopePercent)})
	}
	switch {
	case d.RopeScaling == "llama3" && d.RopeFactor > 0:
		a = append(a, []string{"--use-rope-scaling"}, []string{"--rope-scaling-factor", decimal(d.RopeFactor)})
	case d.RopeScaling == "linear" && whole(d.RopeFactor):
		a = append(a, []string{"--rotary-seq-len-interpolation-factor", decimal(d.RopeFactor)})
	}
	return a
}

// decimal formats v for Python's int and float.
func decimal(v float64) string {
	if whole(v) {
		return strconv.FormatFloat(v, 'f', 0, 64)
	}
	return strconv.FormatFloat(v, 'g', -1, 64)
}

// whole reports whether v is a positive integer, for options of type int.
func whole(v float64) bool { return v >= 1 && v <= 1e15 && v == math.Trunc(v) }

// megatronLayerNotes names the flags of MODEL that are assumed, and the parts of the
// network without a flag.
func megatronLayerNotes(m *spec.Model, d *spec.Details) []string {
	switch {
	case !d.Known() && m.GatedMLP:
		return []string{fmt.Sprintf("what the layers of %s are made of is not known: MODEL has what is usual with a gated MLP; check --swiglu, "+
			"--normalization, --norm-epsilon (1e-5 unless given), --disable-bias-linear, --add-qkv-bias, --qk-layernorm, --position-embedding-type and --rotary-base (10000 unless given)", m.Name)}
	case !d.Known():
		return []string{fmt.Sprintf("what the layers of %s are made of is not known: MODEL has what is usual with a plain MLP; check the activation (GELU unless --squared-relu), "+
			"--normalization, --norm-epsilon (1e-5 unless given), --disable-bias-linear and --position-embedding-type (learned unless given)", m.Name)}
	}
	var out []string
	if d.NormEps == 0 {
		out = append(out, fmt.Sprintf("check --norm-epsilon, 1e-5 unless given: that of %s is not known here", d.Of))
	}
	if m.GatedMLP && d.Activation != "silu" {
		out = append(out, fmt.Sprintf("--swiglu gates with SiLU, %s with %s", d.Of, d.Activation))
	}
	if !m.GatedMLP && !d.Gelu() && d.Activation != "relu2" {
		out = append(out, fmt.Sprintf("the activation of %s is %s, for which Megatron-LM has no flag: MODEL trains GELU, at the same speed", d.Of, d.Activation))
	}
	out = append(out, megatronPositionNotes(d)...)
	for _, b := range d.Besides {
		out = append(out, fmt.Sprintf("%s: %s; MODEL does not say so", d.Of, b))
	}
	return out
}

func megatronPositionNotes(d *spec.Details) []string {
	var out []string
	switch {
	case d.Positions == spec.ALiBi:
		out = append(out, fmt.Sprintf("%s has ALiBi, for which Megatron-LM has no flag: MODEL trains without positions", d.Of))
	case d.Positions == spec.Rotary && !whole(d.RopeTheta):
		out = append(out, fmt.Sprintf("check --rotary-base, a whole number, 10000 unless given: that of %s is %g here", d.Of, d.RopeTheta))
	}
	stretched := d.RopeScaling == "llama3" && d.RopeFactor > 0 || d.RopeScaling == "linear" && whole(d.RopeFactor)
	if d.RopeScaling != "" && !stretched {
		out = append(out, fmt.Sprintf("the rotary positions of %s are stretched by %q, factor %g, for which MODEL has no flag", d.Of, d.RopeScaling, d.RopeFactor))
	}
	return out
}
