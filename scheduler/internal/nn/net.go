package nn

// Net is a trainable network. Inputs and outputs are rows of a batch. MLP is the basic implementation.
type Net interface {
	// Infer returns the outputs of one row of inputs.
	Infer(s *Scratch, x []float32) []float32
	// Forward returns the outputs of a batch of rows. The caller must not change x before Backward returns.
	Forward(s *Scratch, x []float32, batch int) []float32
	// Backward writes the gradient of a loss to grad, in the order of Params, summed over the batch. dOut is the
	// gradient of the loss by the outputs of the last Forward with s.
	Backward(s *Scratch, dOut, grad []float32)
	// Params returns all parameters; writing to them changes the network.
	Params() []float32
	// Inputs and Outputs return the number of inputs and outputs of a row.
	Inputs() int
	Outputs() int
	// Core returns the perceptron with the parameters.
	Core() *MLP
}

// Inputs returns the number of inputs.
func (m *MLP) Inputs() int { return m.sizes[0] }

// Outputs returns the number of outputs.
func (m *MLP) Outputs() int { return m.sizes[len(m.sizes)-1] }

// Core returns m.
func (m *MLP) Core() *MLP { return m }
