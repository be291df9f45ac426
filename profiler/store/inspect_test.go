package store

import "testing"

// Zeros are counted up to the first other byte, on both sides of a page's end.
func TestLeadingZeros(t *testing.T) {
	for _, n := range []int{0, 1, len(zeros) - 1, len(zeros), len(zeros) + 1, 3*len(zeros) + 7} {
		b := make([]byte, n)
		if got := leadingZeros(b); got != n || !allZero(b) {
			t.Errorf("%d zeros, want %d", got, n)
		}
		for i := 0; i < n; i += 41 {
			b[i] = 1
			if got := leadingZeros(b); got != i || allZero(b) {
				t.Fatalf("%d zeros of %d bytes, want %d", got, n, i)
			}
			b[i] = 0
		}
	}
}
