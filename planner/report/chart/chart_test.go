package chart

import "testing"

func TestMarks(t *testing.T) {
	for _, c := range []struct {
		lo, hi float64
		log    bool
	}{{0, 1, false}, {1, 1.004, false}, {3, 900, false}, {0.5, 2, true}, {0.9, 50000, true}} {
		got := Axis{c.lo, c.hi, c.log}.Marks()
		if len(got) < 2 || !c.log && len(got) > 9 || got[0] < c.lo || got[len(got)-1] > c.hi*(1+1e-9) {
			t.Errorf("%+v: %v", c, got)
		}
	}
}
