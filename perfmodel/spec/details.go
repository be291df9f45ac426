package spec

// Norm is the kind of normalization of activations.
type Norm string

// The kinds of normalization in supported training stacks.
const (
	LayerNorm Norm = "LayerNorm"
	RMSNorm   Norm = "RMSNorm"
)

// Positions is the encoding of token positions.
type Positions string

// The kinds of position encoding.
const (
	Rotary  Positions = "rope"    // queries and keys rotated (Su et al. 2021, arXiv 2104.09864)
	Learned Positions = "learned" // a learned vector for each position
	ALiBi   Positions = "alibi"   // biases added to the attention scores (Press et al. 2022, arXiv 2108.12409)
)

// Details are settings of a network, besides its widths and counts, that a training stack needs. They change
// its speed and size by less than a percent, so they are not part of Model, the key of measurements. A zero
// field is unknown.
type Details struct {
	Of string // the architecture or model family that the settings belong to; "" = no setting is known

	Norm    Norm
	NormEps float64 // added to the variance

	Activation string // of the MLP, by its name in the transformers library: silu, gelu, gelu_new, relu, relu2

	Positions   Positions
	RopeTheta   float64 // base of the rotation's wavelengths
	RopePercent float64 // share of a head's width that is rotated, in (0, 1]; 0 = all of it
	RopeScaling string  // how the wavelengths are stretched: llama3, linear, yarn; "" = they are not
	RopeFactor  float64 // factor of the stretching

	LinearBias bool // every linear layer has a bias
	QKVBias    bool // queries, keys and values have a bias
	QKNorm     bool // queries and keys are normalized per head

	// Besides lists further properties in words, for readers.
	Besides []string
}

// Known reports whether any setting is known.
func (d *Details) Known() bool { return d.Of != "" }

// Gelu reports whether the activation is GELU, exact or one of its common approximations (Hendrycks and Gimpel
// 2016, arXiv 1606.08415).
func (d *Details) Gelu() bool {
	switch d.Activation {
	case "gelu", "gelu_new", "gelu_fast", "gelu_python", "gelu_pytorch_tanh":
		return true
	}
	return false
}
