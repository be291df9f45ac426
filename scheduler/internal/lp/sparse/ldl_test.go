package sparse

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// quasidefinite returns a random matrix [E A'; A -F] in random order, and the signs of its rows.
func quasidefinite(r *rand.Rand, n int, density float64) (*Upper, []float64) {
	signs := make([]float64, n)
	for i := range signs {
		signs[i] = 1 - 2*float64(r.IntN(2))
	}
	dense := make([][]float64, n)
	for i := range dense {
		dense[i] = make([]float64, n)
	}
	for j := range n {
		dense[j][j] = signs[j]
		for i := range j {
			if r.Float64() < density {
				v := r.NormFloat64()
				dense[i][j] = v
				if signs[i] == signs[j] { // keep both diagonal blocks dominant
					dense[i][i] += signs[i] * math.Abs(v)
					dense[j][j] += signs[j] * math.Abs(v)
				}
			}
		}
	}
	s := &Upper{N: n, Ptr: []int{0}}
	for j := range n {
		for i := range j + 1 {
			if dense[i][j] != 0 {
				s.Idx = append(s.Idx, i)
				s.Val = append(s.Val, dense[i][j])
			}
		}
		s.Ptr = append(s.Ptr, len(s.Idx))
	}
	return s, signs
}

func TestLDLSolves(t *testing.T) {
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 2))
		n := 1 + r.IntN(60)
		s, signs := quasidefinite(r, n, []float64{0.02, 0.1, 0.5}[r.IntN(3)])
		f := NewLDL(s, signs)
		f.Factor(s.Val)
		want := make([]float64, n)
		for i := range want {
			want[i] = r.NormFloat64()
		}
		b := make([]float64, n)
		for j := range n {
			for k := s.Ptr[j]; k < s.Ptr[j+1]; k++ {
				i := s.Idx[k]
				b[i] += s.Val[k] * want[j]
				if i != j {
					b[j] += s.Val[k] * want[i]
				}
			}
		}
		f.Solve(b)
		for i := range b {
			if math.Abs(b[i]-want[i]) > 1e-9*(1+math.Abs(want[i])) {
				t.Fatalf("seed %d, %d rows: x[%d] = %v, want %v", seed, n, i, b[i], want[i])
			}
		}
	}
}

func TestDependentRowIsLeftOut(t *testing.T) {
	// The third row is the sum of the first two.
	s := &Upper{N: 3, Ptr: []int{0, 1, 2, 5}, Idx: []int{0, 1, 0, 1, 2}, Val: []float64{1, 1, 1, 1, 2}}
	f := NewLDL(s, []float64{1, 1, 1})
	f.Factor(s.Val)
	x := []float64{1, 2, 3}
	f.Solve(x)
	for i, want := range []float64{1, 2, 3} {
		got := s.Val[0]*x[i] + x[2]
		if i == 2 {
			got = x[0] + x[1] + 2*x[2]
		}
		if math.Abs(got-want) > 1e-12 {
			t.Errorf("row %d is %v, want %v; x = %v", i, got, want, x)
		}
	}
}

func TestOrderIsAPermutation(t *testing.T) {
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 3))
		s, _ := quasidefinite(r, r.IntN(80), []float64{0.02, 0.1, 0.5, 1}[r.IntN(4)])
		order := Order(s)
		if len(order) != s.N {
			t.Fatalf("seed %d: %d of %d rows ordered", seed, len(order), s.N)
		}
		slices.Sort(order)
		for i, v := range order {
			if i != v {
				t.Fatalf("seed %d: row %d is ordered twice or never", seed, i)
			}
		}
	}
}

// grid returns the pattern of a k x k five-point stencil.
func grid(k int) *Upper {
	s := &Upper{N: k * k, Ptr: []int{0}}
	for j := range k * k {
		if j >= k {
			s.Idx = append(s.Idx, j-k)
		}
		if j%k > 0 {
			s.Idx = append(s.Idx, j-1)
		}
		s.Idx = append(s.Idx, j)
		s.Ptr = append(s.Ptr, len(s.Idx))
	}
	return s
}

// A nested dissection of a k x k grid has about 31/4 k² log2 k entries (George, Nested dissection of a regular finite
// element mesh, SIAM J. Numer. Anal. 10(2), 1973); minimum degree is close. The natural order has k³.
func TestOrderKeepsAGridSparse(t *testing.T) {
	const k = 64
	f := NewLDL(grid(k), ones(k*k))
	if got, most := f.Entries(), 31*k*k*6/4; got > most {
		t.Errorf("%d entries, want at most %d", got, most)
	}
}

// An arrow matrix with its head first fills completely unless the order moves the head last.
func TestOrderPutsTheHeadOfAnArrowLast(t *testing.T) {
	const n = 1000
	s := &Upper{N: n, Ptr: []int{0, 1}, Idx: []int{0}}
	for j := 1; j < n; j++ {
		s.Idx = append(s.Idx, 0, j)
		s.Ptr = append(s.Ptr, len(s.Idx))
	}
	if got := NewLDL(s, ones(n)).Entries(); got != n-1 {
		t.Errorf("%d entries, want %d", got, n-1)
	}
}

func ones(n int) []float64 {
	v := make([]float64, n)
	for i := range v {
		v[i] = 1
	}
	return v
}

func BenchmarkFactor(b *testing.B) {
	const k = 64
	s := grid(k)
	s.Val = make([]float64, len(s.Idx))
	for j := range s.N {
		for p := s.Ptr[j]; p < s.Ptr[j+1]; p++ {
			s.Val[p] = -1
			if s.Idx[p] == j {
				s.Val[p] = 4.01
			}
		}
	}
	b.Run("order", func(b *testing.B) {
		for b.Loop() {
			Order(s)
		}
	})
	f := NewLDL(s, ones(s.N))
	b.Run("numbers", func(b *testing.B) {
		for b.Loop() {
			f.Factor(s.Val)
		}
	})
}
