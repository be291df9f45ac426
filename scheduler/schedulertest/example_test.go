package schedulertest_test

import (
	"context"
	"fmt"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/scheduler/schedulertest"
)

// A world predicts exactly the configurations that were added.
func ExampleWorld() {
	w := &schedulertest.World{}
	w.Add("bert", "x", schedulertest.OnePlan(2), spec.NewShape(2), 1.5)
	for _, n := range []int{2, 4} {
		p, err := w.Predict(context.Background(), spec.Config{Model: spec.Model{Name: "bert"}, Accelerator: spec.Accelerator{Name: "x"},
			Plan: schedulertest.OnePlan(n), Shape: spec.NewShape(n)})
		fmt.Println(p.Throughput, err != nil)
	}
	// Output:
	// 1.5 false
	// 0 true
}
