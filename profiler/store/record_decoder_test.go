package store

import (
	"encoding/json"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/pacer-ml/pacer/perfmodel/rowfile/rowfiletest"
	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// decodedRows are rows that share some parts, with every kind of field.
func decodedRows() (out []spec.Measurement) {
	base := spec.Measurement{Config: spec.Config{Model: spec.Model{Name: "m", Layers: 2}, SeqLen: 10, Plan: spec.Plan{DP: 2, TP: 1, PP: 1}, Accelerator: spec.Accelerator{Name: "a", BF16: 1e15},
		Shape: spec.Shape{Devices: "2"}, Link: spec.Link{IntraBps: 1e9}, Framework: "f"}, Outcome: spec.OK, StepSec: []float64{1.5, 2e-7, 1e21}, PeakBytes: 3e9, Source: "s", Origin: "file:1"}
	for i := range 60 {
		m := base
		m.Config.Plan.MicroBatch, m.Origin = i, string(rune('a'+i%26))
		switch i % 12 {
		case 1:
			m.Config.Model.Name = `quoted " { name`
		case 2:
			m.Config.Accelerator.Name, m.Config.Framework = "b}", ""
		case 3:
			m.Outcome, m.StepSec, m.Reason = spec.Failed, nil, "line\nanother <b>"
		case 4:
			m.At = time.Date(2026, 1, 2, 3, 4, 5, 678, time.UTC)
		case 5:
			m.Env, m.PhaseSec = map[string]string{"k": "v}"}, map[string]float64{"forward": 0.5}
		case 6:
			m.Config.SeqLen, m.PeakBytes = 0, 0
		case 7:
			m.Source, m.Doubt = "Universität", "it is too fast"
		case 8:
			m.Config.Shape = spec.Shape{Devices: "1+1", CPUs: 4}
		}
		out = append(out, m)
	}
	return out
}

// The decoder of many rows returns what decodeRecord does, for every record and every damage of it.
func TestRecordDecoder(t *testing.T) {
	var d recordDecoder
	random := rand.New(rand.NewPCG(1, 1))
	quick := 0
	for _, m := range decodedRows() {
		b, err := encodeRecord(m)
		if err != nil {
			t.Fatal(err)
		}
		if d.quick(b[1:], new(spec.Measurement)) {
			quick++
		}
		for damage := range 200 {
			text := append([]byte{}, b...)
			switch {
			case damage == 0:
			case damage%2 == 0:
				text = text[:random.IntN(len(text))]
			default:
				text[random.IntN(len(text))] = []byte(`{}[]",:0-.eE\x`)[random.IntN(14)]
			}
			want, wantErr := decodeRecord(text)
			var got spec.Measurement
			gotErr := d.decode(text, &got)
			if (wantErr == nil) != (gotErr == nil) || !cmp.Equal(want, got) {
				t.Fatalf("%s: %v, %v: %s", text, wantErr, gotErr, cmp.Diff(want, got))
			}
		}
	}
	if quick < 50 {
		t.Errorf("%d of 60 rows without package json", quick)
	}
}

// Rows decoded one after the other into one variable have no field of the row before.
func TestRecordDecoderReused(t *testing.T) {
	full := decodedRows()[0]
	full.Reason, full.Doubt, full.At = "a reason", "a doubt", time.Date(2026, 1, 2, 3, 4, 5, 678, time.UTC)
	full.Env, full.PhaseSec = map[string]string{"k": "v"}, map[string]float64{"forward": 0.5}
	bare := full
	bare.Config.SeqLen, bare.Config.Framework, bare.Outcome, bare.Reason, bare.Doubt, bare.At = 0, "", spec.OOM, "", "", time.Time{}
	bare.StepSec, bare.PhaseSec, bare.PeakBytes, bare.Origin, bare.Env = nil, nil, 0, "", nil
	var d recordDecoder
	var got spec.Measurement
	for i, want := range []spec.Measurement{full, bare, full, bare} {
		b, err := encodeRecord(want)
		if err != nil {
			t.Fatal(err)
		}
		if !d.quick(b[1:], &got) {
			t.Errorf("row %d is read by package json", i)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("row %d: %s", i, diff)
		}
	}
}

// A row with unknown fields, or in another order, is read as package json does.
func TestRecordDecoderOtherJSON(t *testing.T) {
	m := decodedRows()[0]
	j, err := json.MarshalIndent(m, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	var d recordDecoder
	var got spec.Measurement
	err = d.decode(append([]byte{recordVersion}, j...), &got)
	if d := cmp.Diff(m, got); d != "" || err != nil {
		t.Errorf("%v: %s", err, d)
	}
}

// TestRecordRoundTrip also checks that the store keeps every field.
func TestRecordRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := rowfiletest.Drawn.Draw(t, "m")
		b, err := encodeRecord(want)
		if err != nil {
			t.Fatal(err)
		}
		got, err := decodeRecord(b)
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Fatal(d)
		}
	})
}
