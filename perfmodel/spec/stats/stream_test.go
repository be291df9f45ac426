package stats

import "testing"

// TestStream: the numbers of a seed and a name never change, since stored results depend on them. Other seeds and
// other names give other numbers.
func TestStream(t *testing.T) {
	for _, c := range []struct {
		seed uint64
		name string
		want uint64
	}{{1, "arrivals", 8626657296654601543}, {1, "noise", 12284553255130169438}, {2, "noise", 1778393698499637391}, {1, "", 12999725452524378260}} {
		if got := Stream(c.seed, c.name).Uint64(); got != c.want {
			t.Errorf("seed %d, name %q: first number %d, want %d", c.seed, c.name, got, c.want)
		}
	}
}
