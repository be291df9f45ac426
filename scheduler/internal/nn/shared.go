package nn

import "fmt"

// Shared applies one perceptron to every column of its inputs, together with the sum over all columns. Outputs are
// equivariant to the order of columns (Zaheer et al., Deep Sets, NeurIPS 2017, section 3.2). A column of zeros is
// absent.
//
//	inputs    Columns x Width numbers, column by column, then Extra common ones
//	outputs   Columns x Kinds numbers, column by column, 0 for absent columns, then a
//	          common one: the sum over the columns divided by Scale
//
// The perceptron has 2 Width + 1 + Extra inputs: the column, the sum of all columns / Scale, their number / Scale, and
// the common inputs. It has Kinds + 1 outputs.
type Shared struct {
	mlp *MLP
	SharedForm
}

// SharedForm is the dimensions of a Shared.
type SharedForm struct {
	Columns, Width, Kinds, Extra int
	Scale                        float32
}

// Core returns the number of inputs and outputs of the perceptron.
func (f SharedForm) Core() (inputs, outputs int) { return 2*f.Width + 1 + f.Extra, f.Kinds + 1 }

// NewShared applies m to columns. It fails if the sizes of m do not match f.
func NewShared(m *MLP, f SharedForm) (*Shared, error) {
	in, out := f.Core()
	if m.Inputs() != in || m.Outputs() != out || f.Columns < 1 || !(f.Scale > 0) {
		return nil, fmt.Errorf("nn: a perceptron of %d inputs and %d outputs for %d columns, want %d and %d", m.Inputs(), m.Outputs(), f.Columns, in, out)
	}
	return &Shared{m, f}, nil
}

// Inputs returns the number of inputs.
func (n *Shared) Inputs() int { return n.Columns*n.Width + n.Extra }

// Outputs returns the number of outputs.
func (n *Shared) Outputs() int { return n.Columns*n.Kinds + 1 }

// Params returns the parameters of the perceptron.
func (n *Shared) Params() []float32 { return n.mlp.Params() }

// Core returns the perceptron.
func (n *Shared) Core() *MLP { return n.mlp }

// Infer is Forward for one row.
func (n *Shared) Infer(s *Scratch, x []float32) []float32 { return n.Forward(s, x, 1) }

// Forward applies the perceptron to all present columns.
func (n *Shared) Forward(s *Scratch, x []float32, batch int) []float32 {
	s.gather(n, x, batch)
	s.outputs = grow(s.outputs, batch*n.Outputs())
	clear(s.outputs)
	if len(s.places) == 0 {
		return s.outputs
	}
	y, width := n.mlp.Forward(s, s.columns, len(s.places)), n.Kinds+1
	for i, p := range s.places {
		from, to := y[i*width:][:width], s.outputs[p.row*n.Outputs():][:n.Outputs()]
		copy(to[p.column*n.Kinds:], from[:n.Kinds])
		to[len(to)-1] += from[n.Kinds] / n.Scale
	}
	return s.outputs
}

// Backward sums the gradients over all columns.
func (n *Shared) Backward(s *Scratch, dOut, grad []float32) {
	if len(s.places) == 0 {
		clear(grad)
		return
	}
	width := n.Kinds + 1
	s.dColumns = grow(s.dColumns, len(s.places)*width)
	for i, p := range s.places {
		to, from := s.dColumns[i*width:][:width], dOut[p.row*n.Outputs():][:n.Outputs()]
		copy(to, from[p.column*n.Kinds:][:n.Kinds])
		to[n.Kinds] = from[len(from)-1] / n.Scale
	}
	n.mlp.Backward(s, s.dColumns, grad)
}

// place is the origin of a column.
type place struct{ row, column int }

// gather builds the inputs of the perceptron.
func (s *Scratch) gather(n *Shared, x []float32, batch int) {
	inputs, core := n.Inputs(), n.mlp.Inputs()
	s.places, s.columns = s.places[:0], s.columns[:0]
	for r := range batch {
		row := x[r*inputs:][:inputs]
		first := len(s.places)
		for c := range n.Columns {
			if column := row[c*n.Width:][:n.Width]; anyNonZero(column) {
				s.places = append(s.places, place{r, c})
				s.columns = append(s.columns, column...)
				s.columns = append(s.columns, make([]float32, core-n.Width)...)
			}
		}
		present := s.columns[first*core:]
		if len(present) == 0 {
			continue
		}
		all := present[n.Width:core]
		for i := 0; i < len(present); i += core {
			for k, v := range present[i:][:n.Width] {
				all[k] += v / n.Scale
			}
		}
		all[n.Width] = float32(len(present)/core) / n.Scale
		copy(all[n.Width+1:], row[n.Columns*n.Width:])
		for i := core; i < len(present); i += core {
			copy(present[i+n.Width:][:core-n.Width], all)
		}
	}
}

func anyNonZero(v []float32) bool {
	for _, x := range v {
		if x != 0 {
			return true
		}
	}
	return false
}
