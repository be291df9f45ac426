package nn

import "fmt"

// Shared is one perceptron that is applied to every column of its inputs, together with
// what all columns come to, so that it makes no difference in which order they are
// (Zaheer et al., Deep Sets, NeurIPS 2017, section 3.2). A column whose numbers are all
// 0 is not there.
//
//	inputs    Columns x Width numbers, column after column, then Extra for all
//	outputs   Columns x Kinds numbers, column after column, 0 of those not there, then one
//	          for all: the sum over the columns over Scale
//
// The perceptron has 2 Width + 1 + Extra inputs, the column, the sum of all columns over
// Scale, their number over Scale, and those for all, and Kinds + 1 outputs.
type Shared struct {
	mlp *MLP
	SharedForm
}

// SharedForm is the form of a Shared.
type SharedForm struct {
	Columns, Width, Kinds, Extra int
	Scale                        float32
}

// Core returns how many numbers go into and come out of the perceptron.
func (f SharedForm) Core() (inputs, outputs int) { return 2*f.Width + 1 + f.Extra, f.Kinds + 1 }

// NewShared applies a perceptron to columns.
func NewShared(m *MLP, f SharedForm) (*Shared, error) {
	in, out := f.Core()
	if m.Inputs() != in || m.Outputs() != out || f.Columns < 1 || !(f.Scale > 0) {
		return nil, fmt.Errorf("nn: a perceptron of %d inputs and %d outputs for %d columns, want %d and %d", m.Inputs(), m.Outputs(), f.Columns, in, out)
	}
	return &Shared{m, f}, nil
}

// Inputs returns how many numbers go in.
func (n *Shared) Inputs() int { return n.Columns*n.Width + n.Extra }

// Outputs returns how many numbers come out.
func (n *Shared) Outputs() int { return n.Columns*n.Kinds + 1 }

// Params returns those of the perceptron.
func (n *Shared) Params() []float32 { return n.mlp.Params() }

// Core returns the perceptron.
func (n *Shared) Core() *MLP { return n.mlp }

// Infer is Forward of one row.
func (n *Shared) Infer(s *Scratch, x []float32) []float32 { return n.Forward(s, x, 1) }

// Forward applies the perceptron to all columns that are there.
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

// place is where a column is from.
type place struct{ row, column int }

// gather makes the inputs of the perceptron.
func (s *Scratch) gather(n *Shared, x []float32, batch int) {
	inputs, core := n.Inputs(), n.mlp.Inputs()
	s.places, s.columns = s.places[:0], s.columns[:0]
	for r := range batch {
		row := x[r*inputs:][:inputs]
		first := len(s.places)
		for c := range n.Columns {
			if column := row[c*n.Width:][:n.Width]; someOf(column) {
				s.places = append(s.places, place{r, c})
				s.columns = append(s.columns, column...)
				s.columns = append(s.columns, make([]float32, core-n.Width)...)
			}
		}
		those := s.columns[first*core:]
		if len(those) == 0 {
			continue
		}
		all := those[n.Width:core]
		for i := 0; i < len(those); i += core {
			for k, v := range those[i:][:n.Width] {
				all[k] += v / n.Scale
			}
		}
		all[n.Width] = float32(len(those)/core) / n.Scale
		copy(all[n.Width+1:], row[n.Columns*n.Width:])
		for i := core; i < len(those); i += core {
			copy(those[i+n.Width:][:core-n.Width], all)
		}
	}
}

func someOf(v []float32) bool {
	for _, x := range v {
		if x != 0 {
			return true
		}
	}
	return false
}
