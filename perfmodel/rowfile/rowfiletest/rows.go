package rowfiletest

import (
	"fmt"
	"iter"
	"reflect"
	"time"

	"pgregory.net/rapid"

	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// Invented returns the i-th invented measurement.
func Invented(i int) spec.Measurement {
	m := spec.Measurement{
		Config: spec.Config{
			Model: spec.Model{Name: fmt.Sprintf("tiny-%d", i%3), Kind: spec.Decoder, Layers: 4, Hidden: 64, FFN: 256, Heads: 4,
				KVHeads: 2, Vocab: 1000, SeqLen: 128, GatedMLP: true, ParamCount: 1.25e6},
			Plan: spec.Plan{DP: 1 + i%2, TP: 2, PP: 1, MicroBatch: 1 + i%4, AccumSteps: 2, ZeRO: 1,
				Recompute: spec.RecomputeFull, Precision: spec.BF16},
			Accelerator: spec.Accelerator{Name: fmt.Sprintf("X%d", i%2), Vendor: "Acme", BF16: 1e14, MemBytes: 1 << 34, MemBps: 1e12},
			Shape:       spec.Shape{Devices: "2+2", CPUs: 16, HostBytes: 1 << 36},
			Link:        spec.Link{IntraBps: 1e11, InterBps: 1e10},
			Framework:   "loop",
		},
		Outcome:   spec.OK,
		StepSec:   []float64{0.1 + float64(i)/1000, 0.11, 0.125},
		PhaseSec:  map[string]float64{"forward": 0.03, "backward": 0.06},
		PeakBytes: 1.5e9,
		Source:    fmt.Sprintf("invented/%d", i%5),
		Origin:    fmt.Sprintf("rows.csv:%d", i),
		At:        time.Date(2024, 5, 1, 12, 0, i, 123456789, time.UTC),
		Env:       map[string]string{"driver": "1.2", "note": "made up"},
	}
	if i%7 == 6 {
		m.Outcome, m.Reason, m.StepSec, m.PhaseSec = spec.OOM, "out of memory on rank 0", nil, nil
	}
	return m
}

// InventedRows returns the first n invented measurements.
func InventedRows(n int) []spec.Measurement {
	ms := make([]spec.Measurement, n)
	for i := range ms {
		ms[i] = Invented(i)
	}
	return ms
}

// Seq yields ms.
func Seq(ms []spec.Measurement) iter.Seq2[spec.Measurement, error] {
	return func(yield func(spec.Measurement, error) bool) {
		for _, m := range ms {
			if !yield(m, nil) {
				return
			}
		}
	}
}

// Gather returns the rows and the errors of seq.
func Gather(seq iter.Seq2[spec.Measurement, error]) (ms []spec.Measurement, errs []error) {
	for m, err := range seq {
		if err != nil {
			errs = append(errs, err)
			continue
		}
		ms = append(ms, m)
	}
	return ms, errs
}

// draw fills v with a random value that is accepted there.
func draw(t *rapid.T, v reflect.Value, name string) {
	text := rapid.StringMatching(`[a-zé"\\, ={}-]{0,8}`)
	num := rapid.OneOf(rapid.Just(0.0), rapid.Float64Range(-1e300, 1e300))
	switch p := v.Addr().Interface().(type) {
	case *time.Time:
		if ns := rapid.Int64().Draw(t, name); ns%3 != 0 {
			*p = time.Unix(0, ns).UTC()
		}
		return
	case *map[string]float64:
		if m := rapid.MapOfN(text, num, 0, 3).Draw(t, name); len(m) > 0 {
			*p = m
		}
		return
	case *map[string]string:
		if m := rapid.MapOfN(text, text, 0, 3).Draw(t, name); len(m) > 0 {
			*p = m
		}
		return
	case *spec.Adapter:
		if rank := rapid.IntRange(0, 64).Draw(t, name); rank > 0 {
			*p = spec.Adapter{Kind: rapid.SampledFrom([]spec.AdapterKind{spec.LoRA, spec.QLoRA, spec.DoRA}).Draw(t, name), Rank: rank,
				Modules: spec.AdapterModules(rapid.IntRange(1, 7).Draw(t, name))}
		}
		return
	case *[]float64:
		if s := rapid.SliceOfN(rapid.Float64Range(1e-9, 1e9), 0, 5).Draw(t, name); len(s) > 0 {
			*p = s
		}
		return
	}
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).Tag.Get("json") == "-" { // not stored with the row
				continue
			}
			draw(t, v.Field(i), name+"."+v.Type().Field(i).Name)
		}
	case reflect.String:
		v.SetString(text.Draw(t, name))
	case reflect.Int:
		v.SetInt(int64(rapid.IntRange(0, 1<<40).Draw(t, name)))
	case reflect.Float64:
		v.SetFloat(num.Draw(t, name))
	case reflect.Bool:
		v.SetBool(rapid.Bool().Draw(t, name))
	default:
		t.Fatalf("%s: no generator for %s", name, v.Type())
	}
}

// Drawn is a measurement with random values in every field, which rowfile.Check accepts.
var Drawn = rapid.Custom(func(t *rapid.T) spec.Measurement {
	var m spec.Measurement
	draw(t, reflect.ValueOf(&m).Elem(), "m")
	name := rapid.StringMatching(`[a-zé/ -]{1,6}`)
	m.Config.Model.Name, m.Config.Accelerator.Name, m.Source = name.Draw(t, "model"), name.Draw(t, "accelerator"), name.Draw(t, "source")
	m.Outcome = rapid.SampledFrom([]spec.Outcome{spec.OOM, spec.Timeout, spec.Failed}).Draw(t, "outcome")
	if m.PeakBytes < 0 {
		m.PeakBytes = -m.PeakBytes
	}
	if len(m.StepSec) > 0 {
		m.Outcome = spec.OK
	}
	m.Config.AloneStage = rapid.IntRange(0, max(m.Config.Plan.PP, 1)).Draw(t, "alone stage")
	return m
})
