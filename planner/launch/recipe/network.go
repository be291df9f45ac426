package recipe

import (
	"cmp"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/planner/launch/recipe/keyfile"
	"github.com/pacer-ml/pacer/planner/launch/recipe/pattern"
)

// Network returns the network that the file describes by its widths; ok is false where it has none. notes say what was
// assumed. vocab is the vocabulary where the file gives none.
func (r *Recipe) Network(vocab int) (m spec.Model, notes []string, ok bool) {
	note := func(format string, args ...any) { notes = append(notes, fmt.Sprintf(format, args...)) }
	layers, hidden := r.numbers[Layers], r.numbers[Hidden]
	if hidden < 1 || r.numbers[Heads] < 1 || layers < 1 && r.texts[hybrid] == "" {
		return m, nil, false
	}
	m = spec.Model{Kind: r.kind(), Layers: layers, Hidden: hidden, Heads: r.numbers[Heads], KVHeads: r.numbers[KVHeads], HeadDim: r.numbers[HeadDim], FFN: r.numbers[FFN],
		Vocab: r.numbers[Vocab], SeqLen: r.numbers[SeqLen], QRank: r.numbers[QRank], KVRank: r.numbers[KVRank], MTPLayers: r.numbers[MTP],
		GatedMLP: r.numbers[Gated] == 1, TiedEmbeddings: r.or(Tied, 0) == 1}
	if m.Kind == spec.EncoderDecoder {
		m.Layers += r.or(decoderLayers, layers)
		note("%d encoder and %d decoder layers, both of %d tokens", layers, m.Layers-layers, m.SeqLen)
	}
	if d := r.numbers[qkHeadDim]; d > 0 && m.KVRank > 0 {
		m.HeadDim = d
	}
	if m.Vocab == 0 {
		m.Vocab = vocab
		note("the vocabulary is not in the file: %d tokens are assumed; --set vocab=N replaces them", vocab)
	}
	if m.FFN == 0 && r.numbers[Experts] == 0 || m.FFN == 0 && r.numbers[ExpertFFN] == 0 {
		m.FFN = 4 * hidden
		if m.GatedMLP && r.Format == "megatron" { // arguments.py: int((4 * hidden * 2 / 3) / 64) * 64
			m.FFN = int(float64(4*hidden)*2/3/64) * 64
		}
	}
	r.mixers(&m, note)
	r.expertsOf(&m, note)
	r.scale(&m, note)
	m.Name = fmt.Sprintf("%dx%d", m.Layers, m.Hidden)
	return m, notes, true
}

// kind tells an encoder, or encoder and decoder, by the name of the program or of the recipe.
func (r *Recipe) kind() spec.Kind {
	name := strings.ToLower(r.valueOf("program") + " " + r.valueOf("name"))
	switch {
	case r.numbers[decoderLayers] > 0, strings.Contains(name, "t5"):
		return spec.EncoderDecoder
	case strings.Contains(name, "bert"):
		return spec.Encoder
	}
	return spec.Decoder
}

// mixers reads the layers of hybrids, from a pattern or from shares of attention and MLPs.
func (r *Recipe) mixers(m *spec.Model, note func(string, ...any)) {
	attention, mlps := -1, 0
	switch text := r.texts[hybrid]; {
	case text != "":
		h := pattern.HybridOf(text)
		for _, c := range h.Unknown {
			r.problem("hybrid layer pattern: %q is not one of M G * C D H - E | /", string(c))
		}
		m.Layers, m.SSMLayers, m.MTPLayers = h.Mixers+h.Attention+h.MLPs, h.Mixers, cmp.Or(m.MTPLayers, h.Ahead)
		if h.Sparse > 0 {
			note("%d layers of sparse attention (C, D, H) are counted as full attention", h.Sparse)
		}
		attention, mlps = h.Attention, h.MLPs
	case r.hasKey("--hybrid-attention-ratio"), r.hasKey("--hybrid-mlp-ratio"), strings.Contains(r.valueOf("program")+r.valueOf("name"), "mamba"):
		attention, mlps = r.share("--hybrid-attention-ratio", m.Layers), r.share("--hybrid-mlp-ratio", m.Layers)
		if m.SSMLayers = m.Layers - attention - mlps; m.SSMLayers < 0 {
			r.problem("--hybrid-attention-ratio and --hybrid-mlp-ratio are more than 1 together")
			m.SSMLayers = 0
		}
	}
	if attention < 0 {
		return
	}
	if m.MLPLayers = mlps; mlps == 0 {
		m.FFN, m.GatedMLP = 0, false // no layer has an MLP
	}
	// defaults of megatron/core/transformer/transformer_config.py and ssm/mamba_mixer.py
	m.SSMHeadDim, m.SSMState, m.SSMGroups = r.or(mixerHeadDim, 64), r.or(mixerState, 128), r.or(mixerGroups, 8)
	m.SSMHeads = r.or(mixerHeads, 2*m.Hidden/max(m.SSMHeadDim, 1))
	if r.numbers[mixerHeadDim] == 0 || r.numbers[mixerState] == 0 {
		note("mixers are as Megatron-LM has them by default: %d heads of %d, a state of %d and %d groups", m.SSMHeads, m.SSMHeadDim, m.SSMState, m.SSMGroups)
	}
}

