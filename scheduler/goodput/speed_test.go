package goodput

import (
	"math"
	"testing"

	"pgregory.net/rapid"

	"github.com/pacer-ml/pacer/perfmodel/spec"
)

func TestRing(t *testing.T) {
	for _, c := range []struct {
		a, b []int
		same bool
	}{
		{[]int{2, 1}, []int{1, 2}, true},
		{[]int{4, 3, 1}, []int{1, 4, 3}, true},
		{[]int{4, 3, 1}, []int{1, 3, 4}, false},
		{[]int{1, 1, 2}, []int{1, 2, 1}, true},
		{[]int{2, 2}, []int{2, 2, 2}, false},
		{[]int{10}, []int{1}, false},
	} {
		if got := ring(c.a) == ring(c.b); got != c.same {
			t.Errorf("%v and %v are the same ring: %v", c.a, c.b, got)
		}
	}
}

// TestSpeeds checks that measured placements are exact, and linear between
// micro-batches. For others the grid is exact, since times here are linear in nodes,
// devices per node and samples.
func TestSpeeds(t *testing.T) {
	_, s, err := tables(t, "app").lookup("app", "T4")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		shape string
		local int
		known bool
	}{
		{"2", 10, true}, {"2", 13, true}, {"4+3+1", 20, true}, // measured
		{"3+3", 7, true}, {"4x4", 7, true}, {"4+4+4+3+3", 20, true}, {"7x2", 11, true}, // between
		{"2", 4, false}, {"2", 21, false}, {"9x4", 10, false}, {"8+8", 10, false},
	} {
		shape, err := spec.ParseShape(c.shape)
		if err != nil {
			t.Fatal(err)
		}
		got, err := s.at(shape, c.local)
		if (err == nil) != c.known {
			t.Errorf("%d samples on %s: error %v", c.local, c.shape, err)
			continue
		}
		if want := step(shape.Nodes(), shape.Total(), c.local); c.known && (math.Abs(got.step-want) > 1e-9 || math.Abs(got.sync-float64(shape.Nodes())/2) > 1e-9) {
			t.Errorf("%d samples on %s: %+v, want a step of %g s", c.local, c.shape, got, want)
		}
	}
}

// TestTetrahedra checks that a cube of six tetrahedra reproduces every linear function,
// and has no values outside. A duplicate or flat tetrahedron has no effect.
func TestTetrahedra(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		draw := func(name string) float64 { return rapid.Float64Range(-5, 5).Draw(t, name) }
		a, b, c, d := draw("a"), draw("b"), draw("c"), draw("d")
		linear := func(n, r, l float64) timing { return timing{100 + a*n + b*r + c*l, d + a*l} }
		var rows []measurement
		for i := range 8 {
			p := point{nodes: float64(i >> 2), replicas: float64(i >> 1 & 1), local: float64(i & 1)}
			p.timing = linear(p.nodes, p.replicas, p.local)
			rows = append(rows, measurement{point: p})
		}
		cells := [][4]int{{0, 1, 3, 7}, {0, 1, 5, 7}, {0, 2, 3, 7}, {0, 2, 6, 7}, {0, 4, 5, 7}, {0, 4, 6, 7}, {0, 1, 2, 3}, {0, 4, 6, 7}}
		cells = rapid.Permutation(cells).Draw(t, "cells")
		split := rapid.IntRange(0, 8).Draw(t, "placed") // the numbering does not change
		tri, err := newTetrahedra(rows[:split], rows[split:], cells)
		if err != nil {
			t.Fatal(err)
		}
		n, r, l := rapid.Float64Range(-0.5, 1.5).Draw(t, "n"), rapid.Float64Range(-0.5, 1.5).Draw(t, "r"), rapid.Float64Range(-0.5, 1.5).Draw(t, "l")
		got, ok := tri.at(n, r, l)
		inside := min(n, r, l) >= 0 && max(n, r, l) <= 1
		if edge := min(math.Abs(n), math.Abs(r), math.Abs(l), math.Abs(1-n), math.Abs(1-r), math.Abs(1-l)); ok != inside && edge > 1e-6 {
			t.Fatalf("(%g, %g, %g) is inside: %v", n, r, l, ok)
		}
		if want := linear(n, r, l); ok && (math.Abs(got.step-want.step) > 1e-6 || math.Abs(got.sync-want.sync) > 1e-6) {
			t.Fatalf("(%g, %g, %g): %+v, want %+v", n, r, l, got, want)
		}
	})
}
