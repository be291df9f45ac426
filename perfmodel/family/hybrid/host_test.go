package hybrid

import (
	"context"
	"math/rand/v2"
	"testing"

	"github.com/pacer-ml/pacer/perfmodel"
	"github.com/pacer-ml/pacer/perfmodel/family/analytic"
	"github.com/pacer-ml/pacer/perfmodel/family/rubick"
	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// TestHostRegular checks models that report HostRegular: hosts matter only to plans that offload, and more CPUs
// never slow these down.
func TestHostRegular(t *testing.T) {
	rows := hostRows()
	fitted, _, err := rubick.Family.Fit(context.Background(), perfmodel.Rows(rows))
	if err != nil {
		t.Fatal(err)
	}
	hybrid, err := Shipped().Condition(context.Background(), rows)
	if err != nil {
		t.Fatal(err)
	}
	for name, p := range map[string]perfmodel.Predictor{"analytic": &analytic.Model{}, "hybrid": Shipped().unfitted(), "fitted hybrid": hybrid, "rubick": fitted} {
		if r, ok := p.(interface{ HostRegular() bool }); !ok || !r.HostRegular() {
			t.Errorf("%s does not call itself regular", name)
			continue
		}
		moved := false
		for _, row := range rows {
			c := row.Config
			last := 0.0
			for _, cpus := range []int{4, 16, 64, 256} {
				c.Shape.CPUs, c.Shape.HostBytes = cpus, float64(cpus)*4e9
				got, err := p.Predict(context.Background(), c)
				if err != nil {
					t.Fatalf("%s: %v", name, err)
				}
				if c.Plan.Offload == spec.OffloadNone && last > 0 && got.Throughput != last || got.Throughput < last {
					t.Errorf("%s: %s with %d CPUs makes %g samples/s, %g with fewer", name, c.Plan, cpus, got.Throughput, last)
				}
				moved = moved || last > 0 && got.Throughput > last
				last = got.Throughput
			}
		}
		if !moved {
			t.Errorf("%s: CPUs make no difference to any plan", name)
		}
	}
}

// hostRows returns invented measurements of plans with and without offload.
func hostRows() (rows []spec.Measurement) {
	rng := rand.New(rand.NewPCG(3, 4))
	m := spec.Model{Name: "m", Kind: spec.Decoder, Layers: 24, Hidden: 2048, Heads: 16, FFN: 8192, Vocab: 50304, SeqLen: 1024}
	a := spec.Accelerator{Name: "a", Arch: "ampere", BF16: 312e12, FP16: 312e12, FP32: 19.5e12, MemBytes: 80e9, MemBps: 2e12, ScaleUpBps: 2e11, HostBps: 2.5e10}
	for _, dp := range []int{1, 2, 4, 8} {
		for _, off := range []spec.Offload{spec.OffloadNone, spec.OffloadOptimizer} {
			p := spec.Plan{DP: dp, MicroBatch: 4, AccumSteps: 8 / dp, ZeRO: 2, Offload: off, Precision: spec.FP16}.Normal()
			c := spec.Config{Model: m, Accelerator: a, Plan: p, Shape: spec.NewShape(dp)}
			c.Shape.CPUs = 12 * dp
			parts, err := (&analytic.Model{}).Explain(c)
			if err != nil {
				panic(err) // a mistake in this file
			}
			rows = append(rows, spec.Measurement{Config: c, Outcome: spec.OK, Source: "made up", StepSec: []float64{parts.Total() * (1 + 0.02*rng.NormFloat64())}})
		}
	}
	return rows
}
