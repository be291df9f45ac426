package query

import (
	"bytes"
	"encoding/json"
	"math"
	"math/rand/v2"
	"reflect"
	"testing"
)

// AppendJSON writes what encoding/json does, of every field.
func TestAppendJSONIsEncodingJSON(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	for range 5000 {
		var row PlanRow
		randomise(rnd, reflect.ValueOf(&row).Elem())
		row.PlanParts = row.PlanParts.Normal()
		row.Plan = row.PlanParts.String()
		if rnd.IntN(2) == 0 {
			row.GoodputPerS, row.HFU = row.SamplesPerS, row.MFU
		}
		got, err := row.AppendJSON([]byte("before"), AppendHead(nil, &row.PlanParts))
		var want bytes.Buffer
		e := json.NewEncoder(&want)
		e.SetEscapeHTML(false)
		if err := e.Encode(row); err != nil {
			t.Fatal(err)
		}
		if err != nil || "before"+want.String() != string(got)+"\n" {
			t.Fatalf("%v, got\n%s, want\n%s", err, got, want.String())
		}
	}
	for _, v := range []float64{math.NaN(), math.Inf(1), math.Inf(-1)} {
		row := PlanRow{MemGiB: v}
		if _, err := row.AppendJSON(nil, nil); err == nil {
			t.Errorf("%g: no error", v)
		}
	}
}

// Plans.AppendJSON writes what encoding/json does, of every field.
func TestPlansJSONIsEncodingJSON(t *testing.T) {
	rnd := rand.New(rand.NewPCG(3, 4))
	quick := 0
	for i := range 2000 {
		var plans Plans
		randomise(rnd, reflect.ValueOf(&plans).Elem())
		if i%2 == 0 {
			plans.Pareto, plans.Probes, plans.Move, plans.Launch, plans.Infeasible = nil, nil, nil, nil, nil
			quick++
		}
		for k := range plans.Plans {
			row := &plans.Plans[k]
			row.PlanParts = row.PlanParts.Normal()
			row.Plan = row.PlanParts.String()
		}
		got, err := plans.AppendJSON([]byte("before"))
		want, werr := AppendJSON([]byte("before"), plans)
		if err != nil || werr != nil || string(want) != string(got) {
			t.Fatalf("%v, got\n%s, want %v\n%s", err, got, werr, want)
		}
	}
	if _, err := (Plans{Plans: []PlanRow{}, ElapsedS: math.NaN()}).AppendJSON(nil); err == nil || quick < 500 {
		t.Errorf("NaN: %v; %d without extras", err, quick)
	}
}

// randomise sets v to a random value, often zero.
func randomise(rnd *rand.Rand, v reflect.Value) {
	if rnd.IntN(4) == 0 && v.Kind() != reflect.Struct {
		return
	}
	switch v.Kind() {
	case reflect.Float64:
		v.SetFloat([]float64{rnd.NormFloat64(), float64(rnd.IntN(1e6)), 1e21, 999999999999999999999, 1e-6, 0.99e-6, 1e-9 * rnd.Float64(), 1e300 * rnd.Float64(), -1 / rnd.Float64()}[rnd.IntN(9)])
	case reflect.Int:
		v.SetInt(rnd.Int64N(1e9) - 5e8)
	case reflect.Bool:
		v.SetBool(true)
	case reflect.String:
		v.SetString([]string{"", "dp=8,zero=3", "a\"b", `a\b`, "<&>", "\u2028", "ä", "\x7f", "\t", "\xff", "~ !"}[rnd.IntN(11)])
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		randomise(rnd, v.Elem())
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), rnd.IntN(3), 3))
		for i := range v.Len() {
			randomise(rnd, v.Index(i))
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				randomise(rnd, v.Field(i))
			}
		}
	}
}
