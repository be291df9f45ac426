package nn

// Net is a network whose parameters can be learnt. The numbers that go in and come out
// are rows of a batch; see MLP, the plainest.
type Net interface {
	// Infer returns what the network makes of one row of inputs.
	Infer(s *Scratch, x []float32) []float32
	// Forward returns what it makes of a batch of rows, which must stay as they are
	// until Backward is done.
	Forward(s *Scratch, x []float32, batch int) []float32
	// Backward writes to grad, in the order of Params, the gradient of a loss whose
	// gradient by the outputs of the last Forward with s is dOut, summed over the batch.
	Backward(s *Scratch, dOut, grad []float32)
	// Params returns all parameters. Who changes them changes the network.
	Params() []float32
	// Inputs and Outputs return how many numbers go in and come out.
	Inputs() int
	Outputs() int
	// Core returns the perceptron with the parameters.
	Core() *MLP
}

// Inputs returns how many numbers go in.
func (m *MLP) Inputs() int { return m.sizes[0] }

// Outputs returns how many numbers come out.
func (m *MLP) Outputs() int { return m.sizes[len(m.sizes)-1] }

// Core returns m.
func (m *MLP) Core() *MLP { return m }
