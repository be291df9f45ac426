package colocation

import (
	"errors"
	"strings"
	"testing"

	"github.com/pacer-ml/pacer/perfmodel"
	"github.com/pacer-ml/pacer/perfmodel/spec"
)

func config(model, accelerator string, devices int) spec.Config {
	return spec.Config{Model: spec.Model{Name: model}, Accelerator: spec.Accelerator{Name: accelerator},
		Plan: spec.Plan{DP: devices, MicroBatch: 8}, Shape: spec.Packed(devices, devices)}
}

func TestTable(t *testing.T) {
	a, b := config("a", "x", 2), config("b", "x", 2)
	tab := New([]spec.Colocation{{A: a, B: b, RateA: 3, RateB: 5}, {A: a, B: a, RateA: 2, RateB: 2}})
	spread := a
	spread.Shape = spec.Packed(2, 1)
	for _, c := range []struct {
		a, b spec.Config
		want float64
	}{{a, b, 3}, {b, a, 5}, {a, a, 2}, {spread, b, 3}} {
		if got, err := tab.Beside(c.a, c.b); err != nil || got != c.want {
			t.Errorf("%s beside %s: %g, %v, want %g", c.a.Model.Name, c.b.Model.Name, got, err, c.want)
		}
	}
	for _, c := range [][2]spec.Config{{b, b}, {config("a", "y", 2), config("b", "y", 2)}, {config("a", "x", 1), config("b", "x", 1)}} {
		_, err := tab.Beside(c[0], c[1])
		if !errors.Is(err, perfmodel.ErrNotCovered) || !strings.Contains(err.Error(), c[0].Model.Name+" ") {
			t.Errorf("%s beside %s: %v, want ErrNotCovered that names them", c[0].Model.Name, c[1].Model.Name, err)
		}
	}
	if _, err := (&Table{}).Beside(a, b); !errors.Is(err, perfmodel.ErrNotCovered) {
		t.Errorf("the zero table: %v", err)
	}
}
