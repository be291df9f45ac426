package nn

import (
	"fmt"
	"math"
	"math/rand/v2"

	"gonum.org/v1/gonum/blas/blas32"
)

// MLP is a multilayer perceptron: linear layers with rectified linear units between them and a linear output.
// Concurrent use is safe while the parameters do not change.
type MLP struct {
	sizes  []int
	params []float32
	layers []layer
}

// layer is a view of the parameters of one layer.
type layer struct {
	in, out int
	weights []float32 // row major by input: the weights of an input are contiguous
	bias    []float32
}

// NewMLP returns a network of the given layer sizes, inputs first, outputs last. Weights follow He et al. for
// rectified linear units (ICCV 2015, section 2.2); those of the last layer are scaled by 1/100, so that initial
// outputs are nearly equal. Biases are 0. A nil stream leaves all parameters at 0.
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

// maxParams bounds the size of a network, and so the memory for a damaged file.
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

// slice sets the layers to views of the parameters.
func (m *MLP) slice() {
	rest := m.params
	for i := range m.sizes[1:] {
		in, out := m.sizes[i], m.sizes[i+1]
		l := layer{in: in, out: out, weights: rest[:in*out], bias: rest[in*out:][:out]}
		m.layers, rest = append(m.layers, l), rest[(in+1)*out:]
	}
}

// Sizes returns the layer sizes; the caller must not change them.
func (m *MLP) Sizes() []int { return m.sizes }

// Params returns all weights and biases, layer by layer; writing to them changes the network.
func (m *MLP) Params() []float32 { return m.params }

// Soften divides all outputs by a number of at least 1. Their order stays, and softmax probabilities move closer
// together.
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

// Scratch is the working memory of Infer, Forward and Backward. The zero value is ready. It serves networks of any
// size, but one goroutine at a time.
type Scratch struct {
	panels
	batch int
	acts  [][]float32 // inputs of each layer and outputs of the last, batch rows each
	delta [2][]float32

	// Columns of Shared that are present, with their origin.
	places                     []place
	columns, outputs, dColumns []float32
}

// fit allocates batch rows for every layer.
func (s *Scratch) fit(m *MLP, batch int) {
	s.batch = batch
	for len(s.acts) < len(m.sizes) {
		s.acts = append(s.acts, nil)
	}
	for i, n := range m.sizes {
		if i > 0 { // the first belong to the caller
			s.acts[i] = grow(s.acts[i], batch*n)
		}
	}
}

// Infer returns the outputs of one row of inputs. Zero inputs and units cost no time. The result is valid until the
// next use of s.
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

// Forward returns the outputs of a batch of rows of inputs. The caller must not change x before Backward returns. The
// result is valid until the next use of s.
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

// Backward writes the gradient of a loss to grad, in the order of Params, summed over the batch. dOut is the gradient
// of the loss by the outputs of the last Forward with s.
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
