package memory

import (
	"math"

	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// aspect is the ratio of hidden width to layers of a large transformer: 128 in GPT-3 175B (Brown et al. 2020,
// table 2.1), and within a factor of two of that from 10 to 500 billion parameters (Narayanan et al. SC 2021,
// table 1).
const aspect = 128

// guessedSpread is the standard deviation of the log of the activations of a model with a guessed shape. They grow
// with layers x width, which for a fixed number of parameters is proportional to aspect^(-1/3): a factor of two in
// the aspect is 23 %.
const guessedSpread = 0.23

// GuessShape fills in missing fields of a transformer, with the proportions of GPT: P = 12·l·h² + V·h, with h =
// 128·l if h is unknown too, heads of width 128, an MLP of width 4h, tied embeddings. It takes a model of
// unknown kind with a sequence length and no FLOP count for a decoder. ok is false if m is complete, is a
// mixture of experts, a hybrid or no transformer, or has neither layers and width nor a parameter count.
func GuessShape(m spec.Model) (guess spec.Model, ok bool) {
	if m.HasShape() && m.Heads > 0 && m.FFN > 0 || m.Experts > 0 || m.SSMLayers > 0 || m.ParamCount <= 0 && !m.HasShape() {
		return m, false
	}
	switch {
	case m.Kind == spec.Decoder, m.Kind == spec.Encoder:
	case (m.Kind == "" || m.Kind == spec.Opaque) && m.SeqLen > 1 && m.FLOPsPerSample == 0:
		m.Kind = spec.Decoder
	default:
		return m, false
	}
	if m.FFN == 0 {
		m.TiedEmbeddings = true
	}
	if m.Hidden == 0 {
		layers := math.Cbrt(m.ParamCount / (12 * aspect * aspect))
		m.Hidden = max(int(math.Round(layers*aspect/128))*128, 128)
	}
	h := float64(m.Hidden)
	if m.Layers == 0 {
		m.Layers = max(int(math.Round((m.ParamCount-float64(m.Vocab)*h)/(12*h*h))), 1)
	}
	if m.Heads == 0 {
		m.Heads = max(m.Hidden/128, 1)
	}
	if m.FFN == 0 {
		m.FFN = 4 * m.Hidden
	}
	return m, true
}
