package nn

import (
	"math"
	"testing"
)

func newShared(t testing.TB) *Shared {
	t.Helper()
	f := SharedForm{Columns: 5, Width: 3, Kinds: 2, Extra: 1, Scale: 4}
	in, out := f.Core()
	m := newMLP(t, 8, in, 9, 8, out)
	r := stream(9)
	for i := range m.params {
		m.params[i] = float32(0.5 * r.NormFloat64())
	}
	n, err := NewShared(m, f)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// TestSharedIsEquivariant: permuted columns have permuted outputs, and absent columns have none.
func TestSharedIsEquivariant(t *testing.T) {
	n := newShared(t)
	x := draw(stream(1), n.Inputs())
	clear(x[3*4 : 3*5]) // the last is not there
	y := append([]float32(nil), n.Infer(&Scratch{}, x)...)
	order := []int{3, 4, 0, 2, 1}
	moved := append([]float32(nil), x...)
	for from, to := range order {
		copy(moved[3*to:], x[3*from:][:3])
	}
	got := n.Infer(&Scratch{}, moved)
	for from, to := range order {
		for k := range 2 {
			if d := got[2*to+k] - y[2*from+k]; math.Abs(float64(d)) > 1e-5 {
				t.Errorf("column %d, output %d: %g, moved %g", from, k, y[2*from+k], got[2*to+k])
			}
		}
	}
	if math.Abs(float64(got[10]-y[10])) > 1e-5 || y[8] != 0 || y[9] != 0 {
		t.Errorf("for all %g, moved %g; of the one that is not there %v", y[10], got[10], y[8:10])
	}
}

// TestSharedGradient checks against finite differences in single precision, with large steps that keep every unit on
// its side.
func TestSharedGradient(t *testing.T) {
	const batch = 4
	n := newShared(t)
	x, weights := draw(stream(2), batch*n.Inputs()), draw(stream(3), batch*n.Outputs())
	clear(x[:6])
	loss := func() (sum float64) {
		core, row := n.mlp, n.Inputs()
		for b := range batch {
			sum += sharedExact(n, core, x[b*row:][:row], weights[b*n.Outputs():])
		}
		return sum
	}
	var s Scratch
	n.Forward(&s, x, batch)
	grad := make([]float32, len(n.Params()))
	n.Backward(&s, weights, grad)
	for i, was := range n.Params() {
		const h = 1.0 / 1024
		n.Params()[i] = was + h
		up := loss()
		n.Params()[i] = was - h
		down := loss()
		n.Params()[i] = was
		if want := (up - down) / (2 * h); math.Abs(float64(grad[i])-want) > 0.02*math.Max(1, math.Abs(want)) {
			t.Errorf("gradient %d is %g, differences say %g", i, grad[i], want)
		}
	}
}

// sharedExact is the weighted sum of the outputs of n for a row, in double precision.
func sharedExact(n *Shared, core *MLP, x, weights []float32) (sum float64) {
	all, there := make([]float64, n.Width), 0.0
	for c := range n.Columns {
		if anyNonZero(x[c*n.Width:][:n.Width]) {
			there++
		}
		for k := range n.Width {
			all[k] += float64(x[c*n.Width+k]) / float64(n.Scale)
		}
	}
	for c := range n.Columns {
		column := x[c*n.Width:][:n.Width]
		if !anyNonZero(column) {
			continue
		}
		in := append(doubles(column), all...)
		in = append(in, there/float64(n.Scale))
		in = append(in, doubles(x[n.Columns*n.Width:])...)
		y := exact(core.sizes, doubles(core.params), in)
		for k := range n.Kinds {
			sum += float64(weights[c*n.Kinds+k]) * y[k]
		}
		sum += float64(weights[n.Columns*n.Kinds]) * y[n.Kinds] / float64(n.Scale)
	}
	return sum
}

func TestSharedWithoutColumns(t *testing.T) {
	n := newShared(t)
	var s Scratch
	for _, v := range n.Forward(&s, make([]float32, n.Inputs()), 1) {
		if v != 0 {
			t.Errorf("got %g of nothing", v)
		}
	}
	grad := []float32{1}
	if n.Backward(&s, make([]float32, n.Outputs()), grad); grad[0] != 0 {
		t.Errorf("gradient %g of nothing", grad[0])
	}
}

func TestNewSharedRefuses(t *testing.T) {
	m := newMLP(t, 1, 7, 4, 2)
	if _, err := NewShared(m, SharedForm{Columns: 3, Width: 3, Kinds: 2, Scale: 1}); err == nil {
		t.Error("a perceptron of other sizes was accepted")
	}
}
