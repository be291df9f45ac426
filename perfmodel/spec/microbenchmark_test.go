package spec

import (
	"encoding/json"
	"math"
	"strings"
	"testing"
)

func microbenchmarks() Microbenchmarks {
	return Microbenchmarks{Accelerator: Accelerator{Name: "a", MemBytes: 1, MemBps: 1, FP32: 1}, Rows: []Microbenchmark{
		{Op: "copy", Bytes: 8, Sec: []float64{5, 1, 4, 2, 3}},
	}}
}

// TestMicrobenchmarkDigest: the digest has the quartiles, and the same median and spread as the repetitions.
func TestMicrobenchmarkDigest(t *testing.T) {
	b := microbenchmarks()
	text, err := b.Digest()
	var got Microbenchmarks
	if err == nil {
		err = json.Unmarshal([]byte(text), &got)
	}
	if err != nil || got.Validate() != nil {
		t.Fatal(err, got.Validate())
	}
	if sec := got.Rows[0].Sec; len(sec) != 3 || sec[0] != 2 || sec[1] != 3 || sec[2] != 4 {
		t.Errorf("quartiles %v, want 2 3 4", sec)
	}
	sec, spread := b.Rows[0].Median()
	again, same := got.Rows[0].Median()
	if want := math.Log(2) / 1.349; sec != 3 || again != 3 || math.Abs(spread-want) > 1e-12 || same != spread {
		t.Errorf("median %g and spread %g, of the digest %g and %g; want 3 and %g", sec, spread, again, same, want)
	}
}

func TestMicrobenchmarksInvalid(t *testing.T) {
	for want, change := range map[string]func(*Microbenchmarks){
		"accelerator has no name":                       func(b *Microbenchmarks) { b.Accelerator.Name = "" },
		"have no rows":                                  func(b *Microbenchmarks) { b.Rows = nil },
		`rows[0].op "gem" is not one of ["gemm forwa`:   func(b *Microbenchmarks) { b.Rows[0].Op = "gem" },
		"rows[0].sec [] of copy, want one or more":      func(b *Microbenchmarks) { b.Rows[0].Sec = nil },
		"rows[0].sec [1 0] of copy":                     func(b *Microbenchmarks) { b.Rows[0].Sec = []float64{1, 0} },
		"rows[0].sec [+Inf] of copy":                    func(b *Microbenchmarks) { b.Rows[0].Sec = []float64{math.Inf(1)} },
		"rows[0].bytes NaN of copy is not in [0, 1e15]": func(b *Microbenchmarks) { b.Rows[0].Bytes = math.NaN() },
		"rows[0].rows -1 of copy is not in":             func(b *Microbenchmarks) { b.Rows[0].Rows = -1 },
	} {
		b := microbenchmarks()
		if change(&b); b.Validate() == nil || !strings.Contains(b.Validate().Error(), want) {
			t.Errorf("error %v, want %q", b.Validate(), want)
		}
	}
}
