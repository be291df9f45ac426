package launch

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// titanFlavor writes m as arguments of llama3's TransformerModelArgs
// (torchtitan/models/llama3/model/args.py).
func titanFlavor(m *spec.Model, d *spec.Details) []string {
	args := []string{fmt.Sprintf("dim=%d, n_layers=%d, n_heads=%d, n_kv_heads=%d, vocab_size=%d", m.Hidden, m.Layers, m.Heads, m.KV(), m.Vocab)}
	width := fmt.Sprintf("and an MLP of width %d", m.FFN)
	if multiplier, multiple, ok := titanWidth(m.Hidden, m.FFN); ok {
		width = fmt.Sprintf("ffn_dim_multiplier=%s, multiple_of=%d (an MLP of width %d)", multiplier, multiple, m.FFN)
	}
	args = append(args, width)
	var rest []string
	if d.RopeTheta > 0 {
		rest = append(rest, "rope_theta="+decimal(d.RopeTheta))
	}
	if d.NormEps > 0 {
		rest = append(rest, "norm_eps="+decimal(d.NormEps))
	}
	if len(rest) > 0 {
		args = append(args, strings.Join(rest, ", "))
	}
	return args
}

// titanWidth returns the ffn_dim_multiplier and the multiple_of for which llama3's
// FeedForward has the width ffn:
//
//	width = multiple * ceil(int(multiplier * int(8*dim/3)) / multiple)
//
// with the fewest digits, "None" where no multiplier is needed.
func titanWidth(dim, ffn int) (multiplier string, multiple int, ok bool) {
	base := 8 * dim / 3
	if base < 1 || ffn < 1 {
		return "", 0, false
	}
	if up(base, 256) == ffn { // the defaults
		return "None", 256, true
	}
	multiple = min(ffn&-ffn, 1024)
	middle := (float64(ffn) + 1 - float64(multiple)/2) / float64(base)
	for digits := range 13 {
		text := strconv.FormatFloat(middle, 'f', digits, 64)
		v, err := strconv.ParseFloat(text, 64)
		if scaled := v * float64(base); err == nil && scaled >= 1 && scaled < math.MaxInt32 && up(int(scaled), multiple) == ffn {
			return text, multiple, true
		}
	}
	return "", 0, false
}

// up rounds n up to a multiple of m.
func up(n, m int) int { return (n + m - 1) / m * m }

// titanOwnNotes returns what to check in a flavor that is added to llama3.
func titanOwnNotes(d *spec.Details) []string {
	if !d.Known() {
		return []string{"what its layers are made of is not known: check rope_theta (10000 unless given), norm_eps (1e-5 unless given), the form of rope_scaling_args, and that queries, keys and values have neither biases nor norms, as llama3 has none"}
	}
	var out []string
	llama := d.Norm == spec.RMSNorm && d.Activation == "silu" && d.Positions == spec.Rotary
	for _, differs := range []struct {
		does bool
		what string
	}{
		{!llama, fmt.Sprintf("%s has %s, %s and positions of kind %s, llama3 RMSNorm, silu and rope: change its layers", d.Of, d.Norm, d.Activation, d.Positions)},
		{d.LinearBias, fmt.Sprintf("%s has biases in every linear layer, llama3 has none: add them", d.Of)},
		{d.QKVBias && !d.LinearBias, fmt.Sprintf("%s has biases of queries, keys and values, llama3 has none: build wq, wk and wv of its Attention with bias=True", d.Of)},
		{d.QKNorm, fmt.Sprintf("%s normalizes queries and keys, llama3 does not: add a norm of each head's width after wq and wk, or add it to qwen3's flavors", d.Of)},
		{d.RopePercent > 0, fmt.Sprintf("%s rotates %g of a head's width, llama3 all of it", d.Of, d.RopePercent)},
		{d.Positions == spec.Rotary && d.RopeScaling == "", "the rotary positions are not stretched: llama3 does so with rope_scaling_args, where its version has them"},
		{d.RopeScaling == "llama3", fmt.Sprintf("the rotary positions are stretched: rope_scaling_args has scaling_factor=%s", decimal(d.RopeFactor))},
		{d.RopeScaling != "" && d.RopeScaling != "llama3", fmt.Sprintf("the rotary positions of %s are stretched by %q, factor %g, which llama3 has not", d.Of, d.RopeScaling, d.RopeFactor)},
		{d.NormEps == 0, fmt.Sprintf("check norm_eps, 1e-5 unless given: that of %s is not known here", d.Of)},
		{d.Positions == spec.Rotary && d.RopeTheta == 0, fmt.Sprintf("check rope_theta, 10000 unless given: that of %s is not known here", d.Of)},
	} {
		if differs.does {
			out = append(out, differs.what)
		}
	}
	for _, b := range d.Besides {
		out = append(out, fmt.Sprintf("%s: %s; the flavor does not say so", d.Of, b))
	}
	return out
}
