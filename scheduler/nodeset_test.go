package scheduler

import (
	"testing"

	"pgregory.net/rapid"
)

// TestNodeSet compares with a map, on few nodes and on more than a word of every level
// holds.
func TestNodeSet(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.SampledFrom([]int{1, 64, 65, 5000, 300_000, 1_000_000}).Draw(t, "nodes")
		s, in := newNodeSet(n), map[int]bool{}
		for range rapid.IntRange(1, 40).Draw(t, "steps") {
			node := rapid.IntRange(0, n-1).Draw(t, "node")
			if in[node] {
				s.remove(node)
				delete(in, node)
			} else {
				s.add(node)
				in[node] = true
			}
			if s.count != len(in) {
				t.Fatalf("%d members, want %d", s.count, len(in))
			}
			from, want := rapid.IntRange(0, n-1).Draw(t, "from"), -1
			for m := range in {
				if m >= from && (want < 0 || m < want) {
					want = m
				}
			}
			if got := s.next(from); got != want {
				t.Fatalf("next(%d) of %v is %d, want %d", from, in, got, want)
			}
		}
		if got := s.clone().next(0); got != s.next(0) {
			t.Fatalf("a clone begins with %d, the set with %d", got, s.next(0))
		}
	})
}
