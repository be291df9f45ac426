package nn

import (
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

func stream(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 7)) }

func newMLP(t testing.TB, seed uint64, sizes ...int) *MLP {
	t.Helper()
	m, err := NewMLP(stream(seed), sizes...)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// exact computes the outputs of one row in double precision by the definition.
func exact(sizes []int, params, x []float64) []float64 {
	for i := range sizes[1:] {
		in, out := sizes[i], sizes[i+1]
		y := append([]float64(nil), params[in*out:][:out]...)
		for k := range in {
			for o := range out {
				y[o] += x[k] * params[k*out+o]
			}
		}
		for o := range y {
			if i < len(sizes)-2 {
				y[o] = max(y[o], 0)
			}
		}
		x, params = y, params[(in+1)*out:]
	}
	return x
}

func doubles(v []float32) []float64 {
	out := make([]float64, len(v))
	for i, x := range v {
		out[i] = float64(x)
	}
	return out
}

func TestInferAndForwardAgree(t *testing.T) {
	m := newMLP(t, 1, 19, 33, 17, 9)
	x := draw(stream(2), 7*19)
	for i := range x {
		if i%3 == 0 {
			x[i] = 0
		}
	}
	var s, one Scratch
	batch := m.Forward(&s, x, 7)
	for r := range 7 {
		got := m.Infer(&one, x[r*19:][:19])
		want := exact(m.Sizes(), doubles(m.Params()), doubles(x[r*19:][:19]))
		for i := range want {
			if math.Abs(float64(got[i])-want[i]) > 1e-5 || math.Abs(float64(batch[r*9+i])-want[i]) > 1e-5 {
				t.Fatalf("row %d, output %d: %g inferred, %g in a batch, want %g", r, i, got[i], batch[r*9+i], want[i])
			}
		}
	}
}

// TestGradients checks the gradients of all losses against finite differences in double precision.
func TestGradients(t *testing.T) {
	const in, out, batch = 11, 7, 5
	sizes := []int{in, 13, 12, out}
	m := newMLP(t, 3, sizes...)
	r := stream(4)
	for i := range m.params {
		m.params[i] = float32(0.5 * r.NormFloat64()) // the last layer too
	}
	x := draw(r, batch*in)
	allowed, action, weight := make([]bool, batch*out), make([]int, batch), draw(r, batch)
	for i := range allowed {
		allowed[i] = r.IntN(3) > 0
	}
	for b := range batch {
		action[b] = r.IntN(out)
		allowed[b*out+action[b]] = true
	}
	right := make([]bool, batch*out)
	for i := range right {
		right[i] = allowed[i] && (i%2 == 0 || i%out == action[i/out])
	}
	target := draw(r, batch)
	for name, loss := range map[string]struct {
		float func(z, dz []float32, b int)
		exact func(z []float64, b int) float64
	}{
		"cross-entropy": {
			func(z, dz []float32, b int) {
				Softmax(z, z, allowed[b*out:][:out])
				CrossEntropy(z, action[b], weight[b], dz)
			},
			func(z []float64, b int) float64 {
				return -float64(weight[b]) * math.Log(softmaxExact(z, allowed[b*out:])[action[b]])
			},
		},
		"any-of": {
			func(z, dz []float32, b int) {
				Softmax(z, z, allowed[b*out:][:out])
				AnyOf(z, right[b*out:][:out], weight[b], dz)
			},
			func(z []float64, b int) float64 {
				sum := 0.0
				for i, p := range softmaxExact(z, allowed[b*out:]) {
					if right[b*out+i] {
						sum += p
					}
				}
				return -float64(weight[b]) * math.Log(sum)
			},
		},
		"entropy": {
			func(z, dz []float32, b int) {
				Softmax(z, z, allowed[b*out:][:out])
				Entropy(z, weight[b], dz)
			},
			func(z []float64, b int) float64 {
				h := 0.0
				for _, p := range softmaxExact(z, allowed[b*out:]) {
					if p > 0 {
						h -= p * math.Log(p)
					}
				}
				return -float64(weight[b]) * h
			},
		},
		"value": {
			func(z, dz []float32, b int) { dz[0] += z[0] - target[b] },
			func(z []float64, b int) float64 { return (z[0] - float64(target[b])) * (z[0] - float64(target[b])) / 2 },
		},
	} {
		t.Run(name, func(t *testing.T) {
			var s Scratch
			z, dz := m.Forward(&s, x, batch), make([]float32, batch*out)
			for b := range batch {
				loss.float(z[b*out:][:out], dz[b*out:][:out], b)
			}
			grad := draw(r, len(m.params)) // overwritten
			m.Backward(&s, dz, grad)
			params := doubles(m.params)
			total := func() (sum float64) {
				for b := range batch {
					sum += loss.exact(exact(sizes, params, doubles(x[b*in:][:in])), b)
				}
				return sum
			}
			for i := range params {
				const h = 1e-6
				was := params[i]
				params[i] = was + h
				up := total()
				params[i] = was - h
				down := total()
				params[i] = was
				want := (up - down) / (2 * h)
				if math.Abs(float64(grad[i])-want) > 1e-4*math.Max(1, math.Abs(want)) {
					t.Fatalf("gradient %d is %g, differences say %g", i, grad[i], want)
				}
			}
		})
	}
}

func softmaxExact(z []float64, allowed []bool) []float64 {
	sum, p := 0.0, make([]float64, len(z))
	for i := range z {
		if allowed[i] {
			p[i] = math.Exp(z[i])
			sum += p[i]
		}
	}
	for i := range p {
		p[i] /= sum
	}
	return p
}

// TestSoften: outputs keep their order and shrink by the factor.
func TestSoften(t *testing.T) {
	m, err := NewMLP(rand.New(rand.NewPCG(1, 2)), 3, 5, 4)
	if err != nil {
		t.Fatal(err)
	}
	for i := range m.Params() {
		m.Params()[i] += 0.1 * float32(i%7)
	}
	var s Scratch
	x := []float32{1, -2, 3}
	before := slices.Clone(m.Infer(&s, x))
	m.Soften(8)
	for i, z := range m.Infer(&s, x) {
		if math.Abs(float64(8*z-before[i])) > 1e-4*math.Abs(float64(before[i])) || before[i] == 0 {
			t.Errorf("output %d is %g, was %g", i, z, before[i])
		}
	}
}

func TestSoftmaxIsFiniteAndMasked(t *testing.T) {
	p := make([]float32, 4)
	Softmax(p, []float32{1e30, -1e30, 5, 1e30}, []bool{false, true, true, false})
	if p[0] != 0 || p[1] != 0 || p[2] != 1 || p[3] != 0 {
		t.Errorf("got %v, want [0 0 1 0]", p)
	}
}

// TestAdamFirstSteps: with a constant gradient every step has length Rate for any gradient (Kingma and Ba, section
// 2.1).
func TestAdamFirstSteps(t *testing.T) {
	a, params := Adam{Rate: 0.01}, []float32{1, 1}
	for range 10 {
		if err := a.Step(params, []float32{1000, -0.001}); err != nil {
			t.Fatal(err)
		}
	}
	if math.Abs(float64(params[0])-0.9) > 1e-4 || math.Abs(float64(params[1])-1.1) > 1e-4 {
		t.Errorf("got %v, want 0.9 and 1.1", params)
	}
}

func TestAdamRefusesWhatIsNotFinite(t *testing.T) {
	for _, bad := range []float64{math.NaN(), math.Inf(1)} {
		a, params := Adam{Rate: 0.1, Clip: 1}, []float32{1, 2}
		if err := a.Step(params, []float32{1, float32(bad)}); !errors.Is(err, ErrDiverged) || params[0] != 1 || params[1] != 2 {
			t.Errorf("gradient %g: %v, parameters %v", bad, err, params)
		}
	}
}

// TestLearns: the network learns which input is the largest.
func TestLearns(t *testing.T) {
	const n, batch = 5, 64
	m, r := newMLP(t, 5, n, 32, 32, n), stream(6)
	adam, grad := Adam{Rate: 0.005}, make([]float32, len(m.Params()))
	all := []bool{true, true, true, true, true}
	var s Scratch
	right := 0
	for step := range 300 {
		x, dz := draw(r, batch*n), make([]float32, batch*n)
		z := m.Forward(&s, x, batch)
		for b := range batch {
			row, best := z[b*n:][:n], 0
			for i := range n {
				if x[b*n+i] > x[b*n+best] {
					best = i
				}
			}
			Softmax(row, row, all)
			if row[best] > 0.5 && step >= 290 {
				right++
			}
			CrossEntropy(row, best, 1.0/batch, dz[b*n:][:n])
		}
		m.Backward(&s, dz, grad)
		if err := adam.Step(m.Params(), grad); err != nil {
			t.Fatal(err)
		}
	}
	if share := float64(right) / (10 * batch); share < 0.85 {
		t.Errorf("%.0f %% right after 300 steps, want at least 85", 100*share)
	}
}

func TestNewMLPRefuses(t *testing.T) {
	for _, sizes := range [][]int{{}, {3}, {3, 0, 2}, {-1, 2}, {1 << 25, 1 << 25}, {1 << 14, 1 << 14}} {
		if _, err := NewMLP(nil, sizes...); err == nil {
			t.Errorf("%v was accepted", sizes)
		}
	}
}

// BenchmarkInfer is a decision among the actions for 40 jobs of 8 types; 10 of them are present.
func BenchmarkInfer(b *testing.B) {
	m := newMLP(b, 1, 40*13, 256, 256, 121)
	x, r := make([]float32, 40*13), stream(2)
	for j := range 10 {
		x[13*j+r.IntN(8)] = 1
		copy(x[13*j+8:][:5], draw(r, 5))
	}
	allowed := make([]bool, 121)
	for i := range allowed {
		allowed[i] = i%3 > 0 || i == 120
	}
	full := draw(r, 40*13)
	for name, x := range map[string][]float32{"ten-jobs": x, "dense": full} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			var s Scratch
			p := make([]float32, 121)
			for b.Loop() {
				Softmax(p, m.Infer(&s, x), allowed)
			}
		})
	}
}

// BenchmarkUpdate is an update of a policy network of layers 256-256-256-121 by a batch of 256.
func BenchmarkUpdate(b *testing.B) {
	const batch, out = 256, 121
	m, r := newMLP(b, 1, 256, 256, 256, out), stream(2)
	x, dz, grad := draw(r, batch*256), make([]float32, batch*out), make([]float32, len(m.Params()))
	allowed := make([]bool, out)
	for i := range allowed {
		allowed[i] = true
	}
	adam := Adam{Rate: 1e-4, Clip: 1}
	var s Scratch
	b.ReportAllocs()
	for b.Loop() {
		z := m.Forward(&s, x, batch)
		clear(dz)
		for i := range batch {
			row := z[i*out:][:out]
			Softmax(row, row, allowed)
			CrossEntropy(row, i%out, 1.0/batch, dz[i*out:][:out])
			Entropy(row, 0.1/batch, dz[i*out:][:out])
		}
		m.Backward(&s, dz, grad)
		if err := adam.Step(m.Params(), grad); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "updates/s")
}
