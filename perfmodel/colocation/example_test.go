package colocation_test

import (
	"fmt"

	"github.com/pacer-ml/pacer/perfmodel/colocation"
	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// Two jobs on one device: each keeps part of its throughput alone.
func ExampleTable() {
	job := func(model string, batch int) spec.Config {
		return spec.Config{Model: spec.Model{Name: model}, Accelerator: spec.Accelerator{Name: "V100"},
			Plan: spec.Plan{DP: 1, MicroBatch: batch}.Normal(), Shape: spec.NewShape(1)}
	}
	a, b := job("resnet", 32), job("lstm", 20)
	t := colocation.New([]spec.Colocation{{A: a, B: b, RateA: 180, RateB: 950}})
	rate, err := t.Beside(b, a)
	fmt.Println(rate, "samples/s", err)
	_, err = t.Beside(a, a)
	fmt.Println(err)
	// Output:
	// 950 samples/s <nil>
	// colocation: resnet on V100, plan dp=1,tp=1,pp=1,mb=32,ga=1 beside resnet, plan dp=1,tp=1,pp=1,mb=32,ga=1: not measured: not covered by this performance model
}
