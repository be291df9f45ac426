package datasets

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"strings"

	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// shapeColumns are the columns with counts and widths of a model. Those with none are 0 in a network without such a part.
var shapeColumns = [...]struct {
	name string
	at   func(*spec.Model) *int
	none bool
}{
	{"hidden", func(m *spec.Model) *int { return &m.Hidden }, false}, // first: another width is another network
	{"heads", func(m *spec.Model) *int { return &m.Heads }, false},
	{"layers", func(m *spec.Model) *int { return &m.Layers }, false},
	{"kv_heads", func(m *spec.Model) *int { return &m.KVHeads }, false},
	{"head_dim", func(m *spec.Model) *int { return &m.HeadDim }, false},
	{"ffn", func(m *spec.Model) *int { return &m.FFN }, false},
	{"q_rank", func(m *spec.Model) *int { return &m.QRank }, true},
	{"kv_rank", func(m *spec.Model) *int { return &m.KVRank }, true},
	{"experts", func(m *spec.Model) *int { return &m.Experts }, true},
	{"experts_per_token", func(m *spec.Model) *int { return &m.ExpertsPerToken }, true},
	{"expert_ffn", func(m *spec.Model) *int { return &m.ExpertFFN }, true},
	{"shared_experts", func(m *spec.Model) *int { return &m.SharedExperts }, true},
	{"dense_layers", func(m *spec.Model) *int { return &m.DenseLayers }, true},
	{"node_limit", func(m *spec.Model) *int { return &m.NodeLimit }, true},
	{"mtp_layers", func(m *spec.Model) *int { return &m.MTPLayers }, true},
	{"vocab", func(m *spec.Model) *int { return &m.Vocab }, false},
}

// figure returns the figure of m in a shape column, with the usual values of attention; known reports whether m has one.
func figure(m *spec.Model, i int) (v int, known bool) {
	c := &shapeColumns[i]
	switch v = *c.at(m); {
	case v > 0:
	case c.name == "kv_heads":
		v = m.KV()
	case c.name == "head_dim":
		v = m.Head()
	}
	return v, v > 0 || c.none && m.HasShape() || c.name == "mtp_layers"
}

// contradiction returns the first column with a recorded figure that differs from that of m, "" if there is none. A
// vocabulary may be padded by 2 %. Layers without experts of a network without any are all of its layers.
func contradiction(recorded, m *spec.Model) string {
	for i, c := range shapeColumns {
		a := *c.at(recorded)
		b, known := figure(m, i)
		switch {
		case a == 0 || a == b || !known:
		case c.name == "vocab" && math.Abs(float64(a-b)) <= 0.02*float64(b):
		case c.name == "dense_layers" && recorded.Experts+m.Experts == 0 && a <= max(recorded.Layers, m.Layers):
		default:
			return c.name
		}
	}
	return ""
}

// gated tells a gated MLP, which has three matrices, from one of two matrices, which is 4 times as wide as the
// layer (Vaswani et al. 2017, section 3.3; Shazeer 2020, arXiv 2002.05202, section 3). Experts are gated.
func gated(m *spec.Model) bool { return m.Experts > 0 || m.FFN != 4*m.Hidden }

// changed returns m with the recorded figures that differ, and a name that lists figures and them.
func changed(m, recorded *spec.Model, figures []string) spec.Model {
	out := *m
	for i, c := range shapeColumns {
		was, known := figure(m, i)
		if v := *c.at(recorded); v > 0 && v != was && (known || !m.HasShape()) {
			*c.at(&out) = v
			figures = append(figures, fmt.Sprintf("%s=%d", c.name, v))
		}
	}
	for _, n := range []*int{&out.WindowLayers, &out.SSMLayers, &out.MLPLayers} { // the same share of the layers
		*n = *n * out.Layers / max(m.Layers, 1)
	}
	switch dense := out.InterleavedDense(); {
	case m.MoEEvery > 1 && recorded.DenseLayers == 0:
		out.DenseLayers = dense
	case out.DenseLayers != dense:
		out.MoEEvery = 0
	}
	out.Name = variantName(withoutRemark(recorded.Name), figures)
	out.ParamCount, out.ActiveParamCount, out.SeqLen = recorded.ParamCount, 0, cmp.Or(recorded.SeqLen, m.SeqLen)
	return out
}

// variantName is the name of a model with changed figures.
func variantName(name string, figures []string) string {
	if len(figures) == 0 {
		return name
	}
	return fmt.Sprintf("%s (%s)", name, strings.Join(figures, ","))
}

// checked returns m with figures of experts that are not recorded, as the flags of a model set them. It fails for a shape
// that checkShape refuses.
func (r *publishedRow) checked(m spec.Model) modelMatch {
	r.checkShape(&m)
	a := modelMatch{model: m}
	if m.Experts == 0 {
		return a
	}
	for _, c := range []struct {
		name  string
		to    *int
		taken int
	}{{"experts_per_token", &a.model.ExpertsPerToken, min(2, m.Experts)}, {"expert_ffn", &a.model.ExpertFFN, m.FFN}} {
		if *c.to == 0 && c.taken > 0 {
			*c.to = c.taken
			a.add(fmt.Sprintf("%s not recorded, taken as %d", c.name, c.taken))
		}
	}
	return a
}

// checkShape fails for figures that no network has together, as flags and config.json do: in the first column of a rule
// that the row records.
func (r *publishedRow) checkShape(m *spec.Model) {
	for _, rule := range []struct {
		broken  bool
		columns []string
		why     string
	}{
		{m.Experts > 0 && m.ExpertsPerToken > m.Experts, []string{"experts_per_token", "experts"},
			fmt.Sprintf("is not in 1..%d: %s has %d experts and %d per token", m.Experts, m.Name, m.Experts, m.ExpertsPerToken)},
		{m.HasShape() && m.Experts == 0 && m.ExpertsPerToken > 0, []string{"experts_per_token"}, "needs a number of experts"},
		{m.HasShape() && m.Experts == 0 && m.ExpertFFN > 0, []string{"expert_ffn"}, "needs a number of experts"},
		{m.HasShape() && m.Experts == 0 && m.SharedExperts > 0, []string{"shared_experts"}, "needs a number of experts"},
		{m.Layers > 0 && m.DenseLayers > m.Layers, []string{"dense_layers", "layers"},
			fmt.Sprintf("contradicts %s, with %d layers, %d of them dense", m.Name, m.Layers, m.DenseLayers)},
		{m.KVHeads > 0 && m.Heads%m.KVHeads != 0, []string{"kv_heads", "heads"},
			fmt.Sprintf("contradicts %s: %d kv_heads do not divide %d heads", m.Name, m.KVHeads, m.Heads)},
		{m.Heads > 0 && m.HeadDim == 0 && m.Hidden%m.Heads != 0, []string{"heads", "hidden"},
			fmt.Sprintf("contradicts %s: %d heads do not divide hidden %d, and there is no head_dim", m.Name, m.Heads, m.Hidden)},
	} {
		for _, column := range rule.columns {
			if rule.broken && r.Str(column) != "" {
				r.Fail(column, errors.New(rule.why))
				break
			}
		}
	}
}
