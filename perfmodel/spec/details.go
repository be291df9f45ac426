package spec

// Norm is how activations are normalized.
type Norm string

// The norms training stacks have.
const (
	LayerNorm Norm = "LayerNorm"
	RMSNorm   Norm = "RMSNorm"
)

// Positions is how a network encodes the position of a token.
type Positions string

// The kinds of positions.
const (
	Rotary  Positions = "rope"    // queries and keys rotated (Su et al. 2021, arXiv 2104.09864)
	Learned Positions = "learned" // a vector for each
	ALiBi   Positions = "alibi"   // biases of the scores (Press et al. 2022, arXiv 2108.12409)
)

// Details are settings of a network beside its shape that a training stack needs.
// They change its speed and size by less than a percent, so Model, the key of
// measurements, has none of them. A zero field is unknown.
type Details struct {
	Of string // the architecture or family they are of; "" = nothing is known

	Norm    Norm
	NormEps float64 // added to the variance

	Activation string // of the MLP, as transformers calls it: silu, gelu, gelu_new, relu, relu2

	Positions   Positions
	RopeTheta   float64 // base of the rotation's wavelengths
	RopePercent float64 // share of a head's width that is rotated, in (0, 1]; 0 is all of it
	RopeScaling string  // how the wavelengths are stretched: llama3, linear, yarn; "" is not at all
	RopeFactor  float64 // by how much

	LinearBias bool // every linear layer has a bias
	QKVBias    bool // queries, keys and values have one
	QKNorm     bool // queries and keys are normalized, head by head

	// Besides lists other properties, as text for readers.
	Besides []string
}

// Known reports whether anything is known.
func (d *Details) Known() bool { return d.Of != "" }

// Gelu reports whether the activation is GELU, exact or by its usual
// approximations (Hendrycks and Gimpel 2016, arXiv 1606.08415).
func (d *Details) Gelu() bool {
	switch d.Activation {
	case "gelu", "gelu_new", "gelu_fast", "gelu_python", "gelu_pytorch_tanh":
		return true
	}
	return false
}