// share returns the layers that a ratio of the file asks for.
func (r *Recipe) share(key string, layers int) int {
	v, err := strconv.ParseFloat(r.valueOf(key), 64)
	if err != nil || !(v >= 0) || v > 1 {
		return 0
	}
	return int(math.RoundToEven(v * float64(layers)))
}

// expertsOf reads the experts.
func (r *Recipe) expertsOf(m *spec.Model, note func(string, ...any)) {
	m.Experts = r.numbers[Experts]
	if m.Experts < 2 || m.SSMLayers > 0 && m.MLPLayers == 0 {
		m.Experts = 0
		return
	}
	m.ExpertsPerToken = min(r.or(TopK, 2), m.Experts)
	if r.numbers[TopK] == 0 && r.hasKey("--moe-train-capacity-factor") {
		m.ExpertsPerToken = 1
	}
	m.ExpertFFN = cmp.Or(r.numbers[ExpertFFN], m.FFN)
	m.SharedExperts = r.numbers[sharedExperts]
	if shared := r.numbers[SharedFFN]; shared > 0 && m.ExpertFFN > 0 {
		m.SharedExperts = max(int(math.Round(float64(shared)/float64(m.ExpertFFN))), 1)
	}
	if n := r.numbers[denseFirst]; n > 0 && n < m.Layers {
		m.DenseLayers = n
		return
	}
	frequency := strings.Trim(r.texts[moeFreq], `'" `)
	if frequency == "" || frequency == "1" {
		return
	}
	dense, every, ok := pattern.DenseLayers(frequency, m.LayersWithMLP())
	if !ok {
		note("--moe-layer-freq %s is not understood: all layers are taken to have experts", frequency)
		return
	}
	if m.DenseLayers = dense; every > 1 {
		m.MoEEvery = every
	}
}

// scale applies MaxText's global_parameter_scale, a power of two: a third of its exponent each goes to the width, to
// heads and MLP, and to the layers (maxtext/pyconfig.py, get_individual_scales).
func (r *Recipe) scale(m *spec.Model, note func(string, ...any)) {
	e := keyfile.Entry{Value: r.valueOf("global_parameter_scale")}
	n, ok := e.Whole()
	if !ok || n <= 1 {
		return
	}
	log := int(math.Round(math.Log2(float64(n))))
	if 1<<log != n {
		r.problem("global_parameter_scale: %d is not a power of two", n)
		return
	}
	base, rest := log/3, log%3
	wide, inner := 1<<(base+rest/2), 1<<(base+(rest+1)/2)
	m.Hidden, m.Layers = mul(m.Hidden, wide), mul(m.Layers, 1<<base)
	m.Heads, m.KVHeads, m.FFN, m.ExpertFFN = mul(m.Heads, inner), mul(m.KVHeads, inner), mul(m.FFN, inner), mul(m.ExpertFFN, inner)
	note("global_parameter_scale=%d: %d layers, width %d, %d heads, MLP %d", n, m.Layers, m.Hidden, m.Heads, m.FFN)
}
