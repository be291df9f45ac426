package spec_test

import (
	"fmt"

	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// A plan says how a step is split. This one has 2 replicas of 4 x 2 devices; each runs 8 micro-batches of 2
// samples per step.
func ExampleParsePlan() {
	p, err := spec.ParsePlan("dp=2,tp=4,pp=2,mb=2,ga=8,zero=1")
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(p.Devices(), "devices,", p.GlobalBatch(), "samples a step")
	fmt.Println(spec.Packed(p.Devices(), 8))
	_, err = spec.ParsePlan("dp=2,tp=x")
	fmt.Println(err)
	// Output:
	// 16 devices, 32 samples a step
	// 2x8
	// spec: plan "dp=2,tp=x": tp=x is not a whole number in 1..1048576
}

// A measurement keeps every step time; summaries are computed.
func ExampleMeasurement_MedianStepSec() {
	m := spec.Measurement{
		Config:  spec.Config{Plan: spec.Plan{DP: 4, MicroBatch: 8}.Normal()},
		Outcome: spec.OK,
		StepSec: []float64{0.5, 0.4, 2.0},
	}
	fmt.Printf("%g s, %g samples/s\n", m.MedianStepSec(), m.Throughput())
	// Output:
	// 0.5 s, 64 samples/s
}
