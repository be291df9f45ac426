package nn

import (
	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas32"
)

// matrix views a slice as a matrix or its transpose: element (i, j) is at i*stride + j, of a transpose at j*stride +
// i.
type matrix struct {
	data       []float32
	stride     int
	transposed bool
}

func rows(data []float32, width int) matrix { return matrix{data: data, stride: width} }

func (m matrix) t() matrix { return matrix{m.data, m.stride, !m.transposed} }

// Size of the product tile that the kernel computes at once: it fills 12 of the 16 vector registers.
const (
	tileRows = 6
	tileCols = 16
)

// panels are buffers with copies of gemm's operands, in the order in which the kernel reads them.
type panels struct {
	a, b []float32
	tile [tileRows * tileCols]float32
}

// gemm sets the row-major m x n matrix c to a times b; a has k columns and b has k rows.
func (p *panels) gemm(m, n, k int, a, b matrix, c []float32) {
	if !haveKernel {
		gemmGonum(m, n, k, a, b, c)
		return
	}
	p.packB(n, k, b)
	p.a = grow(p.a, tileRows*k)
	for i := 0; i < m; i += tileRows {
		height := min(tileRows, m-i)
		p.packA(i, height, k, a)
		for j := 0; j < n; j += tileCols {
			panel := p.b[j*k:]
			if height == tileRows && j+tileCols <= n {
				kernel(k, &p.a[0], &panel[0], &c[i*n+j], n)
				continue
			}
			kernel(k, &p.a[0], &panel[0], &p.tile[0], tileCols)
			width := min(tileCols, n-j)
			for r := range height {
				copy(c[(i+r)*n+j:(i+r)*n+j+width], p.tile[r*tileCols:])
			}
		}
	}
}

// packA copies height rows of a from row i on, column after column, with zeros below.
func (p *panels) packA(i, height, k int, a matrix) {
	if height < tileRows {
		clear(p.a)
	}
	if !a.transposed {
		for r := range height {
			from := a.data[(i+r)*a.stride:][:k]
			for l, v := range from {
				p.a[l*tileRows+r] = v
			}
		}
		return
	}
	for l := range k {
		copy(p.a[l*tileRows:][:height], a.data[l*a.stride+i:])
	}
}

// packB copies b in strips of tileCols columns, row after row, with zeros to the
// right.
func (p *panels) packB(n, k int, b matrix) {
	strips := (n + tileCols - 1) / tileCols
	p.b = grow(p.b, strips*tileCols*k)
	for s := range strips {
		j, to := s*tileCols, p.b[s*tileCols*k:][:tileCols*k]
		width := min(tileCols, n-j)
		if width < tileCols {
			clear(to)
		}
		if !b.transposed {
			for l := range k {
				copy(to[l*tileCols:][:width], b.data[l*b.stride+j:])
			}
			continue
		}
		for c := range width {
			from := b.data[(j+c)*b.stride:][:k]
			for l, v := range from {
				to[l*tileCols+c] = v
			}
		}
	}
}

// gemmGonum is gemm for machines without the kernel.
func gemmGonum(m, n, k int, a, b matrix, c []float32) {
	general := func(x matrix, height, width int) (blas.Transpose, blas32.General) {
		if !x.transposed {
			return blas.NoTrans, blas32.General{Rows: height, Cols: width, Stride: x.stride, Data: x.data}
		}
		return blas.Trans, blas32.General{Rows: width, Cols: height, Stride: x.stride, Data: x.data}
	}
	ta, ga := general(a, m, k)
	tb, gb := general(b, k, n)
	blas32.Gemm(ta, tb, 1, ga, gb, 0, blas32.General{Rows: m, Cols: n, Stride: n, Data: c})
}

// grow returns a slice of n values, in the memory of s if that suffices.
func grow(s []float32, n int) []float32 {
	if cap(s) < n {
		return make([]float32, n)
	}
	return s[:n]
}
