package rowfile

import (
	"math"
	"reflect"
	"testing"

	"github.com/pacer-ml/pacer/perfmodel/rowfile/rowfiletest"
)

// TestNoNaN puts NaN into every number of a measurement in turn.
func TestNoNaN(t *testing.T) {
	var walk func(v reflect.Value, name string, try func(string))
	walk = func(v reflect.Value, name string, try func(string)) {
		switch v.Kind() {
		case reflect.Struct:
			for i := range v.NumField() {
				if v.Type().Field(i).IsExported() {
					walk(v.Field(i), name+"."+v.Type().Field(i).Name, try)
				}
			}
		case reflect.Float64:
			old := v.Float()
			for _, x := range []float64{math.NaN(), math.Inf(1), math.Inf(-1)} {
				v.SetFloat(x)
				try(name)
			}
			v.SetFloat(old)
		}
	}
	m := rowfiletest.Invented(0)
	n := 0
	walk(reflect.ValueOf(&m).Elem(), "m", func(name string) {
		n++
		if Check(&m) == nil {
			t.Errorf("%s: not a number was accepted", name)
		}
	})
	if n < 3*18 {
		t.Errorf("only %d numbers were tried", n)
	}
}
