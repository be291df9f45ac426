package hybrid

import (
	"math"
	"testing"

	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// slowCore returns rows of training on a CPU core with a tenth of the assumed rate of multiplications by its
// micro-benchmarks; the steps took as long as predicted with that.
func slowCore(t *testing.T) (rows []spec.Measurement) {
	t.Helper()
	a := spec.Accelerator{Name: "CPU test, 1 thread", Arch: "AVX-512", FP32: 100e9, BF16: 100e9, MemBytes: 16e9, MemBps: 10e9, HostBps: 10e9}
	b := spec.Microbenchmarks{Accelerator: a, Framework: spec.FrameworkWorker}
	for _, n := range []int{256, 512, 1024} {
		flops := 2 * float64(n) * 1024 * 1024
		b.Rows = append(b.Rows, spec.Microbenchmark{Op: "gemm forward", Precision: spec.FP32, Rows: n, Cols: 1024, Depth: 1024, Sec: []float64{flops / 1.5e9}})
	}
	var err error
	if a.Measured, err = b.Digest(); err != nil {
		t.Fatal(err)
	}
	m := spec.Model{Name: "m", Kind: spec.Decoder, Layers: 4, Hidden: 256, FFN: 1024, Heads: 8, Vocab: 1024, SeqLen: 128}
	for _, mb := range []int{1, 2, 4, 8} {
		c := spec.Config{Model: m, Accelerator: a, Framework: spec.FrameworkWorker, Plan: spec.Plan{MicroBatch: mb, Precision: spec.FP32}.Normal(), Shape: spec.Shape{Devices: "1"}}
		p, err := Shipped().Predict(t.Context(), c)
		if err != nil {
			t.Fatal(err)
		}
		sec := 1.1 * float64(mb) / p.Throughput
		rows = append(rows, spec.Measurement{Config: c, Outcome: spec.OK, StepSec: []float64{sec, sec, sec}, Source: "test"})
	}
	return rows
}

// TestMeasuredFit: a fit to rows of a machine with micro-benchmarks begins with these, and is the same after it was stored.
func TestMeasuredFit(t *testing.T) {
	rows := slowCore(t)
	c := rows[1].Config
	measured, err := Shipped().Predict(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	c.Accelerator.Measured = ""
	assumed, err := Shipped().Predict(t.Context(), c)
	if err != nil || assumed.Throughput < 3*measured.Throughput {
		t.Errorf("%g samples/s assumed and %g with micro-benchmarks of a tenth of the rate, %v", assumed.Throughput, measured.Throughput, err)
	}
	fitted, err := Shipped().Condition(t.Context(), rows[:1])
	if err != nil {
		t.Fatal(err)
	}
	text, err := fitted.MarshalBinary()
	if err != nil {
		t.Fatal(err)
	}
	loaded, err := Shipped().load(text)
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range rows[1:] {
		one, err := fitted.Predict(t.Context(), row.Config)
		if err != nil {
			t.Fatal(err)
		}
		row.Config.Accelerator.Measured = "" // the fit has its own
		two, err := loaded.Predict(t.Context(), row.Config)
		if err != nil || math.Abs(one.Throughput/two.Throughput-1) > 1e-9 {
			t.Errorf("%s: %g samples/s, after storing %g, %v", row.Config.Plan, one.Throughput, two.Throughput, err)
		}
		if off := one.Throughput * row.StepSec[0] / float64(row.Config.Plan.GlobalBatch()); math.Abs(off-1) > 0.1 {
			t.Errorf("%s: %.2f times the measured throughput from one row", row.Config.Plan, off)
		}
	}
}
