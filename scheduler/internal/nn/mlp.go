package nn

import (
	"fmt"
	"math"
	"math/rand/v2"

	"gonum.org/v1/gonum/blas/blas32"
)

// MLP is a multilayer perceptron: layers of weights and biases with rectified linear
// units between them; what comes out of the last is as it is. It is safe for
// concurrent use as long as nobody changes its parameters.
type MLP struct {
	sizes  []int
	params []float32
	layers []layer
}

// layer is a part of the parameters.
type layer struct {
	in, out int
	weights []float32 // in rows of out: those of an input lie together
	bias    []float32
}

// NewMLP returns a network of the given layer sizes, inputs first, outputs last. Its
// weights are drawn as He et al. say for rectified linear units (ICCV 2015, section
// 2.2), those of the last layer a hundredth of that, so that at first it prefers
// nothing; biases are 0. A nil stream leaves all at 0.
func NewMLP(stream *rand.Rand, sizes ...int) (*MLP, error) {
	if err := checkSizes(sizes); err != nil {
		return nil, err
	}
	m := &MLP{sizes: sizes, params: make([]float32, countParams(sizes))}
	m.slice()
	if stream == nil {
		return m, nil
	}
	for i, l := range m.layers {
		scale := math.Sqrt(2 / float64(l.in))
		if i == len(m.layers)-1 {
			scale /= 100
		}
		for k := range l.weights {
			l.weights[k] = float32(scale * stream.NormFloat64())
		}
	}
	return m, nil
}

// maxParams bounds a network, that a damaged file cannot ask for all memory.
const maxParams = 1 << 26

func checkSizes(sizes []int) error {
	if len(sizes) < 2 {
		return fmt.Errorf("nn: %d layer sizes, want those of inputs and outputs at least", len(sizes))
	}
	for _, n := range sizes {
		if n < 1 || n > maxParams {
			return fmt.Errorf("nn: a layer of %d values, want 1..%d", n, maxParams)
		}
	}
	if n := countParams(sizes); n > maxParams {
		return fmt.Errorf("nn: layers %v have %d parameters, at most %d are allowed", sizes, n, maxParams)
	}
	return nil
}

func countParams(sizes []int) (n int) {
	for i := range sizes[1:] {
		n += (sizes[i] + 1) * sizes[i+1]
	}
	return n
}

// slice makes the layers views of the parameters.
func (m *MLP) slice() {
	rest := m.params
	for i := range m.sizes[1:] {
		in, out := m.sizes[i], m.sizes[i+1]
		l := layer{in: in, out: out, weights: rest[:in*out], bias: rest[in*out:][:out]}
		m.layers, rest = append(m.layers, l), rest[(in+1)*out:]
	}
}

// Sizes returns the layer sizes, not to be modified.
func (m *MLP) Sizes() []int { return m.sizes }

// Params returns all weights and biases, layer by layer. Who changes them changes the
// network.
func (m *MLP) Params() []float32 { return m.params }

// Soften divides all outputs by a number, 1 or more: what is preferred stays so, and the
// probabilities of a softmax of them are nearer to each other.
func (m *MLP) Soften(by float32) {
	last := &m.layers[len(m.layers)-1]
	for i := range last.weights {
		last.weights[i] /= by
	}
	for i := range last.bias {
		last.bias[i] /= by
	}
}

// Clone returns a network with the same parameters.
func (m *MLP) Clone() *MLP {
	c := &MLP{sizes: m.sizes, params: append([]float32(nil), m.params...)}
	c.slice()
	return c
}

// Scratch is what working with a network takes beside it. The zero value is ready; one
// is for one goroutine, and for networks of any sizes.
type Scratch struct {
	panels
	batch int
	acts  [][]float32 // what goes into each layer, and what comes out of the last, batch rows each
	delta [2][]float32

	// Of Shared: the columns that are there, and where they are from.
	places                     []place
	columns, outputs, dColumns []float32
}

// fit makes room for batch rows of every layer.
func (s *Scratch) fit(m *MLP, batch int) {
	s.batch = batch
	for len(s.acts) < len(m.sizes) {
		s.acts = append(s.acts, nil)
	}
	for i, n := range m.sizes {
		if i > 0 { // the first are the caller's
			s.acts[i] = grow(s.acts[i], batch*n)
		}
	}
}

// Infer returns what m makes of one row x of inputs. Inputs and units that are zero
// cost nothing. The result is s's, until it is used again.
func (m *MLP) Infer(s *Scratch, x []float32) []float32 {
	s.fit(m, 1)
	for i := range m.layers {
		l, out := &m.layers[i], s.acts[i+1]
		copy(out, l.bias)
		y := blas32.Vector{N: l.out, Data: out, Inc: 1}
		for k, v := range x[:l.in] {
			if v != 0 {
				blas32.Axpy(v, blas32.Vector{N: l.out, Data: l.weights[k*l.out:], Inc: 1}, y)
			}
		}
		if i < len(m.layers)-1 {
			rectify(out)
		}
		x = out
	}
	return x
}

// Forward returns what m makes of a batch of rows x of inputs, which must stay as they
// are until Backward is done. The result is s's, until it is used again.
func (m *MLP) Forward(s *Scratch, x []float32, batch int) []float32 {
	s.fit(m, batch)
	s.acts[0] = x[:batch*m.sizes[0]]
	for i := range m.layers {
		l, out := &m.layers[i], s.acts[i+1]
		s.gemm(batch, l.out, l.in, rows(s.acts[i], l.in), rows(l.weights, l.out), out)
		for r := range batch {
			row := out[r*l.out:][:l.out]
			for k, b := range l.bias {
				row[k] += b
			}
		}
		if i < len(m.layers)-1 {
			rectify(out)
		}
	}
	return s.acts[len(m.layers)]
}

// Backward writes to grad, in the order of Params, the gradient of a loss whose
// gradient by the outputs of the last Forward with s is dOut, summed over the batch.
func (m *MLP) Backward(s *Scratch, dOut, grad []float32) {
	delta, end := dOut, len(grad)
	for i := len(m.layers) - 1; i >= 0; i-- {
		l, in := &m.layers[i], s.acts[i]
		begin := end - (l.in+1)*l.out
		g := grad[begin:end]
		end = begin
		s.gemm(l.in, l.out, s.batch, rows(in, l.in).t(), rows(delta, l.out), g[:l.in*l.out])
		bias := g[l.in*l.out:]
		clear(bias)
		for r := range s.batch {
			for k, d := range delta[r*l.out:][:l.out] {
				bias[k] += d
			}
		}
		if i == 0 {
			return
		}
		below := grow(s.delta[i%2], s.batch*l.in)
		s.delta[i%2] = below
		s.gemm(s.batch, l.in, l.out, rows(delta, l.out), rows(l.weights, l.out).t(), below)
		for k, a := range in {
			if a <= 0 {
				below[k] = 0
			}
		}
		delta = below
	}
}

func rectify(v []float32) {
	for i, x := range v {
		if x < 0 {
			v[i] = 0
		}
	}
}
