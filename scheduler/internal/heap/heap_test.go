package heap

import (
	"cmp"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// Items come out in ascending order, whether they were pushed, set before Init, or
// changed on top.
func TestHeap(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h := Heap[int]{Items: rapid.SliceOf(rapid.IntRange(0, 20)).Draw(t, "set"), Less: func(a, b int) bool { return a < b }}
		h.Init()
		want := slices.Clone(h.Items)
		for _, x := range rapid.SliceOf(rapid.IntRange(0, 20)).Draw(t, "pushed") {
			h.Push(x)
			want = append(want, x)
		}
		if len(want) > 0 {
			slices.SortFunc(want, cmp.Compare[int])
			h.Items[0] += 7
			want[0] += 7
			h.FixFirst()
		}
		slices.Sort(want)
		var got []int
		for len(h.Items) > 0 {
			got = append(got, h.Pop())
		}
		if !slices.Equal(got, want) {
			t.Fatalf("got %v, want %v", got, want)
		}
	})
}
