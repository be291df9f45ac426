package nn

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
)

func draw(r *rand.Rand, n int) []float32 {
	v := make([]float32, n)
	for i := range v {
		v[i] = float32(r.NormFloat64())
	}
	return v
}

func TestGemm(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	var p panels
	for _, size := range [][3]int{{1, 1, 1}, {6, 16, 3}, {7, 17, 5}, {5, 15, 33}, {256, 121, 256}, {13, 40, 1}} {
		m, n, k := size[0], size[1], size[2]
		a, b := draw(r, m*k), draw(r, k*n)
		for form, ab := range map[string][2]matrix{
			"AB":   {rows(a, k), rows(b, n)},
			"A'B":  {rows(a, m).t(), rows(b, n)},
			"AB'":  {rows(a, k), rows(b, k).t()},
			"A'B'": {rows(a, m).t(), rows(b, k).t()},
		} {
			for name, gemm := range map[string]func(int, int, int, matrix, matrix, []float32){"own": p.gemm, "gonum": gemmGonum} {
				t.Run(fmt.Sprint(name, form, size), func(t *testing.T) {
					got := draw(r, m*n)
					gemm(m, n, k, ab[0], ab[1], got)
					for i := range m {
						for j := range n {
							want, scale := 0.0, 0.0
							for l := range k {
								v := float64(ab[0].at(i, l)) * float64(ab[1].at(l, j))
								want, scale = want+v, scale+math.Abs(v)
							}
							if d := math.Abs(float64(got[i*n+j]) - want); !(d <= 1e-5*scale) {
								t.Fatalf("(%d, %d) = %g, want %g", i, j, got[i*n+j], want)
							}
						}
					}
				})
			}
		}
	}
}

func (m matrix) at(i, j int) float32 {
	if m.transposed {
		i, j = j, i
	}
	return m.data[i*m.stride+j]
}

func BenchmarkGemm(b *testing.B) {
	r := rand.New(rand.NewPCG(1, 2))
	const n = 256
	x, y, z := draw(r, n*n), draw(r, n*n), make([]float32, n*n)
	var p panels
	for name, gemm := range map[string]func(int, int, int, matrix, matrix, []float32){"own": p.gemm, "gonum": gemmGonum} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				gemm(n, n, n, rows(x, n), rows(y, n), z)
			}
			b.ReportMetric(2*n*n*n*float64(b.N)/b.Elapsed().Seconds()/1e9, "GFLOP/s")
		})
	}
}
